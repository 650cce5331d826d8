"""The run's end of the start-up hook: orders what wrapped functions do, reads back what they did."""
import json
import os
import pathlib


class HookPlan:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self._done = pathlib.Path(f"{path}.done")
        self._seen = 0
        self.order([])

    def order(self, orders):
        """Replaces all orders. Each: site, effect, t0_ns, t1_ns and what the effect needs."""
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(orders))
        os.replace(fresh, self.path)
        self._seen = self._done.stat().st_size if self._done.exists() else 0

    def intervals(self):
        """(begin, end) in epoch ns of what was done since the last order, in order of time."""
        if not self._done.exists():
            return []
        with open(self._done, encoding="utf-8") as file:
            file.seek(self._seen)
            done = [json.loads(line) for line in file if line.endswith("\n")]
        return sorted((d["t0_ns"], d["t1_ns"]) for d in done)
