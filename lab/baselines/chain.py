"""Chains of words: how unexpected each word is after those before it. Counts are kept by case, so that a fold only adds them up."""
import numpy as np

LONGEST = 3  # words before a word that are looked at


class Coded:
    """Sequences of words as numbers. `grams[n]` has, for every word, the number of the n + 1 words that end there; -1 where fewer words stand before it.
    Equal words have equal numbers in all cases of a process."""
    known = [{} for _ in range(LONGEST + 1)]

    def __init__(self, sequences):
        grams = [[] for _ in self.known]
        for words in sequences:
            before = [-1] * len(self.known)
            for i, word in enumerate(words):
                now = [-1] * len(self.known)
                for n, table in enumerate(self.known[:i + 1]):
                    key = (before[n - 1] if n else 0, word)
                    now[n] = table.setdefault(key, len(table))
                    grams[n].append(now[n])
                for n in range(min(i, LONGEST) + 1, len(self.known)):
                    grams[n].append(-1)
                before = now
        self.grams = [np.array(some, dtype=np.int64) for some in grams]
        # What stands before a word: nothing (0), or one gram less that ends one word earlier.
        self.contexts = [np.where(now >= 0, np.roll(self.grams[n - 1], 1) if n else 0, -1) for n, now in enumerate(self.grams)]
        self.counts = [(self.unique(now), self.unique(context)) for now, context in zip(self.grams, self.contexts)]

    @staticmethod
    def unique(numbers):
        return np.unique(numbers[numbers >= 0], return_counts=True)

    def __len__(self):
        return len(self.grams[0])


class Chain:
    """How often each word follows the `order` words before it, with shorter contexts where a context was not seen."""

    def __init__(self, order, lessons):
        self.order = order
        self.grams = [self.total([one.counts[n][0] for one in lessons]) for n in range(order + 1)]
        self.contexts = [self.total([one.counts[n][1] for one in lessons]) for n in range(order + 1)]
        self.words = np.count_nonzero(self.grams[0])

    @staticmethod
    def total(counts):
        if not counts:
            return np.zeros(0)
        numbers, amounts = (np.concatenate(some) for some in zip(*counts))
        return np.bincount(numbers, weights=amounts)

    @staticmethod
    def look_up(table, numbers):
        """What was not learned was never seen."""
        inside = (numbers >= 0) & (numbers < len(table))
        out = np.zeros(len(numbers))
        out[inside] = table[numbers[inside]]
        return out

    def surprise(self, coded):
        """-log p of each word."""
        p = np.full(len(coded), 1.0 / (self.words + 1))
        for n in range(self.order + 1):
            seen = self.look_up(self.contexts[n], coded.contexts[n])
            p = np.where(seen > 0, (self.look_up(self.grams[n], coded.grams[n]) + p) / (seen + 1), p)
        return -np.log(p)
