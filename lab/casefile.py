"""Writes a case so that a folder with its final name is always whole: everything goes to a folder beside it, which is renamed last."""
import contextlib
import json
import os
import pathlib
import shutil

from lab.errors import LabError

SCHEMA = "teller.label/1"
REQUIRED = ("is_fault", "fault_class", "accept_classes", "fault_kind", "t_start_ns", "t_end_ns", "stack", "world_size", "culprit",
            "victims", "intervals_ns", "observer_ns", "seed", "params", "visible_in", "background")
CULPRIT = ("rank", "process", "layer", "operator", "module", "function", "log_record")


def culprit(**known):
    """A culprit of the label; what does not apply is null."""
    unknown = set(known) - set(CULPRIT)
    if unknown:
        raise ValueError(f"no such part of a culprit: {', '.join(sorted(unknown))}")
    return {key: known.get(key) for key in CULPRIT}


def check_label(label):
    """Raises LabError on a label that says what cannot be."""
    missing = [key for key in REQUIRED if key not in label]
    if missing:
        raise LabError(f"label: {', '.join(missing)} missing")
    if label["is_fault"] != (label["culprit"] is not None):
        raise LabError("label: a fault has a culprit, and what is none has no culprit")
    if label["is_fault"] and (label["t_start_ns"] is None or label["t_end_ns"] <= label["t_start_ns"]):
        raise LabError("label: a fault needs a window of time that ends after it starts")
    if label["is_fault"] and not label["intervals_ns"]:
        raise LabError("label: the injection never took effect")
    rank = (label["culprit"] or {}).get("rank")
    if rank is not None and not 0 <= rank < label["world_size"]:
        raise LabError(f"label: rank {rank} is not below the world size {label['world_size']}")


class CaseFolder:
    """with CaseFolder(target) as case: ... case.finish(label). Left without finish, nothing remains."""

    def __init__(self, target):
        self.target = pathlib.Path(target).absolute()
        self.path = self.target.parent / f".{self.target.name}.partial-{os.getpid()}"

    def __enter__(self):
        if self.target.exists():
            raise LabError(f"{self.target} exists: give another folder or remove it")
        try:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            self.path.mkdir()
        except OSError as error:
            raise LabError(f"cannot make {self.path}: {error.strerror}") from error
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def finish(self, label, requests):
        """Writes client truth (None: there was no client) and label, then gives the folder its name. Any failure to write leaves no case."""
        label = {"schema": SCHEMA, "case": self.target.name, **label}
        check_label(label)
        if requests is not None:
            with open(self.path / "requests.jsonl", "w", encoding="utf-8") as file:
                for record in requests:
                    file.write(json.dumps(record) + "\n")
        with open(self.path / "label.json", "w", encoding="utf-8") as file:
            json.dump(label, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.rename(self.path, self.target)


@contextlib.contextmanager
def whole_set(target):
    """with whole_set(target) as folder: ... A set of cases that gets its name when all of it is there; else nothing remains."""
    part = target.with_name(target.name + ".part")
    for path in (target, part):
        if path.exists():
            raise LabError(f"{path}: is there already; name a new folder")
    part.mkdir(parents=True)
    try:
        yield part
        part.rename(target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
