"""Baselines that look at the time of whole steps."""
import numpy as np

from lab.baselines.deviation import candidates, op_excess, rank_candidates, robust_z, step_z, top_mean, worst
from lab.baselines.method import Method
from lab.baselines.task import Answer


class ThreeSigma(Method):
    name = "3sigma"
    about = "mean and standard deviation of the times of steps of one kind"
    grid = ({"robust": False}, {"robust": True})

    def fit(self, train, params, seed):
        def answer(case):
            if params["robust"]:
                z = step_z(case)
            else:
                z = np.zeros(len(case.time))
                for rows in case.groups():
                    z[rows] = (case.time[rows] - case.time[rows].mean()) / max(case.time[rows].std(), 1.0)
            return Answer(dict(enumerate(z)), top_mean(z), rank_candidates(case, {row: z[row] for row in worst(z)}))
        return answer


class Residual(Method):
    name = "gb-residual"
    about = "gradient boosting of a step's time on its shape, tested on steps it did not learn from; what is left over"
    grid = ({"trees": 20, "depth": 1}, {"trees": 20, "depth": 2}, {"trees": 40, "depth": 2})

    def fit(self, train, params, seed):
        from sklearn.ensemble import GradientBoostingRegressor
        from sklearn.model_selection import KFold, cross_val_predict

        def answer(case):
            if len(case.time) < 6:
                z = step_z(case)
            else:
                kinds = {kind: i for i, kind in enumerate(sorted(set(case.kind)))}
                rows = np.column_stack([case.shape, [kinds[kind] for kind in case.kind]])
                model = GradientBoostingRegressor(n_estimators=params["trees"], max_depth=params["depth"], loss="huber", random_state=0)
                guess = cross_val_predict(model, rows, np.log(case.time), cv=KFold(3, shuffle=True, random_state=0))
                z = robust_z(np.log(case.time) - guess, log=False)
            weights = np.maximum(op_excess(case)[1], 0)
            return Answer(dict(enumerate(z)), top_mean(z), candidates(case, weights, worst(z)))
        return answer


class NSigma(Method):
    """The window: the stretch of steps that differs most from the rest."""
    name = "nsigma"
    about = "operators by how many standard deviations they change from the normal to the abnormal window"
    robust = False
    grid = ({"shortest": 1}, {"shortest": 3})

    def fit(self, train, params, seed):
        def answer(case):
            z = step_z(case)
            inside = self.window(case, z, params["shortest"])
            if inside is None:
                return Answer(dict(enumerate(z)), 0.0, [])
            scores = np.where(inside, z, np.minimum(z, 0))
            found = []
            for rank in sorted(set(case.rank), key=str):
                mine = np.array([r == rank for r in case.rank])
                before, after = case.self_ns[mine & ~inside], case.self_ns[mine & inside]
                if len(before) < 2 or len(after) == 0:
                    continue
                found += [(change, rank, op) for change, op in zip(self.change(before, after), case.ops)]
            found.sort(key=lambda f: (-f[0], str(f[1:])))
            return Answer(dict(enumerate(scores)), float(np.mean(z[inside])), [{"rank": rank, "op": op, "p": 1 / (i + 1)} for i, (_, rank, op) in enumerate(found[:20])])
        return answer

    @staticmethod
    def window(case, z, shortest):
        """Steps of the stretch of indices whose mean lies highest above the rest, weighted by its length."""
        indices, places = np.unique(case.index, return_inverse=True)
        mean = np.full(len(indices), -np.inf)
        np.maximum.at(mean, places, z)
        if len(mean) < shortest + 3:
            return None
        total, best = mean.sum(), None
        sums = np.concatenate([[0], np.cumsum(mean)])
        for a in range(len(mean)):
            b = np.arange(a + shortest, min(len(mean), a + len(mean) // 2) + 1)
            if not len(b):
                break
            n, m = b - a, len(mean) - (b - a)
            gain = ((sums[b] - sums[a]) / n - (total - sums[b] + sums[a]) / m) * np.sqrt(n * m / (n + m))
            top = int(np.argmax(gain))
            if best is None or gain[top] > best[0]:
                best = (gain[top], indices[a], indices[b[top] - 1])
        return (case.index >= best[1]) & (case.index <= best[2])

    @staticmethod
    def change(before, after):
        return (after - before.mean(axis=0)).max(axis=0) / np.maximum(before.std(axis=0), 1000.0)


class Baro(NSigma):
    name = "baro"
    about = "the same with median and quartiles (as BARO, Pham et al. 2024, ranks metrics)"

    @staticmethod
    def change(before, after):
        low, high = np.percentile(before, (25, 75), axis=0)
        return (after - np.median(before, axis=0)).max(axis=0) / np.maximum(high - low, 1000.0)


METHODS = (ThreeSigma(), Residual(), NSigma(), Baro())
