"""The full list of cases from real engines: every kind of every stack, look-alikes with two seeds. Made in one go or in several.

A case that is there already is passed over, so a list that was interrupted goes on where it was.
"""
import dataclasses
import itertools
import json
import pathlib
import random
import shutil
import time

from lab.course import Runner
from lab.errors import LabError
from lab.stacks import no_such_fault


DISTURBED = 0.5  # processors of other work from which on the summary calls a case disturbed


@dataclasses.dataclass(frozen=True)
class Planned:
    stack: str
    kind: str
    seed: int
    is_fault: bool
    folder: pathlib.Path

    def is_whole(self):
        """True when the case is there. A folder of this name that is something else is an error."""
        if not self.folder.exists():
            return False
        try:
            label = json.loads((self.folder / "label.json").read_text())
            if (label["stack"], label["fault_kind"], label["seed"]) == (self.stack, self.kind, self.seed):
                return True
        except (OSError, ValueError, TypeError, KeyError):
            pass
        raise LabError(f"{self.folder} is there, but is not the case {self.kind} with seed {self.seed} of {self.stack}: remove it")


    def other_work(self):
        """Processors that other programs used while it was made. None where the fault itself is other work on the host, or not known."""
        label = json.loads((self.folder / "label.json").read_text())
        return None if (label["culprit"] or {}).get("layer") == "host" else label["background"].get("whole_case")


def in_order(pairs):
    """(fault, seed) pairs in an order that needs few starts of the engine: what wants a fresh one first, what uses one up last."""
    def options(pair):
        return str(pair[0].options)

    for _, same in itertools.groupby(sorted(pairs, key=options), key=options):
        same = list(same)
        fresh = [p for p in same if p[0].fresh and not p[0].last]
        last = [p for p in same if p[0].last]
        yield from (*fresh[:1], *(p for p in same if not p[0].fresh and not p[0].last), *last[:1])
        for both in itertools.zip_longest(fresh[1:], last[1:]):
            yield from (p for p in both if p)


def impossible(stacks, kinds=()):
    """(stack, kind, why) of what this machine cannot have. `kinds`: only these."""
    return [(s.name, f.kind, why) for s in stacks for f in s.faults.values() if (not kinds or f.kind in kinds) and (why := f.why_not())]


def plan(stacks, out, kinds=(), seed=1):
    """Every case of the list that this machine can have, in an order that the seed draws: kinds of one class stand beside each other in the tables, and if
    they shared a server, all that tells one server from another would tell the class. `kinds`: only these."""
    known = {kind for stack in stacks for kind in stack.faults}
    for kind in kinds:
        if kind not in known:
            raise no_such_fault(kind, [stack.name for stack in stacks])
    planned = []
    for stack in stacks:
        faults = [f for f in stack.faults.values() if (not kinds or f.kind in kinds) and not f.why_not()]
        pairs = [(f, number) for f in faults for number in (seed, seed + 1) if number == seed or f.culprit is None]
        random.Random(f"{seed}/{stack.name}").shuffle(pairs)
        planned += [Planned(stack.name, f.kind, number, f.culprit is not None, out / stack.name / f"{f.kind}-{number}") for f, number in in_order(pairs)]
    return planned


class Progress:
    """Counts cases and guesses how long the rest takes."""

    def __init__(self, total, say):
        self._total, self._say, self._begin, self._done = total, say, time.monotonic(), 0

    def after(self, case, error):
        self._done += 1
        spent = time.monotonic() - self._begin
        rest = spent / self._done * (self._total - self._done)
        self._say(f"[{self._done}/{self._total}] {case.stack} {case.kind} seed {case.seed}: {f'failed ({str(error).splitlines()[0]})' if error else 'made'}; "
                  f"{spent / 60:.0f} min so far, about {rest / 60:.0f} min to go")


def make(stacks, planned, runner=Runner, say=print, tries=1, limit=None, **options):
    """Makes what is not there; what fails is tried again. `limit`: a case during which other programs used more processors is not kept.
    Returns {case: why it failed}."""
    blocked, left = {}, []
    for case in planned:
        try:
            if not case.is_whole():
                left.append(case)
        except LabError as error:
            blocked[case] = str(error)
    say(f"{len(planned)} cases, {len(planned) - len(left) - len(blocked)} of them there, {len(left)} to make")
    failed = {}
    for _ in range(tries):
        failed = {}
        progress = Progress(len(left), say)
        for stack in stacks:
            mine = [case for case in left if case.stack == stack.name]
            if mine:
                failed.update(_of_stack(stack, mine, runner, say, limit, progress, options))
        left = [case for case in left if case in failed]
        if not left:
            break
    return {**blocked, **failed}


def _of_stack(stack, cases, runner, say, limit, progress, options):
    """Makes these cases of a stack. Returns {case: why it failed}."""
    failed, pending = {}, {(case.kind, case.seed): case for case in cases}

    def after(kind, seed, error):
        case = pending.pop((kind, seed))
        other = None if error or limit is None else case.other_work()
        if other is not None and other > limit:
            error = f"other programs used {other} processors while it was made"
            shutil.rmtree(case.folder)
        if error:
            failed[case] = str(error)
        progress.after(case, error)

    try:
        runner(stack, say=say, **options).run([(case.kind, case.seed, case.folder) for case in cases], after)
    except LabError as error:  # of single cases, which are known, or of the stack
        failed.update({case: str(error) for case in pending.values()})
    return failed


def summary(planned, failed, impossible=()):
    """How many cases there are of each stack and kind, and what is missing."""
    whole = [case for case in planned if case.folder.exists() and case not in failed]
    counts = {}
    for case in whole:
        kinds = counts.setdefault(case.stack, {})
        kinds[case.kind] = kinds.get(case.kind, 0) + 1
    return {
        "cases": len(whole), "stacks": len(counts), "fault_kinds": len({c.kind for c in whole if c.is_fault}),
        "look_alikes": len({c.kind for c in whole if not c.is_fault and c.kind != "healthy"}), "counts": counts,
        "disturbed": sorted(f"{c.stack}/{c.folder.name}" for c in whole if (c.other_work() or 0) > DISTURBED),
        "impossible": [dict(zip(("stack", "kind", "why"), one)) for one in impossible],
        "failed": [{"stack": c.stack, "kind": c.kind, "seed": c.seed, "why": why} for c, why in failed.items()],
    }


def text(made):
    """The summary for people."""
    kinds = sorted({kind for counts in made["counts"].values() for kind in counts})
    stacks = sorted(made["counts"])
    lines = [f"{'kind':<24}" + "".join(f"{name:>10}" for name in stacks)]
    lines += [f"{kind:<24}" + "".join(f"{made['counts'][name].get(kind, ''):>10}" for name in stacks) for kind in kinds]
    lines.append(f"{'all':<24}" + "".join(f"{sum(made['counts'][name].values()):>10}" for name in stacks))
    lines.append(f"{made['cases']} cases of {made['stacks']} stacks: {made['fault_kinds']} kinds of faults, "
                 f"{made['look_alikes']} kinds of look-alikes beside healthy runs")
    if made["disturbed"]:
        lines.append(f"{len(made['disturbed'])} of them were made while other programs used more than {DISTURBED} processors")
    lines += [f"not possible here: {i['stack']} {i['kind']}: {i['why']}" for i in made["impossible"]]
    lines += [f"not made: {f['stack']} {f['kind']} seed {f['seed']}: {f['why'].splitlines()[0]}" for f in made["failed"]]
    return "\n".join(lines)
