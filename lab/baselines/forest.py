"""Learned baselines: a random forest on everything, and what must not work."""
import random
import re
import zlib

import numpy as np

from lab.baselines.deviation import op_excess, step_z, top_mean
from lab.baselines.method import Learned
from lab.baselines.task import Answer, once
from lab.baselines.tune import NO_FAULT, same

LEVELS = ("warning", "error", "fatal")
MOST_HEALTHY = 3000  # steps that a forest learns from, drawn by the seed: both sides weigh the same, and more healthy steps cost time and change little


@once
def step_rows(case):
    """One row a step: its time among its kind, its operators, the same step on other ranks, log records in it."""
    z = step_z(case)
    op_z, excess = op_excess(case)
    share = excess / np.maximum(case.time[:, None], 1)
    logs = np.zeros((len(z), len(LEVELS)))
    for log in case.logs:
        if log["step"] is not None and log["level"] in LEVELS:
            logs[log["step"], LEVELS.index(log["level"])] += 1
    others = np.zeros(len(z))
    for index in set(case.index.tolist()):
        rows = np.flatnonzero(case.index == index)
        others[rows] = np.log(case.time[rows] / np.median(case.time[rows]))
    late = np.zeros(len(z))
    for one in case.collectives:
        if one["step"] is not None and one["members"]:
            arrivals = [m["arrival_ns"] for m in one["members"] if m["arrival_ns"] is not None]
            if len(arrivals) > 1:
                late[one["step"]] = max(late[one["step"]], (max(arrivals) - min(arrivals)) / case.time[one["step"]])
    top = lambda x: x.max(axis=1) if x.shape[1] else np.zeros(len(z))
    return np.column_stack([z, top(op_z), top(share), np.maximum(share, 0).sum(axis=1), others, late, logs])


def case_row(case, scores):
    """One row a case, for its class."""
    rows = step_rows(case)
    if not len(rows):
        rows, scores = np.zeros((1, 9)), np.zeros(1)
    worst = rows[np.argsort(-scores)[:3]].mean(axis=0)
    levels = [sum(log["level"] == level for log in case.logs) for level in LEVELS]
    return np.concatenate([worst, rows.max(axis=0), [np.mean(scores > 0.5), len(case.ranks)], levels])


def op_rows(case, scores):
    """(rank, operator) pairs and one row each: how it changes in the steps that look abnormal."""
    z, excess = op_excess(case)
    keys, out = [], []
    bad = scores >= np.quantile(scores, 0.8) if len(scores) else scores.astype(bool)
    for rank in sorted(set(case.rank), key=str):
        mine = np.array([r == rank for r in case.rank])
        rows = mine & bad
        if not rows.any():
            continue
        for column, op in enumerate(case.ops):
            keys.append((rank, op))
            out.append([z[rows, column].mean(), z[rows, column].max(), excess[rows, column].sum() / case.time[rows].sum(),
                        case.self_ns[mine, column].sum() / case.time[mine].sum()])
    return keys, np.array(out).reshape(len(keys), 4)


def chances(forest, rows):
    """What `forest.predict_proba` says, tree by tree: for a case's few rows, checking and handing out its work takes five times as long as asking the trees."""
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    out = np.zeros((len(rows), len(forest.classes_)))
    for tree in forest.estimators_:
        votes = tree.tree_.predict(rows).reshape(len(rows), -1)
        out += votes / votes.sum(axis=1, keepdims=True)
    return np.round(out / len(forest.estimators_), 12)  # votes that add up in another order are no other votes


class Forest(Learned):
    name = "random-forest"
    about = "random forests on joined features of traces and logs: steps, then class, then rank and operator"
    grid = ({"trees": 60, "leaf": 1}, {"trees": 60, "leaf": 3}, {"trees": 150, "leaf": 2})
    defaults = (0.5, 0.5)
    own_class = True

    def fit(self, train, params, seed):
        from sklearn.ensemble import RandomForestClassifier

        def forest(rows, truth):
            if len(rows) == 0 or len(set(truth)) < 2:
                return None
            return RandomForestClassifier(params["trees"], min_samples_leaf=params["leaf"], class_weight="balanced", random_state=seed % (1 << 31)).fit(rows, truth)

        healthy, bad = [], []
        for case, lesson in train:
            if lesson["steps_told"]:
                ignored, abnormal = set(lesson["ignored_steps"]), set(lesson["abnormal_steps"])
                for step, row in enumerate(step_rows(case)):
                    if step not in ignored:
                        (bad if step in abnormal else healthy).append(row)
        if len(healthy) > MOST_HEALTHY:
            healthy = random.Random(seed).sample(healthy, MOST_HEALTHY)
        steps = forest(healthy + bad, [False] * len(healthy) + [True] * len(bad))

        def scores_of(cases):
            """By case, the scores of its steps; asked all at once, as each question costs the same whatever its length."""
            ends = np.cumsum([len(case.time) for case in cases])
            if steps is None or not len(ends) or not ends[-1]:
                return [np.zeros(len(case.time)) for case in cases]
            found = chances(steps, np.concatenate([step_rows(case) for case in cases]))[:, list(steps.classes_).index(True)]
            return np.split(found, ends[:-1])

        known = scores_of([case for case, _ in train])
        classes = forest([case_row(case, scores) for (case, _), scores in zip(train, known)], [lesson["class"] for _, lesson in train])
        rows, truth = [], []
        for (case, lesson), scores in zip(train, known):
            if lesson["is_fault"] and lesson["ops"]:
                keys, some = op_rows(case, scores)
                rows += list(some)
                truth += [any(same(op, name) for name in lesson["ops"]) and lesson["rank"] in (None, rank) for rank, op in keys]
        ops = forest(rows, truth)

        def answer(case):
            scores = scores_of([case])[0]
            fault, cls = top_mean(scores), None
            if classes is not None:
                p = dict(zip(classes.classes_, chances(classes, [case_row(case, scores)])[0]))
                fault = 1 - p.get(NO_FAULT, 0.0)
                faults = [c for c in p if c != NO_FAULT]
                cls = max(faults, key=lambda c: p[c]) if faults else None
            keys, some = op_rows(case, scores)
            weight = chances(ops, some)[:, list(ops.classes_).index(True)] if ops is not None and len(keys) else np.zeros(len(keys))
            order = sorted(range(len(keys)), key=lambda i: (-weight[i], i))[:20]
            found = [{"rank": keys[i][0], "op": keys[i][1], "class": cls, "p": float(weight[i])} for i in order] or [{"class": cls, "p": 1.0}]
            return Answer(dict(enumerate(scores)), fault, found)
        return answer


