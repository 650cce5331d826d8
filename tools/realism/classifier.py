"""Asks a classifier which windows are real, with whole recordings left out, and what gives the others away."""
import collections
import random
import sys

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import permutation_importance
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold


MOST = 60  # windows of one recording: each recording weighs the same, and more of its windows tell little more


def drawn(rows):
    """At most MOST rows of each recording, drawn with one seed."""
    groups = collections.defaultdict(list)
    for row in rows: groups[row[0]].append(row)
    draw = random.Random(0)
    return [row for some in groups.values() for row in (some if len(some) <= MOST else draw.sample(some, MOST))]


def folds(groups, truth):
    """Splits by recording; as many as the rarer side has recordings, at most five."""
    sides = [len({g for g, t in zip(groups, truth) if t == side}) for side in (0, 1)]
    return StratifiedGroupKFold(min(5, *sides), shuffle=True, random_state=0)


def ask(name, rows, out=sys.stdout):
    """`rows`: (group, is_real, numbers). Prints AUC by left-out recordings and the features that it rests on. Every recording weighs the same."""
    rows = drawn(rows)
    names = sorted(rows[0][2])
    x = np.array([[r[2][n] for n in names] for r in rows])
    truth = np.array([int(r[1]) for r in rows])
    groups = np.array([r[0] for r in rows])
    sizes = {g: int((groups == g).sum()) for g in set(groups)}
    weights = np.array([1 / sizes[g] for g in groups])
    score = np.full(len(rows), np.nan)
    importance = np.zeros(len(names))
    parts = 0
    for train, test in folds(groups, truth).split(x, truth, groups):
        model = RandomForestClassifier(200, min_samples_leaf=2, class_weight="balanced", random_state=0, n_jobs=2)
        model.fit(x[train], truth[train], sample_weight=weights[train])
        score[test] = model.predict_proba(x[test])[:, 1]
        if len(set(truth[test])) < 2: continue
        shaken = permutation_importance(model, x[test], truth[test], scoring="roc_auc", n_repeats=3, random_state=0)
        importance += shaken.importances_mean
        parts += 1
    auc = roc_auc_score(truth, score, sample_weight=weights)
    real, made = len(set(groups[truth == 1])), len(set(groups[truth == 0]))
    print(f"{name}: AUC {auc:.3f} ({(truth == 1).sum()} windows of {real} real recordings, {(truth == 0).sum()} of {made} simulated)", file=out)
    print("  gives it away (loss of AUC when shaken; median real, simulated):", file=out)
    for k in np.argsort(-importance)[:8]:
        print(f"    {names[k]:22} {importance[k] / max(1, parts):6.3f}   {np.median(x[truth == 1, k]):8.3f} {np.median(x[truth == 0, k]):8.3f}", file=out)
    single = {n: abs(roc_auc_score(truth, x[:, k], sample_weight=weights) - 0.5) + 0.5 for k, n in enumerate(names)}
    best = sorted(single, key=single.get, reverse=True)[:6]
    print("  alone: " + ", ".join(f"{n} {single[n]:.2f}" for n in best), file=out, flush=True)
    return auc
