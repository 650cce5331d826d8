"""What the end-to-end tests share: running the program, writing small inputs, checking a verdict against its schema."""
import gzip
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TELLER = os.environ.get("TELLER", str(ROOT / "build" / "release" / "teller"))
DEMO = ROOT / "examples" / "demo_run"
SHARED = ROOT.parent / "shared"
SANITIZED = any(name in os.environ.get("TELLER_BUILD", "") for name in ("asan", "tsan"))
SCHEMA = json.loads((ROOT / "docs" / "reference" / "teller.diagnosis-1.schema.json").read_text())
BASE_NS = 1_768_469_400_000_000_000


def teller(*args, timeout=120, **kwargs):
    """Runs the program; returns the finished process with bytes on stdout and stderr."""
    return subprocess.run([TELLER, *map(str, args)], stdout=kwargs.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, timeout=timeout, **kwargs)


def span(name, ts, dur, cat="cpu_op", pid=1, tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args}


def trace(events, **top):
    return json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": BASE_NS, **top, "traceEvents": events})


class Case(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="teller-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    def diagnose(self, *args, status=(0, 3), **kwargs):
        """The verdict as JSON, checked against the schema, and the exit status."""
        done = teller("diagnose", *args, "--format", "json", **kwargs)
        self.assertIn(done.returncode, status, done.stderr.decode(errors="replace"))
        verdict = json.loads(done.stdout)
        self.check(verdict)
        return verdict, done.returncode

    def check(self, verdict):
        """Schema, and what a schema cannot say."""
        jsonschema.validate(verdict, SCHEMA)
        files = len(verdict["input"]["files"])
        known = set()
        for finding in verdict["findings"]:
            for evidence in finding["evidence"]:
                self.assertNotIn(evidence["id"], known)
                known.add(evidence["id"])
                if evidence["file"] is not None:
                    self.assertLess(evidence["file"], files)
        for diagnostic in verdict["diagnostics"]:
            if diagnostic["file"] is not None:
                self.assertLess(diagnostic["file"], files)
        for finding in verdict["findings"]:
            if finding["culprit"]["rank"] is not None:
                self.assertNotIn(finding["culprit"]["rank"], [v["rank"] for v in finding["victims"]])
            for part in finding["explanation"].split("[E")[1:]:
                self.assertIn("E" + part.split("]")[0], known)

    def fails(self, *args, says="", **kwargs):
        """The program refuses with exit status 2 and one line on stderr."""
        done = teller(*args, **kwargs)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, 2, text)
        self.assertEqual(text.count("\n"), 1, text)
        self.assertTrue(text.startswith("teller: "), text)
        self.assertIn(says, text)
        return text

    def small_disk(self, size="1m"):
        """A disk of its own for the test, or a loud skip."""
        disk = self.folder / "disk"
        disk.mkdir()
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)], capture_output=True).returncode:
            self.skipTest("no permission to mount a small disk")
        self.addCleanup(subprocess.run, ["umount", str(disk)], check=False)
        return disk

    def needs(self, path):
        """A path below ../shared, or a loud skip."""
        full = SHARED / path
        if not full.exists():
            self.skipTest(f"{full} is not there")
        return full