class NamesAndSizes(Learned):
    """A check for leaks: nothing that it sees is a reason for a fault."""
    name = "names-and-sizes"
    about = "leak check: random forest on names, sizes, counts and order of files and records alone"
    grid = ({"trees": 150},)
    defaults = (0.5, 0.5)
    own_class = True

    @staticmethod
    @once
    def row(case):
        kinds = ("kineto", "log", "otlp", "prometheus", "host-counters", "log-arrival")
        out = []
        for kind in kinds:
            some = [f for f in case.files if f["kind"] == kind]
            sizes, records = [f["bytes"] for f in some] or [0], [f["records"] for f in some] or [0]
            # Which file of its kind is the largest could give the culprit away.
            out += [len(some), sum(sizes), max(sizes), sizes.index(max(sizes)), sizes.index(min(sizes)), sum(records), records.index(max(records)),
                    records.index(min(records)), sum(sizes) / max(1, sum(records)), sum(len(f["path"]) for f in some)]
        # Names: how often each of 16 groups of words stands in them. Order: of the files as they were read, and of the ranks.
        words = [0] * 16
        for file in case.files:
            for word in re.split(r"[^a-z]+", file["path"].lower()):
                words[zlib.crc32(word.encode()) % 16] += 1
        order = zlib.crc32(" ".join(f["kind"] for f in case.files).encode()) % 97
        number = int("".join(c for c in case.name if c.isdigit()) or 0)
        return [*out, *words, order, *(list(case.ranks) + [-1] * 4)[:4], len(case.time), len(case.logs), len(case.ranks), len(case.collectives), number]

    def fit(self, train, params, seed):
        from sklearn.ensemble import RandomForestClassifier

        def forest(truth):
            if len(set(truth)) < 2:
                return None
            return RandomForestClassifier(params["trees"], random_state=seed % (1 << 31)).fit([self.row(case) for case, _ in train], truth)

        classes = forest([lesson["class"] for _, lesson in train])
        ranks = forest([str(lesson["rank"]) for _, lesson in train])
        ops = forest([lesson["ops"][0] if lesson["ops"] else "" for _, lesson in train])

        def guess(model, case):
            return dict(zip(model.classes_, chances(model, [self.row(case)])[0])) if model is not None else {}

        def answer(case):
            p, by_rank, by_op = guess(classes, case), guess(ranks, case), guess(ops, case)
            fault = 1 - p.get(NO_FAULT, 0.0) if p else 0.5
            faults = sorted((c for c in p if c != NO_FAULT), key=lambda c: -p[c])
            rank = max((r for r in by_rank if r != "None"), key=lambda r: by_rank[r], default=None)
            names = sorted((op for op in by_op if op), key=lambda op: -by_op[op]) or [None]
            found = [{"rank": int(rank) if rank is not None else None, "op": op, "class": faults[0] if faults else None, "p": by_op.get(op, 0.0)} for op in names[:20]]
            return Answer({step: fault for step in range(len(case.time))}, fault, found)
        return answer


class Chance(Learned):
    name = "chance"
    about = "draws status, class, rank and operator from lessons of like runs (same kinds of files, ranks and operators); what knowing the stack alone gives"
    defaults = (0.5, 0.5)
    own_class = True

    @staticmethod
    def likeness(case):
        return sorted({f["kind"] for f in case.files}), len(case.ranks), sorted(case.ops[:3])

    def fit(self, train, params, seed):
        def answer(case):
            draw = random.Random(f"{seed}/{case.name}")
            lessons = [(other, lesson) for other, lesson in train if self.likeness(other) == self.likeness(case)] or train
            faults = [lesson for _, lesson in lessons if lesson["is_fault"]]
            told = [(len(lesson["abnormal_steps"]), len(other.time) - len(lesson["ignored_steps"])) for other, lesson in lessons if lesson["steps_told"]]
            usual = sum(bad for bad, _ in told) / max(1, sum(count for _, count in told))
            drawn = draw.sample(faults, len(faults))
            found = [{"rank": lesson["rank"], "op": lesson["ops"][0] if lesson["ops"] else None, "class": lesson["class"], "p": 1 / len(drawn)} for lesson in drawn[:20]]
            fault = len(faults) / len(lessons) if lessons else 0.5
            return Answer({step: usual for step in range(len(case.time))}, fault + 1e-6 * draw.random(), found)
        return answer


METHODS = (Forest(), NamesAndSizes(), Chance())
