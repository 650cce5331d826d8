"""What the steps of a run cost, at one place: from the features that the scorer hands to methods under test (docs/reference/features.md)."""
import bisect
import dataclasses
import json
import pathlib
import re
import statistics
import subprocess

from lab.errors import LabError

FEWEST, NEAREST = 3, 5  # comparable steps below which nothing is said; how many of the same kind are taken where there are none of the same shape


@dataclasses.dataclass
class Row:
    """A step of one rank."""
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


def letters(name):
    return re.sub(r"[^a-z0-9]", "", name.lower())


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


def at_place(place, names=()):
    """A function from a row to what it costs there, in ns."""
    return {"step": lambda row: row.end - row.begin, "gap": lambda row: row.gap, "own": lambda row: max(0, row.whole() - row.wait),
            "transfer": lambda row: row.transfer,
            "operator": lambda row: sum(ns for name, ns in row.ops.items() if any(same_name(name, wanted) for wanted in names))}[place]


def normal(row, others, value):
    """Median over steps that do the same: of its kind and shape, else those of its kind that are nearest in size. None where there are too few."""
    equal = [other for other in others if other.kind == row.kind and other.shape == row.shape]
    if len(equal) < FEWEST:
        equal = sorted((other for other in others if other.kind == row.kind), key=lambda other: abs(other.size - row.size))[:NEAREST]
    return statistics.median(map(value, equal)) if len(equal) >= FEWEST else None


def excess(rows, others, value, relative):
    """How much more each row costs than normal among `others`: in multiples of that (`relative`) or of a normal step. None where nothing can be said."""
    known, out = {}, []
    for row in rows:
        key = row.kind, row.shape, row.size
        if key not in known:
            known[key] = normal(row, others, value), normal(row, others, Row.whole)
        usual, step = known[key]
        if usual is None:
            out.append(None)
        else:
            out.append((value(row) - usual) / (usual if relative and usual > 0 else step))
    return out
