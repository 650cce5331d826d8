"""Choosing a method's parameters and thresholds on the cases that it may learn from, and answering the others."""
import collections
import dataclasses
import json
import math
import time

import numpy as np

NO_FAULT = "NOT_A_FAULT"


def same(a, b):
    """The rule by which names are compared: letters and digits, one holds the other."""
    a, b = ("".join(c for c in str(x or "").lower() if c.isalnum()) for x in (a, b))
    if min(len(a), len(b)) < 3:
        return a == b and a != ""
    return a in b or b in a


STEP_PRIOR = 0.01  # share of abnormal steps for which step thresholds are chosen: the figure that methods are compared by


def rates(positive, flagged):
    return float(np.mean(flagged[positive])), float(np.mean(flagged[~positive]))


def f1_at_prior(positive, flagged):
    """F1 if a share STEP_PRIOR of all were positive."""
    hits, alarms = rates(positive, flagged)
    found = STEP_PRIOR * hits
    return 2 * found / (STEP_PRIOR + found + (1 - STEP_PRIOR) * alarms)


def balanced(positive, flagged):
    """Mean of the shares that are right among positives and among negatives: 0.5 for whoever always says the same."""
    hits, alarms = rates(positive, flagged)
    return (hits + 1 - alarms) / 2


def best_threshold(scores, positive, goal, default):
    """The threshold that is best by `goal`, in the middle between two scores. `default` where there is nothing to learn from."""
    scores, positive = np.asarray(scores, dtype=float), np.asarray(positive, dtype=bool)
    if not positive.any() or positive.all():
        return default, None
    levels = np.unique(scores)
    if len(levels) > 400:
        # Few false alarms decide at a low prior, so the upper end is looked at more closely.
        levels = np.unique(np.quantile(levels, np.concatenate([np.linspace(0, 0.9, 200), np.linspace(0.9, 1, 200)])))
    cuts = [levels[0] - 1, *((levels[1:] + levels[:-1]) / 2), levels[-1] + 1]
    best = max(cuts, key=lambda cut: (goal(positive, scores >= cut), cut))
    return float(best), goal(positive, scores >= best)


def op_hits(answer, lesson):
    return any(same(answer.candidates[0].get("op"), name) for name in lesson["ops"]) if answer.candidates else False


def judge(train, answers, defaults):
    """Thresholds for steps and cases on the lessons, and how good they are there."""
    step_scores, step_truth, case_scores, case_truth, ops = [], [], [], [], []
    for (case, lesson), answer in zip(train, answers):
        case_scores.append(answer.case_score)
        case_truth.append(lesson["is_fault"])
        if lesson["is_fault"] and lesson["ops"]:
            ops.append(op_hits(answer, lesson))
        if not lesson["steps_told"]:
            continue
        abnormal, ignored = set(lesson["abnormal_steps"]), set(lesson["ignored_steps"])
        for step in range(len(case.time)):
            if step not in ignored:
                step_scores.append(answer.steps.get(step, -math.inf))
                step_truth.append(step in abnormal)
    finite = [s for s in step_scores if math.isfinite(s)]
    floor = min(finite, default=0) - 1
    step_cut, step_f1 = best_threshold([s if math.isfinite(s) else floor for s in step_scores], step_truth, f1_at_prior, defaults[0])
    case_cut, case_f1 = best_threshold(case_scores, case_truth, balanced, defaults[1])
    parts = {"step_f1_at_1": step_f1, "case_balanced": case_f1, "op_ac1": float(np.mean(ops)) if ops else None}
    told = [value for value in parts.values() if value is not None]
    return step_cut, case_cut, parts, float(np.mean(told)) if told else 0.0


def confidence_curve(train, answers, cut):
    """Share of faults among lessons by distance from the threshold, as a logistic curve; flat without lessons."""
    if len({lesson["is_fault"] for _, lesson in train}) < 2:
        return lambda score: 0.5
    from sklearn.linear_model import LogisticRegression
    scale = float(np.std([a.case_score for a in answers])) or 1.0
    rows = np.array([[(a.case_score - cut) / scale] for a in answers])
    model = LogisticRegression().fit(rows, [lesson["is_fault"] for _, lesson in train])
    return lambda score: float(model.predict_proba([[(score - cut) / scale]])[0, 1])


def solve(task, method):
    """Answers a task. `method`: name, grid (list of parameters), defaults (thresholds without lessons), lessons and asker of `Method`."""
    tried, best = [], None
    for params in method.grid:
        begin = time.monotonic()
        lessons = method.lessons(task.train, params, task)
        step_cut, case_cut, parts, goal = judge(task.train, lessons, method.defaults)
        tried.append({"params": params, "goal": round(goal, 4), **{k: None if v is None else round(v, 4) for k, v in parts.items()},
                      "seconds": round(time.monotonic() - begin, 2)})
        if best is None or goal > best[0]:
            best = (goal, params, step_cut, case_cut, lessons)
        if not task.train:
            break
    _, params, step_cut, case_cut, lessons = best
    classes = collections.Counter(lesson["class"] for _, lesson in task.train if lesson["is_fault"])
    usual = classes.most_common(1)[0][0] if classes else "UNKNOWN"
    sure = confidence_curve(task.train, lessons, case_cut)
    ask = method.asker(task.train, params, task)
    for name in task.test:
        said, wall_ns = ask(task.case(name))
        abnormal = said.case_score >= case_cut
        p = sure(said.case_score)
        # A copy: what was said is kept for other folds, whose usual class may be another.
        said = dataclasses.replace(said, candidates=[{"class": usual, **candidate} for candidate in said.candidates])
        task.write(name, "abnormal" if abnormal else "normal", p if abnormal else 1 - p, said, step_cut, wall_ns)
    task.remarks.write_text(json.dumps({"method": method.name, "about": method.about, "search": tried, "chosen": params, "step_threshold": step_cut,
                                        "case_threshold": case_cut, "class": "its own" if method.own_class else f"the usual one, {usual}"}) + "\n")
