"""The run's end of the start-up hook: orders what wrapped functions do, reads back what they did."""
import ctypes
import json
import pathlib

from lab.hook import site_orders


class HookPlan:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.path.write_bytes(bytes(ctypes.sizeof(site_orders.Table)))
        self._table = site_orders.attach(self.path)
        self._done = pathlib.Path(f"{path}.done")
        self._seen = 0

    def order(self, orders):
        """Replaces all orders. Each: site, effect, t0_ns, t1_ns and what the effect needs (`ms` stands for `ns`).

        `rank`: only in the process of this rank; any without it."""
        self._table.count = 0
        for slot, order in zip(self._table.orders, orders, strict=False):
            fields = {"max_hits": 1 << 60, "rank": -1, **order}
            if "ms" in fields:
                fields["ns"] = int(fields.pop("ms") * 1e6)
            ctypes.memset(ctypes.addressof(slot), 0, ctypes.sizeof(slot))
            for name, value in fields.items():
                setattr(slot, name, value)
        self._seen = self._done.stat().st_size if self._done.exists() else 0
        self._table.count = len(orders)

    def begun(self):
        """How often something was begun since the last order."""
        return sum(order.hits for order in self._table.orders[:self._table.count])

    def intervals(self):
        """(begin, end) in epoch ns of what was done since the last order, in order of time."""
        if not self._done.exists():
            return []
        with open(self._done, encoding="utf-8") as file:
            file.seek(self._seen)
            done = [json.loads(line) for line in file if line.endswith("\n")]
        return sorted((d["t0_ns"], d["t1_ns"]) for d in done)
