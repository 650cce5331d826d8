"""Baselines that name a straggler from collectives alone."""
import numpy as np

from lab.baselines.deviation import robust_z, top_mean
from lab.baselines.method import Method
from lab.baselines.task import Answer


class Straggler(Method):
    def fit(self, train, params, seed):
        def answer(case):
            by_step, by_rank = {}, {}
            for one in case.collectives:
                members = [m for m in one["members"] if m["arrival_ns"] is not None and m["end_ns"] is not None]
                if len(members) < 2:
                    continue
                rank, amount = self.blame(members)
                by_rank.setdefault(rank, {}).setdefault(one["op"], []).append(amount)
                if one["step"] is not None:
                    by_step[one["step"]] = by_step.get(one["step"], 0.0) + amount
            if not by_step:
                return Answer({}, 0.0, [])
            steps = sorted(by_step)
            z = robust_z(np.array([by_step[s] for s in steps]))
            order = sorted(((sum(v), rank, op) for rank, ops in by_rank.items() for op, v in ops.items()), key=lambda f: (-f[0], str(f[1:])))
            whole = sum(f[0] for f in order) or 1.0
            found = [{"rank": rank, "op": op, "class": "STRAGGLER_RANK", "p": cost / whole} for cost, rank, op in order]
            return Answer(dict(zip(steps, z)), top_mean(z), found)
        return answer


class Longest(Straggler):
    name = "longest-collective"
    about = "the rank that spends most time in collectives (the common mistake: it waits)"
    own_class = True

    @staticmethod
    def blame(members):
        one = max(members, key=lambda m: m["end_ns"] - m["arrival_ns"])
        return one["rank"], float(one["end_ns"] - one["arrival_ns"])


class Last(Straggler):
    name = "last-arrival"
    about = "the rank that arrives last, by how much later than the median of the others"
    own_class = True

    @staticmethod
    def blame(members):
        one = max(members, key=lambda m: m["arrival_ns"])
        others = [m["arrival_ns"] for m in members if m is not one]
        return one["rank"], float(one["arrival_ns"] - np.median(others))


METHODS = (Longest(), Last())
