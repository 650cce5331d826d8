"""Baselines on logs alone, and on the order of operators alone."""
import collections
import math

from lab.baselines.method import Learned, Method
from lab.baselines.task import Answer

ERRORS = ("error", "fatal")


def line_candidate(log, p):
    return {"process": log["process"] or None, "rank": log["rank"], "log_record": log["message"], "p": p}


def step_scores(logs, scores):
    out = {}
    for log, score in zip(logs, scores):
        if log["step"] is not None:
            out[log["step"]] = max(score, out.get(log["step"], -math.inf))
    return out


class FirstError(Method):
    name = "first-error"
    about = "logs alone: the first record of level error, else the first warning"
    defaults = (0.5, 0.75)

    def fit(self, train, params, seed):
        def answer(case):
            weight = [1.0 if log["level"] in ERRORS or log["exception"] else 0.5 if log["level"] == "warning" else 0.0 for log in case.logs]
            order = sorted(range(len(weight)), key=lambda i: (-weight[i], i))
            found = [line_candidate(case.logs[i], weight[i]) for i in order[:20] if weight[i] > 0]
            return Answer(step_scores(case.logs, weight), max(weight, default=0.0), found)
        return answer


class Rarity(Learned):
    name = "template-rarity"
    about = "logs alone: the record whose shape was seen least often in healthy lessons"
    grid = ({"own": 0.0}, {"own": 1.0})
    defaults = (6.0, 6.0)

    def fit(self, train, params, seed):
        seen = collections.Counter()
        for case, lesson in train:
            if not lesson["is_fault"]:
                seen.update(case.templates.get(log["template"], "") for log in case.logs)

        def answer(case):
            texts = [case.templates.get(log["template"], "") for log in case.logs]
            own = collections.Counter(texts)
            whole = sum(seen.values()) + params["own"] * len(texts) + 1
            rare = [-math.log((seen[t] + params["own"] * own[t] + 0.5) / whole) for t in texts]
            order = sorted(range(len(rare)), key=lambda i: (-rare[i], i))
            return Answer(step_scores(case.logs, rare), max(rare, default=0.0), [line_candidate(case.logs[i], rare[i]) for i in order[:20]])
        return answer


class Chain:
    """How often each word follows the `order` words before it, with shorter contexts where a context was not seen."""

    def __init__(self, order):
        self.order = order
        self.counts = collections.defaultdict(collections.Counter)
        self.words = set()

    def learn(self, words):
        self.words.update(words)
        for i, word in enumerate(words):
            for n in range(self.order + 1):
                if i >= n:
                    self.counts[tuple(words[i - n:i])][word] += 1

    def surprise(self, words):
        """-log p of each word."""
        out = []
        for i, word in enumerate(words):
            p = 1.0 / (len(self.words) + 1)
            for n in range(min(self.order, i) + 1):
                counter = self.counts.get(tuple(words[i - n:i]))
                if counter:
                    p = (counter[word] + p) / (sum(counter.values()) + 1)
            out.append(-math.log(p))
        return out


class TemplateSequence(Learned):
    name = "template-sequence"
    about = "logs alone: the record that is least expected after those before it, by chains learned from healthy lessons"
    grid = ({"order": 1}, {"order": 2}, {"order": 3})
    defaults = (6.0, 6.0)

    def fit(self, train, params, seed):
        chain = Chain(params["order"])
        for case, lesson in train:
            if not lesson["is_fault"]:
                chain.learn([case.templates.get(log["template"], "") for log in case.logs])

        def answer(case):
            odd = chain.surprise([case.templates.get(log["template"], "") for log in case.logs])
            order = sorted(range(len(odd)), key=lambda i: (-odd[i], i))
            return Answer(step_scores(case.logs, odd), max(odd, default=0.0), [line_candidate(case.logs[i], odd[i]) for i in order[:20]])
        return answer


class OpSequence(Learned):
    name = "op-sequence"
    about = "traces alone: the step whose operators come in the least expected order; times are not looked at"
    grid = ({"order": 1}, {"order": 2}, {"order": 3})
    defaults = (2.0, 2.0)

    def fit(self, train, params, seed):
        lessons = Chain(params["order"])
        for case, lesson in train:
            if not lesson["is_fault"]:
                for words in case.sequence:
                    lessons.learn(words)

        def answer(case):
            chain = lessons
            if not lessons.words:
                chain = Chain(params["order"])
                for words in case.sequence:
                    chain.learn(words)
            steps, words_of = {}, collections.Counter()
            for row, words in enumerate(case.sequence):
                odd = chain.surprise(words)
                steps[row] = sum(odd) / len(odd) if odd else 0.0
                for word, amount in zip(words, odd):
                    words_of[case.rank[row], word] += amount
            whole = sum(words_of.values()) or 1.0
            found = [{"rank": rank, "op": op, "p": amount / whole} for (rank, op), amount in words_of.most_common(20)]
            return Answer(steps, max(steps.values(), default=0.0), found)
        return answer


METHODS = (FirstError(), Rarity(), TemplateSequence(), OpSequence())
