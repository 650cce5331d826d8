"""What the client sends, planned from a seed and the case's prefix of request ids: the same both give the same requests at the same times.

Cases that share a server have different prefixes, so no prompt of one is still in a cache from another."""
import dataclasses
import random

SYLLABLES = "ka lo mi ren ta vu sel dor pan chi gra nu ost eli ber fa zon quil her mas ti wo ye drin ul".split()


@dataclasses.dataclass
class Planned:
    id: str
    at_s: float
    prompt: str
    max_tokens: int
    kind: str = "normal"
    extra: dict = dataclasses.field(default_factory=dict)


def words(rng, count):
    return " ".join("".join(rng.choices(SYLLABLES, k=rng.randint(1, 3))) for _ in range(count))


def name(prefix, number):
    return f"{prefix}-{number:03d}"


LONGEST_GAP = 2.5  # times the mean gap: a fault that lasts a second or two has requests in it


def steady(seed, prefix, seconds, rate=2.5, quiet=()):
    """Poisson arrivals of short requests, without their longest gaps. `quiet`: (from, to) seconds in which none is sent."""
    rng = random.Random(f"{seed}/{prefix}/steady")
    planned, at = [], 0.0
    while True:
        at += min(rng.expovariate(rate), LONGEST_GAP / rate)
        if at >= seconds:
            return planned
        prompt, tokens = words(rng, rng.randint(20, 60)), rng.randint(8, 32)
        if not any(a <= at < b for a, b in quiet):
            planned.append(Planned(name(prefix, len(planned) + 1), at, prompt, tokens))


def volley(seed, prefix, at_s, count, gap_s, prompt_words, max_tokens, kind, extra=None):
    """`count` equal requests from `at_s` on, `gap_s` apart."""
    rng = random.Random(f"{seed}/{prefix}/{kind}")
    return [Planned(name(f"{prefix}-{kind}", i + 1), at_s + i * gap_s, words(rng, prompt_words), max_tokens, kind, dict(extra or {}))
            for i in range(count)]


def merge(prefix, *lists):
    """All of them in order of time, with ids that tell nothing but the order."""
    planned = sorted((p for some in lists for p in some), key=lambda p: (p.at_s, p.id))
    return [dataclasses.replace(p, id=name(prefix, i + 1)) for i, p in enumerate(planned)]
