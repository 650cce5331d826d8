"""What the scorer asks (docs/reference/method-answer.md): reading a task and the features of its cases, writing answers."""
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import pickle

import numpy as np


def once(compute):
    """Computes what depends on a case alone once for each; parameters and folds ask for it again and again."""
    def known(case):
        key = compute.__module__, compute.__name__
        if key not in case.memo:
            case.memo[key] = compute(case)
        return case.memo[key]
    return known


MOST_OPS = 24  # that are followed through the steps of a case: those with most time


@dataclasses.dataclass
class Case:
    """One case as arrays. Rows are its steps, in the order of the features file."""
    name: str
    ranks: list
    files: list
    rank: list           # by step; None where it has none
    index: np.ndarray
    kind: list
    time: np.ndarray     # ns, with the gap before it
    shape: np.ndarray    # batch, new tokens, context tokens, work; -1 unknown
    ops: list            # names of the columns of `self_ns`
    self_ns: np.ndarray  # steps x ops
    sequence: list       # by step: names in order of first call
    collectives: list
    logs: list
    templates: dict
    memo: dict = dataclasses.field(default_factory=dict)  # of `once`

    def groups(self):
        """Steps that can be compared: of one kind. Lists of row numbers."""
        out = {}
        for row, kind in enumerate(self.kind):
            out.setdefault(kind, []).append(row)
        return [np.array(rows) for rows in out.values()]


@dataclasses.dataclass
class Answer:
    """What a method says; scores on any scale, larger = more abnormal."""
    steps: dict          # step -> score
    case_score: float
    candidates: list     # dicts with rank, op, process, log_record, class, p; best first


def read_case(path, name):
    run, steps, ops, collectives, logs, templates = {}, [], {}, [], [], {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            what = record["type"]
            if what == "run":
                run = record
            elif what == "step":
                steps.append(record)
            elif what == "op":
                ops.setdefault(record["step"], []).append(record)
            elif what == "collective":
                collectives.append(record)
            elif what == "template":
                templates[record["template"]] = record["text"]
            elif what == "log":
                logs.append(record)
    work = [(step, op) for step, some in ops.items() for op in some if op["kind"] in ("op", "kernel", "annotation", "copy", "python")]
    total = {}
    for _, op in work:
        total[op["op"]] = total.get(op["op"], 0) + op["self_ns"]
    names = sorted(total, key=lambda op: (-total[op], op))[:MOST_OPS]
    column = {op: i for i, op in enumerate(names)}
    self_ns = np.zeros((len(steps), len(names)))
    for step, op in work:
        if op["op"] in column:
            self_ns[step, column[op["op"]]] += op["self_ns"]
    sequence = [[op["op"] for op in sorted(ops.get(s["step"], []), key=lambda op: op["first_ns"]) if op["kind"] == "op"] for s in steps]
    time = np.array([max(1, s["end_ns"] - s["begin_ns"] + max(0, s["gap_ns"])) for s in steps], dtype=float)
    shape = np.array([[s["batch"], s["new_tokens"], s["context_tokens"], s["work"]] for s in steps], dtype=float).reshape(len(steps), 4)
    return Case(name, run["ranks"], run["files"], [s["rank"] for s in steps], np.array([s["index"] for s in steps], dtype=int),
                [s["kind"] for s in steps], time, shape, names, self_ns, sequence, collectives, logs, templates)


@functools.cache
def version():
    """Another one for other sources of the baselines: what was kept by others is not taken."""
    sources = b"".join(source.read_bytes() for source in sorted(pathlib.Path(__file__).parent.iterdir()) if source.suffix in (".py", ".txt"))
    return hashlib.sha256(sources).hexdigest()[:16]


def keep(path, what):
    """Whole or not at all: others may read it meanwhile, and a run that is killed must not leave half of it to the next one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    try:
        part.write_bytes(pickle.dumps(what))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


class Said:
    """What a method that learns nothing said of cases: the same in every split, so it is kept beside what was read of the cases."""

    def __init__(self, path, method):
        features = pathlib.Path(json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["features"])
        self.path = features.parent / "said" / f"{method}-{version()}.pickle"
        self.answers = pickle.loads(self.path.read_bytes()) if self.path.is_file() else {}
        self.known = len(self.answers)

    def keep(self):
        if len(self.answers) > self.known:
            keep(self.path, self.answers)


class Task:
    """`shared`: a dictionary that the tasks of one method have in common: cases, and what a method said of them that learns nothing."""

    def __init__(self, path, shared):
        told = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        if told.get("schema") != "teller.task/1":
            raise ValueError(f"{path}: no task of the scorer")
        self.seed = told["seed"]
        self.cases, self.said = shared.setdefault("cases", {}), shared.setdefault("said", {})
        self.answers = pathlib.Path(told["answers"])
        self.remarks = pathlib.Path(told["remarks"])
        self.features = pathlib.Path(told["features"])
        self.train = [(self.case(lesson["case"]), lesson) for lesson in told["train"] if self.has(lesson["case"])]
        self.test = [name for name in told["test"] if self.has(name)]

    def has(self, name):
        return (self.features / f"{name}.jsonl").is_file()

    def case(self, name):
        """Read from JSON once; other methods take what was made of it."""
        if name not in self.cases:
            self.cases[name] = self.read(name)
        return self.cases[name]

    def read(self, name):
        parsed = self.features.parent / "parsed" / version() / f"{name}.pickle"
        if parsed.is_file():
            return pickle.loads(parsed.read_bytes())
        case = read_case(self.features / f"{name}.jsonl", name)
        keep(parsed, case)
        return case

    def write(self, name, status, confidence, answer, threshold, wall_ns):
        finite = {int(step): float(score) for step, score in answer.steps.items() if np.isfinite(score)}
        out = {"schema": "teller.answer/1", "case": name, "status": status, "confidence": float(min(1, max(0, confidence))), "threshold": float(threshold),
               "steps": [{"step": step, "score": score} for step, score in sorted(finite.items())],
               "candidates": [{key: value for key, value in c.items() if value is not None} for c in answer.candidates[:20]], "wall_ns": int(wall_ns)}
        (self.answers / f"{name}.json").write_text(json.dumps(out) + "\n", encoding="utf-8")
