"""How many faults of labelled sets can be seen at all: by a detector that is told where the fault is and how long it lasts, but not when.

usage: lab ceiling CASES... [--scores SCORES.json] [--runs RUN...] [-o RESULTS] [--teller PATH]

Its place is an operator or module where the label has one and the trace shows it, transfers of collectives where a network is at fault, else the steps of the culprit
(of all ranks where none is named): their time, the gap before them, both less waits for others. It sees what each step costs there more than the median of steps of the
same kind and shape outside of the window asked about. A window is visible when its mean excess is above that of every window as long in the controls: the same recording
re-timed without a fault, else all cases without one of the same source, stack and number of ranks. So none of N control windows is called, and the share of false calls is
below about 1/N for each place looked at (windows overlap and are no N independent trials). A fault is visible also when one of its S steps alone is above every step of
the controls: of N such steps, which adds about S/N of false calls. Clear: a window above twice its limit. Visible steps: those of visible windows and those that are
visible alone.

It is an upper mark of one statistic and no proof. What TELLER finds and this calls invisible is listed: there the mark is too low.
"""
import dataclasses
import functools
import json
import os
import pathlib
import statistics
import tempfile
import subprocess

from lab import costs, parallel, retimed
from lab.casefile import read_object, write_whole
from lab.errors import LabError, Parser

ROOT = pathlib.Path(__file__).resolve().parent.parent
EFFECTS = ((1.1, "below x1.1"), (1.5, "x1.1-1.5"), (3, "x1.5-3"), (float("inf"), "x3 and more"))
CLEAR = 2  # times the largest excess of the controls


@dataclasses.dataclass
class Case:
    folder: pathlib.Path
    label: dict
    rows: dict        # by rank
    abnormal: dict    # rank -> rows under the fault
    healthy: dict     # rank -> rows that are neither that nor left out

    @property
    def group(self):
        return self.label.get("source") or "real", self.label["stack"], self.label["world_size"]


def overlaps(row, interval, with_gap):
    """Half of the shorter one; of activations any part, with the gap."""
    begin = row.begin - (row.gap if with_gap else 0)
    common = min(row.end, interval[1]) - max(begin, interval[0])
    return common > 0 if with_gap else 2 * common >= min(row.end - row.begin, interval[1] - interval[0]) and common > 0


def told_steps(label):
    """(bare indices, times by rank of each) of the steps that the label calls abnormal and all ranks finished."""
    steps = label.get("abnormal_steps") or []
    ranks = [step["ranks"] for step in steps if isinstance(step, dict)]
    return {step for step in steps if not isinstance(step, dict)}, [times for times in ranks if all(end is not None for _, end in times)]


def under_fault(label, rank, row):
    """Says the label that this step is abnormal? Where it tells no steps: was the injection active in it?"""
    if label.get("abnormal_steps") is None:
        return any(overlaps(row, interval, True) for interval in label["intervals_ns"] or [[label["t_start_ns"], label["t_end_ns"]]])
    indices, steps = told_steps(label)
    if row.index in indices:
        return True
    own = rank is not None and all(rank < len(times) == label["world_size"] for times in steps)
    return any(overlaps(row, interval, False) for times in steps for interval in ([times[rank]] if own else times))


def left_out(label, row):
    ordinals = [step["index"] if isinstance(step, dict) else step for key in ("ignore_steps", "explained_steps") for step in label.get(key) or []]
    touched = label["is_fault"] and label["t_start_ns"] is not None and overlaps(row, (label["t_start_ns"], label["t_end_ns"]), True)
    return row.observer or row.index in ordinals or touched


def sort_rows(label, rows):
    """(abnormal, healthy) rows by rank."""
    abnormal, healthy = {}, {}
    for rank, mine in rows.items():
        abnormal[rank] = [row for row in mine if label["is_fault"] and under_fault(label, rank, row)]
        numbers = {id(row) for row in abnormal[rank]}
        healthy[rank] = [row for row in mine if id(row) not in numbers and not left_out(label, row)]
    return abnormal, healthy


def read_case(teller, folder):
    label = read_object(folder / "label.json", ("is_fault", "fault_class", "fault_kind", "stack", "world_size", "culprit", "t_start_ns", "t_end_ns"))
    rows = costs.read(teller, folder)
    return Case(folder, label, rows, *sort_rows(label, rows))


