"""Chains of words add up counts kept by case; they must say what counting every word of all lessons says."""
import os
import pathlib
import subprocess
import sys
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from lab.baselines import setup  # noqa: E402


@unittest.skipUnless(setup.is_ready(), "SKIPPED: no numpy here; ./dev lab setup baselines installs it")
class Chains(unittest.TestCase):
    def test_the_surprise_is_that_of_counting_all_words(self):
        program = textwrap.dedent("""
            import collections, math, random
            from lab.baselines.chain import Chain, Coded

            def counted(lessons, order):
                counts, words = collections.defaultdict(collections.Counter), set()
                for sequences in lessons:
                    for some in sequences:
                        words.update(some)
                        for i, word in enumerate(some):
                            for n in range(min(order, i) + 1):
                                counts[tuple(some[i - n:i])][word] += 1
                return counts, words

            def surprise(sequences, counts, words, order):
                for some in sequences:
                    for i, word in enumerate(some):
                        p = 1.0 / (len(words) + 1)
                        for n in range(min(order, i) + 1):
                            after = counts.get(tuple(some[i - n:i]))
                            if after:
                                p = (after[word] + p) / (sum(after.values()) + 1)
                        yield -math.log(p)

            draw = random.Random(3)
            case = lambda letters: [[draw.choice(letters) for _ in range(draw.randrange(9))] for _ in range(draw.randrange(5))]
            for trial in range(60):
                lessons, asked = [case("abcd") for _ in range(draw.randrange(4))], case("abcdxy") + [["a", "b", "a", "x", "b"]]
                coded = Coded(asked) if trial % 2 else None  # lessons may be read before or after what is asked
                known = [Coded(one) for one in lessons]
                for order in (1, 2, 3):
                    found = Chain(order, known).surprise(coded or Coded(asked))
                    right = list(surprise(asked, *counted(lessons, order), order))
                    assert len(found) == len(right) and all(abs(a - b) < 1e-9 for a, b in zip(found, right)), (trial, order)
            print("equal")
            """)
        done = subprocess.run([setup.python(), "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(done.stdout.strip(), "equal")


if __name__ == "__main__":
    unittest.main()
