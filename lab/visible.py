"""Which faults show in which kind of input: every case is diagnosed from its traces alone, its logs alone, its spans and counters
alone, and whole; each time from a copy with a neutral name and without the truth.

Found: something is said to be wrong. Class: the first finding has the labelled class or one that the label accepts. Rank: it accuses
the labelled rank or one that the label accepts (only where there are several). For what is no fault, found is a false alarm.
"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from lab import parallel
from lab.errors import LabError

TRUTH = {"label.json", "requests.jsonl", "evidence.json", "README.md"}
PARTS = {
    "traces": {"traces"},
    "logs": {"server.log", "logs", "log_arrival_ns.txt"},
    "spans, counters": {"spans.jsonl", "metrics.txt", "host_cpu.jsonl", "host.jsonl"},
}
WHOLE = "all"
VIEWS = (*PARTS, WHOLE)
LIMIT_S = 300


def diagnose(teller, case, names):
    """The diagnosis of these inputs of a case; None when it has none of them."""
    names = [name for name in names if (case / name).exists()]
    if not names:
        return None
    with tempfile.TemporaryDirectory(prefix="teller-visible-") as scratch:
        run = pathlib.Path(scratch, "run")
        run.mkdir()
        for name in names:
            source = case / name
            shutil.copytree(source, run / name) if source.is_dir() else shutil.copy(source, run / name)
        try:
            done = subprocess.run([teller, "diagnose", str(run), "--format", "json", "--threads", "1"], capture_output=True, timeout=LIMIT_S)
            return json.loads(done.stdout)
        except subprocess.TimeoutExpired as error:
            raise LabError(f"no diagnosis within {LIMIT_S} s") from error
        except ValueError as error:
            lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no output"]
            raise LabError(f"exit status {done.returncode}: {lines[-1]}") from error


def judge(diagnosis, label):
    """{found, class, rank, said} of a diagnosis; `rank` is None where it is not asked for."""
    findings = diagnosis["findings"]
    first = findings[0] if findings else None
    right = {label["fault_class"], *label.get("accept_classes", [])}
    true_rank = (label.get("culprit") or {}).get("rank")
    ranks = {true_rank, *(label.get("accept_ranks") or [])}
    asked = label["is_fault"] and label["world_size"] > 1 and true_rank is not None
    return {"found": first is not None, "class": bool(first and label["is_fault"] and first["class"] in right),
            "rank": bool(first and first["culprit"].get("rank") in ranks) if asked else None, "said": first["class"] if first else None}


def look(teller, path):
    """What each view of a case shows; a view without its inputs is null."""
    case = path.parent
    try:
        label = json.loads(path.read_text())
        label["fault_kind"], label["fault_class"], label["is_fault"], label["world_size"]
    except (OSError, ValueError, TypeError, KeyError) as error:
        return {"case": str(case), "stack": None, "kind": "?", "class": "?", "is_fault": False, "views": dict.fromkeys(VIEWS),
                "error": f"label.json: {error!r}"}
    row = {"case": str(case), "stack": label.get("stack"), "kind": label["fault_kind"], "class": label["fault_class"],
           "is_fault": label["is_fault"], "views": {}, "error": None}
    for view in VIEWS:
        names = PARTS[view] if view in PARTS else {p.name for p in case.iterdir()} - TRUTH
        try:
            diagnosis = diagnose(teller, case, sorted(names))
            row["views"][view] = judge(diagnosis, label) if diagnosis else None
        except LabError as error:
            row["views"][view] = None
            row["error"] = f"{view}: {error}"
    return row


def count(judged, key):
    return sum(bool(j[key]) for j in judged)


def by_kind(rows):
    """One row for each stack and kind: how many cases, and of each view how many were found, of the right class, the right rank."""
    groups = {}
    for row in rows:
        groups.setdefault((row["stack"] or "", row["kind"]), []).append(row)
    table = []
    for (stack, kind), group in sorted(groups.items()):
        views = {}
        for view in VIEWS:
            judged = [row["views"][view] for row in group if row["views"][view]]
            asked = [j for j in judged if j["rank"] is not None]
            views[view] = {"cases": len(judged), "found": count(judged, "found"), "class": count(judged, "class"),
                           "rank": count(asked, "rank") if asked else None} if judged else None
        is_fault = group[0]["is_fault"]
        table.append({"stack": stack, "kind": kind, "class": group[0]["class"], "is_fault": is_fault, "cases": len(group), "views": views,
                      "shown_by": shown_by(views) if is_fault else None})
    return table


def shown_by(views):
    """The views that name the class in at least half of the cases. The whole counts only where no part does."""
    good = [view for view, v in views.items() if v and 2 * v["class"] >= v["cases"]]
    parts = [view for view in good if view != WHOLE]
    return parts or (["only together"] if good else [])


def cell(view, is_fault):
    if view is None:
        return "-"
    if not is_fault:
        return f"alarm {view['found']} of {view['cases']}" if view["found"] else "quiet"
    rank = "" if view["rank"] is None else f" r{view['rank']}"
    return f"f{view['found']} c{view['class']}{rank}"


def text(table, rows):
    lines = ["Of each view: f cases found, c with the right class, r with the right rank (where there are several); of what is no fault, false alarms.", "",
             f"{'stack':<10}{'kind':<24}{'class':<20}{'cases':>5}  " + "".join(f"{view:<17}" for view in VIEWS) + "shown by"]
    for row in table:
        cells = "".join(f"{cell(row['views'][view], row['is_fault']):<17}" for view in VIEWS)
        shown = ", ".join(row["shown_by"]) or "none" if row["is_fault"] else ""
        lines.append(f"{row['stack']:<10}{row['kind']:<24}{row['class']:<20}{row['cases']:>5}  {cells}{shown}".rstrip())
    faults = [row for row in rows if row["is_fault"]]
    others = [row for row in rows if not row["is_fault"]]
    for view in VIEWS:
        seen = [row["views"][view] for row in faults if row["views"][view]]
        quiet = [row["views"][view] for row in others if row["views"][view]]
        lines.append(f"{view}: {count(seen, 'found')} of {len(seen)} faults found, {count(seen, 'class')} with the right class; "
                     f"{count(quiet, 'found')} of {len(quiet)} others gave a false alarm")
    lines += [f"not diagnosed: {row['case']}: {row['error']}" for row in rows if row["error"]]
    return "\n".join(lines)


def run(folder, teller):
    """The rows of all cases below a folder."""
    draft = lambda name: name.startswith(".") or name.endswith(".part")
    labels = sorted(p for p in pathlib.Path(folder).rglob("label.json") if not any(map(draft, p.relative_to(folder).parts)))
    if not labels:
        raise LabError(f"{folder} holds no case (no label.json)")
    if not os.access(teller, os.X_OK):
        raise LabError(f"{teller} is no program: ./dev build makes it")
    return parallel.each(lambda path: look(teller, path), labels)
