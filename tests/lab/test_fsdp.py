"""The FSDP stack from end to end: two ranks of torch, a healthy and a faulty case, and what TELLER says of them."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from lab import network  # noqa: E402
from lab.fsdp import setup  # noqa: E402

TELLER = os.environ.get("TELLER", str(ROOT / "build" / "release" / "teller"))
ABSENT = network.no_namespaces() or (None if setup.is_ready() else "the fsdp stack is not set up: ./dev lab setup fsdp")


@unittest.skipIf(ABSENT, f"SKIPPED: {ABSENT}")
class EndToEnd(unittest.TestCase):
    def teller(self, *args):
        return subprocess.run([TELLER, *map(str, args)], capture_output=True, text=True)

    def test_a_healthy_and_a_faulty_case(self):
        with tempfile.TemporaryDirectory(prefix="teller-lab-test-") as folder:
            cases = pathlib.Path(folder) / "cases"
            done = subprocess.run([sys.executable, "-m", "lab", "run", "fsdp", "--nice", "-15", "--fault", "healthy:2", "--fault", "rank-kill:4", "-o", str(cases)],
                                  cwd=ROOT, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            checked = self.teller("lab", "check", cases)
            self.assertEqual(checked.returncode, 0, checked.stdout)

            healthy = self.diagnose(cases / "healthy-2")
            self.assertEqual(healthy["input"]["ranks"], [0, 1])
            # Other work on the machine can truly make a rank late, but it kills none and parts none.
            self.assertNotIn(healthy["verdict"]["class"], ("PROC_DEATH", "COLL_DIVERGENCE", "COLL_FIRST_OP_HANG", "GPU_MEM_OOM"))

            label = json.loads((cases / "rank-kill-4" / "label.json").read_text())
            faulty = self.diagnose(cases / "rank-kill-4")
            # Other work may have slowed a rank as well, and that may be said first.
            deaths = [f["culprit"]["rank"] for f in faulty["findings"] if f["class"] == "PROC_DEATH"]
            self.assertEqual(deaths[:1], [label["culprit"]["rank"]], [(f["class"], f["culprit"]["rank"]) for f in faulty["findings"]])
            survivor = 1 - label["culprit"]["rank"]
            self.assertEqual([p.name for p in (cases / "rank-kill-4" / "traces").iterdir()], [f"rank{survivor}.json.gz"])

    def diagnose(self, case):
        (case / "label.json").rename(case.with_suffix(".label"))
        done = self.teller("diagnose", case, "--format", "json")
        case.with_suffix(".label").rename(case / "label.json")
        self.assertIn(done.returncode, (0, 3), done.stderr)  # 3: a killed rank may leave half a line
        return json.loads(done.stdout)


if __name__ == "__main__":
    unittest.main()
