"""Baselines that ask how unusual a step's operator times are in its own run."""
import warnings

import numpy as np

from lab.baselines.deviation import candidates, op_excess, step_z, top_mean, worst
from lab.baselines.method import Method
from lab.baselines.task import Answer


class Mixture(Method):
    name = "gmm"
    about = "a Gaussian mixture of each operator's time in steps of one kind; the least likely, weighted by the time it costs"
    grid = ({"parts": 1}, {"parts": 2}, {"parts": 3})
    defaults = (20.0, 20.0)
    most_ops = 12

    def fit(self, train, params, seed):
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import GaussianMixture

        def unlikely(times):
            x = np.log(np.maximum(times, 1000.0)).reshape(-1, 1)
            parts = min(params["parts"], len(x) // 3)
            if parts < 1 or np.ptp(x) < 1e-9:
                return np.zeros(len(x))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = GaussianMixture(parts, reg_covar=1e-3, random_state=0).fit(x)
            return -model.score_samples(x)

        def answer(case):
            score = np.zeros_like(case.self_ns)
            excess = np.maximum(op_excess(case)[1], 0)
            for rows in case.groups():
                for column in range(min(self.most_ops, len(case.ops))):
                    score[rows, column] = unlikely(case.self_ns[rows, column])
            weights = np.maximum(score, 0) * excess / np.maximum(case.time[:, None], 1)
            steps = 100 * weights.sum(axis=1) if len(case.ops) else np.zeros(len(case.time))
            return Answer(dict(enumerate(steps)), top_mean(steps), candidates(case, weights, worst(steps)))
        return answer


class Vectors(Method):
    """Steps as vectors of standardized operator times and their own time."""

    def model(self, params, count):
        raise NotImplementedError

    def fit(self, train, params, seed):
        def answer(case):
            z, excess = op_excess(case)
            rows = np.clip(np.column_stack([step_z(case), z]), -20, 20)
            scores = self.unusual(rows, params) if len(rows) >= 5 else step_z(case)
            weights = np.maximum(excess, 0) * np.maximum(z, 0)
            return Answer(dict(enumerate(scores)), top_mean(scores), candidates(case, weights, worst(scores)))
        return answer


class IsolationForest(Vectors):
    name = "iforest"
    about = "isolation forest of a run's steps"
    grid = ({"trees": 100, "share": 1.0}, {"trees": 100, "share": 0.5})
    defaults = (0.6, 0.6)

    @staticmethod
    def unusual(rows, params):
        from sklearn.ensemble import IsolationForest as Forest
        return -Forest(n_estimators=params["trees"], max_samples=params["share"], random_state=0).fit(rows).score_samples(rows)


class LocalOutlier(Vectors):
    name = "lof"
    about = "local outlier factor of a run's steps"
    grid = ({"neighbours": 3}, {"neighbours": 8}, {"neighbours": 20})
    defaults = (2.0, 2.0)

    @staticmethod
    def unusual(rows, params):
        from sklearn.neighbors import LocalOutlierFactor
        rows = rows + np.random.default_rng(0).normal(0, 1e-3, rows.shape)  # equal rows have no density
        return -LocalOutlierFactor(min(params["neighbours"], len(rows) - 1)).fit(rows).negative_outlier_factor_


class OneClass(Vectors):
    name = "ocsvm"
    about = "one-class support vector machine of a run's steps"
    grid = ({"nu": 0.05}, {"nu": 0.2}, {"nu": 0.5})
    defaults = (0.0, 0.0)

    @staticmethod
    def unusual(rows, params):
        from sklearn.svm import OneClassSVM
        return -OneClassSVM(nu=params["nu"], gamma="scale").fit(rows).decision_function(rows)


class Distributions(Vectors):
    """Detectors of PyOD without parameters to choose, which scikit-learn does not have: how far each value lies in the tails."""
    grid = ({},)
    defaults = (30.0, 30.0)

    @classmethod
    def unusual(cls, rows, params):
        return cls.detector().fit(rows).decision_scores_


class Ecod(Distributions):
    name = "ecod"
    about = "PyOD's ECOD: tails of each value's empirical distribution in a run"

    @staticmethod
    def detector():
        from pyod.models.ecod import ECOD
        return ECOD()


class Copod(Distributions):
    name = "copod"
    about = "PyOD's COPOD: tails of an empirical copula of a run's steps"

    @staticmethod
    def detector():
        from pyod.models.copod import COPOD
        return COPOD()


METHODS = (Mixture(), IsolationForest(), LocalOutlier(), OneClass(), Ecod(), Copod())
