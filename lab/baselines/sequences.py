"""Baselines on logs alone, and on the order of operators alone."""
import collections
import math

import numpy as np

from lab.baselines.chain import Chain, Coded
from lab.baselines.method import Learned, Method
from lab.baselines.task import Answer, once

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


@once
def coded_logs(case):
    return Coded([[case.templates.get(log["template"], "") for log in case.logs]])


@once
def coded_ops(case):
    """(words, step of each, number of its rank and operator, these pairs)."""
    rows = np.repeat(np.arange(len(case.sequence)), [len(words) for words in case.sequence])
    numbers = {}
    pairs = [numbers.setdefault((case.rank[row], word), len(numbers)) for row, words in enumerate(case.sequence) for word in words]
    return Coded(case.sequence), rows, np.array(pairs, dtype=int), list(numbers)


class TemplateSequence(Learned):
    name = "template-sequence"
    about = "logs alone: the record that is least expected after those before it, by chains learned from healthy lessons"
    grid = ({"order": 1}, {"order": 2}, {"order": 3})
    defaults = (6.0, 6.0)

    def fit(self, train, params, seed):
        chain = Chain(params["order"], [coded_logs(case) for case, lesson in train if not lesson["is_fault"]])

        def answer(case):
            odd = chain.surprise(coded_logs(case)).tolist()
            order = sorted(range(len(odd)), key=lambda i: (-odd[i], i))
            return Answer(step_scores(case.logs, odd), max(odd, default=0.0), [line_candidate(case.logs[i], odd[i]) for i in order[:20]])
        return answer


class OpSequence(Learned):
    name = "op-sequence"
    about = "traces alone: the step whose operators come in the least expected order; times are not looked at"
    grid = ({"order": 1}, {"order": 2}, {"order": 3})
    defaults = (2.0, 2.0)

    def fit(self, train, params, seed):
        lessons = Chain(params["order"], [coded_ops(case)[0] for case, lesson in train if not lesson["is_fault"]])

        def answer(case):
            coded, rows, pairs, keys = coded_ops(case)
            chain = lessons if lessons.words else Chain(params["order"], [coded])
            odd = chain.surprise(coded)
            steps = np.bincount(rows, odd, len(case.sequence)) / np.maximum(1, np.bincount(rows, minlength=len(case.sequence)))
            cost = np.bincount(pairs, odd, len(keys))
            whole = cost.sum() or 1.0
            found = [{"rank": keys[i][0], "op": keys[i][1], "p": cost[i] / whole} for i in np.argsort(-cost, kind="stable")[:20]]
            return Answer(dict(enumerate(steps.tolist())), max(steps, default=0.0), found)
        return answer


METHODS = (FirstError(), Rarity(), TemplateSequence(), OpSequence())
