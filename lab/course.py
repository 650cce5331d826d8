"""Makes cases one after the other. Whatever happens, nothing is left running and no case is left half written."""
import os
import pathlib
import secrets
import shutil
import tempfile

from lab.casefile import CaseFolder
from lab.errors import LabError
from lab.guard import Guard


class Runner:
    """Several cases share one engine where it and their faults allow it."""

    def __init__(self, stack, port=None, profile=True, nice=0, say=print):
        if not stack.setup.is_ready():
            raise LabError(f"the {stack.name} stack is not set up: run ./dev lab setup {stack.name}")
        self._stack = stack
        self._port, self._profile, self._nice, self._say = port, profile, nice, say
        self._engine = None
        self._folder = None

    def run(self, plan, after=lambda kind, seed, error: None):
        """`plan`: (kind, seed, target folder) of each case. Whatever happens, nothing is left running.

        A case that fails does not keep the others from being made; the last error is raised at the end. `after` is called behind
        each case with its error or None."""
        failed = None
        with Guard(self._nice) as guard:
            try:
                for kind, seed, target in plan:
                    error = None
                    try:
                        self._case(guard, self._stack.faults[kind], seed, pathlib.Path(target))
                    except LabError as caught:
                        if len(plan) > 1:
                            self._say(f"{kind} seed {seed}: {caught}")
                        failed = error = caught
                        self._stop()
                    after(kind, seed, error)
            finally:
                self._stop()
        if failed:
            raise failed if len(plan) == 1 else LabError("some cases were not made; the lines above say why")

    def _stop(self):
        if self._engine:
            self._engine.stop()
            self._engine = None
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _ready_engine(self, guard, fault):
        engine = self._engine
        if engine and engine.alive() and not fault.fresh and engine.options == fault.options:
            return engine
        self._stop()
        self._say(f"starting {self._stack.name}")
        folder = os.path.join(tempfile.gettempdir(), f"teller-lab-{secrets.token_hex(8)}")
        guard.folder(folder)
        os.mkdir(folder, 0o700)
        self._folder = folder
        self._engine = engine = self._stack.engine(guard, self._folder, self._port, fault)
        engine.start()
        if not fault.fresh:
            engine.warm(self._stack)
        return engine

    def _case(self, guard, fault, seed, target):
        if why := fault.why_not():
            raise LabError(f"{fault.kind} cannot be made here: {why}")
        draft = CaseFolder(target)
        guard.folder(draft.path)
        with draft as case:
            engine = self._ready_engine(guard, fault)
            self._say(f"{fault.kind} seed {seed}")
            label, requests = engine.course(self._stack, guard, engine, fault, seed, case.path, self._profile).record()
            case.finish(label, requests)
            self._say(f"{target}: {label['background']['whole_case']} processors of other work")
        if fault.last:
            self._stop()
