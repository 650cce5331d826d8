"""Writes a case so that a folder with its final name is always whole: everything goes to a folder beside it, which is renamed last."""
import contextlib
import json
import os
import pathlib
import shutil

from lab.errors import LabError
from lab.guard import Guard

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


def read_object(path, keys=()):
    """The JSON object of a file, which has these keys."""
    try:
        found = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise LabError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise LabError(f"{path}: is no JSON object")
    missing = [key for key in keys if key not in found]
    if missing:
        raise LabError(f"{path}: \"{missing[0]}\" is missing")
    return found


def write_whole(path, text):
    """Writes a file that is there as a whole or not at all."""
    part = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


class CaseFolder:
    """with CaseFolder(target) as case: ... case.finish(label). Left without finish, nothing remains."""

    def __init__(self, target):
        self.target = pathlib.Path(target).absolute()
        self.path = self.target.parent / f".{self.target.name}.partial-{os.getpid()}"

    def __enter__(self):
        if os.path.lexists(self.target):
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
    """with whole_set(target) as folder: ... A set of cases that gets its name when all of it is there; else nothing remains, also when this program is killed."""
    target = pathlib.Path(os.path.abspath(target))
    part = target.with_name(target.name + ".part")
    if os.path.lexists(target):
        raise LabError(f"{target}: is there already; name a new folder")
    if os.path.lexists(part):  # left over by a run that was killed, or written by one that goes on; the user knows which
        raise LabError(f"{part}: is there already; remove it unless another run writes it")
    part.parent.mkdir(parents=True, exist_ok=True)
    with Guard() as guard:
        guard.folder(part)
        try:
            part.mkdir()
        except OSError as error:
            guard.leave(part)  # one of that name is somebody else's
            raise LabError(f"cannot make {part}: {error.strerror}") from error
        try:
            yield part
            part.rename(target)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
