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


class HtaStraggler(Method):
    """The published definition of HolisticTraceAnalysis' get_potential_stragglers, on collectives of any backend: of the last long collective of each name in
    each step, the name whose time differs most between ranks; in each step the ranks that begin it latest; ranks by how often they are. The tool itself takes
    only kernels whose names begin with ncclKernel and steps named ProfilerStep, which few runs have. It raises no alarm: how late the latest are is taken for one."""
    name = "hta-straggler"
    about = "HolisticTraceAnalysis' straggler rule: the ranks that most often begin the most uneven collective of a step last"
    own_class = True
    grid = ({"candidates": 1}, {"candidates": 2})
    shortest = 0.01  # of the mean time of a step

    def fit(self, train, params, seed):
        def answer(case):
            steps, mean = self.last_long(case)
            spread = {}
            for (op, _), members in steps.items():
                spread.setdefault(op, []).append(np.std([m["end_ns"] - m["arrival_ns"] for m in members], ddof=1))
            if not spread:
                return Answer({}, 0.0, [])
            op = max(sorted(spread), key=lambda name: np.mean(spread[name]))
            counts, scores = {}, {}
            for (name, step), members in steps.items():
                if name != op:
                    continue
                late = sorted(members, key=lambda m: (-m["arrival_ns"], str(m["rank"])))
                scores[step] = (late[0]["arrival_ns"] - np.median([m["arrival_ns"] for m in late[1:]])) / mean
                for one in late[:params["candidates"]]:
                    counts[one["rank"]] = counts.get(one["rank"], 0) + 1
            order = sorted(counts, key=lambda rank: (-counts[rank], str(rank)))
            found = [{"rank": rank, "op": op, "class": "STRAGGLER_RANK", "p": counts[rank] / sum(counts.values())} for rank in order]
            return Answer(scores, top_mean(np.array(list(scores.values()))), found)
        return answer

    def last_long(self, case):
        """Members of the last long collective by (name, step), and the mean time of a step. The first step is left out, as the tool does."""
        mean = float(np.mean(case.time)) if len(case.time) else 1.0
        out = {}
        for one in case.collectives:
            members = [m for m in one["members"] if m["arrival_ns"] is not None and m["end_ns"] is not None]
            if one["step"] is None or case.index[one["step"]] == 0 or len(members) < 2:
                continue
            if max(m["end_ns"] - m["arrival_ns"] for m in members) < self.shortest * mean:
                continue
            known = out.get((one["op"], one["step"]))
            if known is None or members[0]["arrival_ns"] >= known[0]["arrival_ns"]:
                out[one["op"], one["step"]] = members
        return out, mean


METHODS = (Longest(), Last(), HtaStraggler())
