"""How far steps and their operators lie from others of their kind, robustly. What most baselines are made of."""
import numpy as np

from lab.baselines.task import once


def robust_z(values, log=True):
    """(values - median) / spread; of logarithms, so that a factor counts the same everywhere. Spread: from quartiles, at least 2 %."""
    x = np.log(np.maximum(values, 1.0)) if log else np.asarray(values, dtype=float)
    middle = np.median(x, axis=0)
    low, high = np.percentile(x, (25, 75), axis=0)
    return (x - middle) / np.maximum((high - low) / 1.349, 0.02)


@once
def step_z(case):
    """One figure a step: its time among steps of its kind."""
    out = np.zeros(len(case.time))
    for rows in case.groups():
        out[rows] = robust_z(case.time[rows])
    return out


@once
def op_excess(case):
    """(z, excess in ns) of each step and operator among steps of its kind."""
    z = np.zeros_like(case.self_ns)
    excess = np.zeros_like(case.self_ns)
    for rows in case.groups():
        z[rows] = robust_z(case.self_ns[rows])
        excess[rows] = case.self_ns[rows] - np.median(case.self_ns[rows], axis=0)
    return z, excess


def candidates(case, weights, rows):
    """Ranks and operators by their weight (steps x ops) in these steps, best first."""
    totals = {}
    for row in rows:
        for column in np.argsort(-weights[row])[:8]:
            if weights[row, column] > 0:
                key = (case.rank[row], case.ops[column])
                totals[key] = totals.get(key, 0.0) + float(weights[row, column])
    if not totals:
        return rank_candidates(case, {row: 1.0 for row in rows})
    whole = sum(totals.values())
    order = sorted(totals, key=lambda key: (-totals[key], str(key)))
    return [{"rank": rank, "op": op, "p": totals[rank, op] / whole} for rank, op in order[:20]]


def rank_candidates(case, scores):
    """Ranks by the sum of their steps' scores; without an operator."""
    totals = {}
    for row, score in scores.items():
        totals[case.rank[row]] = totals.get(case.rank[row], 0.0) + max(0.0, float(score))
    whole = sum(totals.values()) or 1.0
    return [{"rank": rank, "p": totals[rank] / whole} for rank in sorted(totals, key=lambda rank: (-totals[rank], str(rank)))]


def worst(scores, share=0.2):
    """Rows with the largest scores: that share of all, at least one."""
    count = max(1, int(len(scores) * share)) if len(scores) else 0
    return list(np.argsort(-np.asarray(scores), kind="stable")[:count])


def top_mean(scores):
    """A case's score: the mean of its three largest steps, so that a single outlier is not enough."""
    return float(np.mean(np.sort(scores)[-3:])) if len(scores) else 0.0
