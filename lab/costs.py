"""What the steps of a run cost, at one place: from the features that the scorer hands to methods under test (docs/reference/features.md)."""
import bisect
import collections
import dataclasses
import functools
import heapq
import itertools
import json
import pathlib
import re
import statistics
import subprocess

from lab.errors import LabError

FEWEST, NEAREST = 3, 5  # comparable steps below which nothing is said; how many of the same kind are taken where there are none of the same shape


@dataclasses.dataclass(eq=False)
class Row:
    """A step of one rank. No two are the same one."""
    rank: int | None
    index: int
    kind: str
    shape: str
    size: float      # what it computes, in the unit of its run
    begin: int
    end: int
    gap: int         # before it, while sequences ran
    observer: bool
    ops: dict = dataclasses.field(default_factory=dict)  # name -> ns
    wait: int = 0      # in collectives, for other ranks
    transfer: int = 0  # of collectives, after all have arrived

    def whole(self):
        return max(1, self.end - self.begin + self.gap)


@functools.cache
def letters(name):
    return re.sub(r"[^a-z0-9]", "", name.lower())


@functools.cache
def same_name(name, wanted):
    """As the scorer compares names."""
    a, b = letters(name), letters(wanted)
    return a == b or min(len(a), len(b)) >= 3 and (a in b or b in a)


def gap_of(step, first):
    """Idle time before it, where sequences ran through it: before a prompt alone, or the first step, nobody may have had work."""
    return 0 if first or step["kind"] in ("prefill", "empty") else max(0, step["gap_ns"])


def add_collective(rows, record):
    """Waits and transfer go to the steps in which the members arrive."""
    for member in record["members"]:
        mine = rows.get(member["rank"], [])
        at = bisect.bisect_right(mine, member["arrival_ns"], key=lambda row: row.begin) - 1
        if at >= 0 and member["arrival_ns"] < mine[at].end:
            mine[at].wait += max(0, member["wait_ns"])
            mine[at].transfer += max(0, record["transfer_ns"])


def parse(lines):
    """Rows by rank, in order of time."""
    by_number, rows = {}, {}
    for line in lines:
        record = json.loads(line)
        if record["type"] == "step":
            mine = rows.setdefault(record["rank"], [])
            size = record["work"] if record["work"] >= 0 else record["new_tokens"]
            row = Row(record["rank"], record["index"], record["kind"], record["shape"] or record["kind"], float(size), record["begin_ns"], record["end_ns"],
                      gap_of(record, not mine), record["observer"])
            mine.append(row)
            by_number[record["step"]] = row
        elif record["type"] == "op" and record["step"] in by_number:
            ops = by_number[record["step"]].ops
            ops[record["op"]] = ops.get(record["op"], 0) + record["total_ns"]
        elif record["type"] == "collective":
            add_collective(rows, record)
    return rows


def read(teller, run):
    """The same, of a case or a recorded run. Nothing but its traces is read."""
    source = pathlib.Path(run) / "traces"
    if not source.is_dir():
        return {}
    done = subprocess.run([teller, "export", "--to", "features", source, "-q"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 3):
        raise LabError(f"{run}: {done.stderr.strip() or 'cannot be read'}")
    return parse(done.stdout.splitlines())


@functools.cache
def at_place(place, names=()):
    """A function from a row to what it costs there, in ns; what it said once is kept."""
    return functools.cache({"step": lambda row: row.end - row.begin, "gap": lambda row: row.gap, "own": lambda row: max(0, row.whole() - row.wait),
                            "whole": Row.whole, "transfer": lambda row: row.transfer,
                            "operator": lambda row: sum(ns for name, ns in row.ops.items() if any(same_name(name, wanted) for wanted in names))}[place])


class Peers:
    """Steps that others are compared with: of their kind and shape, else those of their kind that are nearest in size."""

    def __init__(self, rows):
        self.rows = rows
        self.of_kind, self.of_shape = collections.defaultdict(list), collections.defaultdict(list)  # positions; of a kind by size
        for at, row in enumerate(rows):
            self.of_kind[row.kind].append((row.size, at))
            self.of_shape[row.kind, row.shape].append(at)
        for sized in self.of_kind.values():
            sized.sort()

    def nearest(self, kind, size):
        """Positions of that kind, the nearest in size first; of two as near the smaller one, of equal ones the earlier."""
        sized = self.of_kind.get(kind, [])
        above = bisect.bisect_left(sized, (size,))
        smaller = ((at, size - other) for key, group in itertools.groupby(reversed(sized[:above]), key=lambda pair: pair[0]) for other, at in reversed(list(group)))
        larger = ((at, other - size) for other, at in sized[above:])
        return (at for at, _ in heapq.merge(smaller, larger, key=lambda pair: pair[1]))

    def of(self, row, without):
        """The rows to compare with, but for those at positions in `without`, a range. None where there are too few."""
        equal = [at for at in self.of_shape.get((row.kind, row.shape), []) if at not in without]
        if len(equal) < FEWEST:
            equal = list(itertools.islice((at for at in self.nearest(row.kind, row.size) if at not in without), NEAREST))
        return [self.rows[at] for at in equal] if len(equal) >= FEWEST else None

    def excess(self, rows, value, relative, without=range(0)):
        """How much more each of `rows` costs than the median of its peers: in multiples of that (`relative`) or of a normal step. None where nothing can be said."""
        @functools.cache
        def usual(kind, shape, size):
            peers = self.of(Row(None, 0, kind, shape, size, 0, 0, 0, False), without)
            return peers and (statistics.median(map(value, peers)), statistics.median(map(at_place("whole"), peers)))

        out = []
        for row in rows:
            normal = usual(row.kind, row.shape, row.size)
            out.append(normal and (value(row) - normal[0]) / (normal[0] if relative and normal[0] > 0 else normal[1]))
        return out