def why_not_asked(case):
    """None, or why a fault cannot be looked for here."""
    places = case.label.get("visible_in")
    if places is not None and "trace" not in places:
        return "shows in no trace"
    if not any(case.abnormal.values()):
        return "no finished step is abnormal"
    return None


def effect(case):
    """As the scorer groups cases: how much longer the touched steps are than healthy ones of their kind and rank."""
    factors = []
    for rank, mine in case.abnormal.items():
        for row in mine:
            normal = [other.whole() for other in case.healthy[rank] if other.kind == row.kind]
            if normal:
                factors.append(row.whole() / statistics.median(normal))
    return next(name for limit, name in EFFECTS if statistics.median(factors) < limit) if factors else "not told"


def culprits(case):
    """Ranks to look at: the culprit's, else all."""
    culprit = case.label["culprit"] or {}
    rank = culprit.get("rank")
    return [rank] if rank in case.rows and case.label["world_size"] > 1 else list(case.rows)


def places(case):
    """[(place, names, relative to its own normal cost)] of the truth."""
    culprit = case.label["culprit"] or {}
    names = tuple(name for name in (culprit.get("operator"), culprit.get("module"), *(case.label.get("accept_operators") or [])) if name)
    value = costs.at_place("operator", names)
    if names and any(value(row) for mine in case.abnormal.values() for row in mine):
        return [("operator", names, True)]
    if culprit.get("layer") == "network":
        return [("transfer", (), False), ("step", (), True)]
    return [("step", (), True), ("gap", (), False), ("own", (), True)]


def mean_excess(window, peers, place, without=range(0)):
    """(mean, of each row) of a window; None where less than half of it can be compared."""
    kind, names, relative = place
    values = peers.excess(window, costs.at_place(kind, names), relative, without)
    known = [value for value in values if value is not None]
    return (statistics.mean(known), values) if known and 2 * len(known) >= len(values) else (None, values)


def largest(controls, place, length):
    """(largest mean excess, number of windows) of that length over control series (`costs.Peers` of healthy rows)."""
    best, count = float("-inf"), 0
    for series in controls:
        for first in range(len(series.rows) - length + 1):
            mean, _ = mean_excess(series.rows[first:first + length], series, place, range(first, first + length))
            if mean is not None:
                best, count = max(best, mean), count + 1
    return best, count


class Marks:
    """Thresholds, each computed once."""

    def __init__(self, controls_of):
        self.controls_of = controls_of
        self.largest = functools.cache(lambda key, rank, place, length: largest(self.controls_of(key, rank), place, length))

    def of(self, case, rank, place, length):
        return self.largest(control_key(case), rank if case.group[0] == "retimed" else None, place, length)


def control_key(case):
    return ("recording", case.label["params"]["run"], case.label["stack"]) if case.group[0] == "retimed" else case.group


def look(case, marks):
    """What the told detector sees of a fault: dict, or None when there is nothing to compare with."""
    visible, clear, seen, windows, compared = False, False, set(), [], False
    for rank in culprits(case):
        rows, peers = case.abnormal[rank], costs.Peers(case.healthy[rank])
        for place in places(case) if rows else ():
            mean, values = mean_excess(rows, peers, place)
            limit, count = marks.of(case, rank, place, len(rows))
            alone, single = marks.of(case, rank, place, 1)
            if single:
                seen |= {row.index for row, value in zip(rows, values) if value is not None and value > max(alone, 0)}
            if mean is None or not count:
                continue
            compared = True
            windows.append(count)
            visible |= mean > max(limit, 0)
            clear |= mean > max(CLEAR * limit, 0)
    if not compared and not seen:
        return None
    steps = {row.index for mine in case.abnormal.values() for row in mine}
    return {"visible": visible or bool(seen), "clear": clear, "windows": min(windows, default=0), "steps": len(steps), "seen": len(steps if visible else seen & steps),
            "alone": len(seen & steps), "rank": rank_right(case)}


def rank_right(case):
    """Is the culprit's rank the one with the largest excess, told operator and window? None where the label names none of several."""
    culprit = case.label["culprit"] or {}
    right = case.label.get("accept_ranks") or ([culprit["rank"]] if culprit.get("rank") is not None else [])
    if not right or len(case.rows) < 2 or case.label["world_size"] < 2:
        return None
    place = next((p for p in places(case) if p[0] == "operator"), ("own", (), True))
    means = {}
    for rank, rows in case.abnormal.items():
        mean, _ = mean_excess(rows, costs.Peers(case.healthy[rank]), place) if rows else (None, [])
        if mean is not None:
            means[rank] = mean
    return max(means, key=means.get) in right if means else None


def find_run(runs, label):
    """The recording that a re-timed case was made of. Two of one name are told apart by the folder of their stack."""
    named = [run for run in runs if run.name == label["params"]["run"]]
    alike = [run for run in named if costs.letters(run.parent.name) == costs.letters(label["stack"])]
    chosen = alike if len(named) > 1 else named
    if len(chosen) != 1:
        raise LabError(f"{label['case']}: of the recordings {len(chosen)} are its {label['params']['run']}; name the right ones with --runs")
    return chosen[0]


def controls_of(cases, runs, teller, scratch):
    """A function that gives the control series of a key, by rank or all."""
    @functools.cache
    def recording(key):
        label = next(case.label for case in cases if case.group[0] == "retimed" and control_key(case) == key)
        out = scratch / "-".join(costs.letters(part) for part in key)
        done = subprocess.run([teller, "lab", "retime", find_run(runs, label) / "traces", "--fault", "none", "-q", "-o", out], stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise LabError(done.stderr.strip())
        return read_case(teller, out)

    @functools.cache
    def controls(key, rank):
        if key[0] == "recording":
            return [costs.Peers(recording(key).healthy.get(rank, []))]
        return [costs.Peers(rows) for case in cases if case.group == key and not case.label["is_fault"] for rows in case.healthy.values()]
    return controls


def share(rights):
    return sum(rights) / len(rights) if rights else None


def f1(recall):
    return 2 * recall / (1 + recall) if recall is not None else None


def summarize(rows):
    """The figures of a group of faults."""
    asked = [row for row in rows if row["why_not"] is None]
    looked = [row for row in asked if row["told"]]
    steps = [row for row in looked if row["steps_count"]]
    counted = sum(row["told"]["steps"] for row in steps)
    ranks = [row for row in looked if row["told"]["rank"] is not None]
    known = [row for row in asked if row["teller"] is not None]
    return {"faults": len(rows), "asked": len(asked), "compared": len(looked), "visible": share([bool(row["told"] and row["told"]["visible"]) for row in asked]),
            "clear": share([bool(row["told"] and row["told"]["clear"]) for row in asked]), "steps": counted, "step_f1_at_1": f1(sum(row["told"]["seen"] for row in steps) / counted) if counted else None,
            "step_f1_at_1_alone": f1(sum(row["told"]["alone"] for row in steps) / counted) if counted else None,
            "rank": share([row["told"]["rank"] for row in ranks]), "ranks": len(ranks), "teller_found": share([row["teller"]["abnormal"] for row in known]),
            "teller_rank": share([row["teller"]["rank_place"] == 1 for row in ranks if row["teller"]]) if any(row["teller"] for row in ranks) else None}


def by_group(rows):
    """(source, effect, figures); "all" first."""
    out = []
    for source in sorted({row["source"] for row in rows}):
        mine = [row for row in rows if row["source"] == source]
        out.append((source, "all", summarize(mine)))
        for name in [*(name for _, name in EFFECTS), "not told"]:
            group = [row for row in mine if row["why_not"] is None and row["effect"] == name]
            if group:
                out.append((source, name, summarize(group)))
    return out


def teller_steps(scores):
    """(source, effect) -> step F1 at 1 % of TELLER. The scorer groups by effect over all sources: such a figure is taken where there is one source."""
    if scores is None:
        return {}
    method = next(m for m in scores["methods"] if m["name"] == "teller")
    sources = {case["source"] for case in scores["cases"]}
    out = {}
    for table in method["tables"]:
        value = table["figures"]["step_f1_at_1"]["value"]
        if table["group"] == "source":
            out[table["value"], "all"] = value
        elif table["group"] == "effect" and len(sources) == 1:
            out[next(iter(sources)), table["value"]] = value
    return out


def text(groups, rows, of_teller):
    show = lambda value: "-" if value is None else f"{value:.2f}"
    lines = ["| set | effect | faults asked | visible | clear | TELLER finds | step F1 at 1 % | by single steps | TELLER | rank | TELLER | (of) |", "|" + "---|" * 12]
    for source, name, row in groups:
        lines.append(f"| {source} | {name} | {row['asked']} | {show(row['visible'])} | {show(row['clear'])} | {show(row['teller_found'])} | {show(row['step_f1_at_1'])} | {show(row['step_f1_at_1_alone'])} | "
                     f"{show(of_teller.get((source, name)))} | {show(row['rank'])} | {show(row['teller_rank'])} | {row['ranks']} |")
    reasons = [row["why_not"] or "nothing to compare with" for row in rows if row["why_not"] or not row["told"]]
    lines.append("")
    lines += [f"{reasons.count(reason)} faults: {reason}" for reason in sorted(set(reasons))]
    windows = [row["told"]["windows"] for row in rows if row["told"] and row["told"]["windows"]]
    if windows:
        lines.append(f"control windows of a fault: {min(windows)} to {max(windows)}, median {int(statistics.median(windows))}")
    judged = [row for row in rows if row["why_not"] is None and row["teller"] is not None]
    wrong = [row["folder"] for row in judged if row["teller"]["abnormal"] and not (row["told"] and row["told"]["visible"])]
    missed = [row["folder"] for row in judged if not row["teller"]["abnormal"] and row["told"] and row["told"]["visible"]]
    for what, names in (("found by TELLER and called invisible: there the mark is too low", wrong), ("visible and not found by TELLER", missed)):
        lines += [f"{len(names)} {what}", *(f"  {name}" for name in names)]
    return "\n".join(lines)


def cases_in(roots):
    """The cases below, as `teller lab score` finds them: without drafts."""
    draft = lambda name: name.startswith(".") or name.endswith(".part")
    return sorted({label.parent for root in roots for label in root.rglob("label.json") if not any(map(draft, label.parent.relative_to(root).parts))})


def ask(case, marks, answers):
    why = why_not_asked(case)
    label = case.label
    return {"folder": str(case.folder), "source": case.group[0], "class": label["fault_class"], "kind": label["fault_kind"], "effect": effect(case), "why_not": why,
            "steps_count": label.get("abnormal_steps") is not None, "told": None if why else look(case, marks), "teller": answers.get(str(case.folder.resolve()))}


def main(argv):
    parser = Parser(prog="lab ceiling", description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="+", type=pathlib.Path, help="folders with labelled cases")
    parser.add_argument("--scores", type=pathlib.Path, help="a scores.json with TELLER's answers to these cases, shown beside; cases that are not in it are not asked")
    parser.add_argument("--runs", nargs="+", type=pathlib.Path, help="recordings that re-timed cases were made of; by default those of ../shared/data/lab")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="write the figures and what was seen of each case here as JSON")
    parser.add_argument("--teller", default=os.environ.get("TELLER", str(ROOT / "build/release/teller")))
    args = parser.parse_args(argv)
    if args.output and args.output.exists():
        raise LabError(f"{args.output}: is there already; name a new file")
    folders = cases_in(args.cases)
    if not folders:
        raise LabError(f"{args.cases[0]}: no labelled case in it")
    scores = read_object(args.scores, ("methods", "cases")) if args.scores else None
    if scores and "teller" not in [method.get("name") for method in scores["methods"]]:
        raise LabError(f"{args.scores}: holds no answers of teller")
    answers = {str(pathlib.Path(case["folder"]).resolve()): case["answers"]["teller"] for case in scores["cases"]} if scores else {}
    cases = parallel.each(lambda folder: read_case(args.teller, folder), folders)
    runs = args.runs or [ROOT.parent / "shared/data/lab" / name for name in retimed.RUNS]
    with tempfile.TemporaryDirectory(prefix="teller-ceiling-") as scratch:
        marks = Marks(controls_of(cases, runs, args.teller, pathlib.Path(scratch)))
        rows = [ask(case, marks, answers) for case in cases if case.label["is_fault"] and (scores is None or str(case.folder.resolve()) in answers)]
    groups = by_group(rows)
    print(text(groups, rows, teller_steps(scores)))
    if args.output:
        write_whole(args.output, json.dumps({"groups": [{"source": s, "effect": e, **figures} for s, e, figures in groups], "cases": rows}, indent=1) + "\n")
    return 0
