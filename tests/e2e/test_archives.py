"""Compressed files, standard input, archives of a run, and files that are refused with a sentence that helps."""
import gzip
import io
import json
import os
import shutil
import subprocess
import tarfile
import unittest

from harness import DEMO, TELLER, Case, span, teller, trace

TRACE = trace([span("aten::mm", 10 * i, 8) for i in range(50)], distributedInfo={"rank": 0, "world_size": 1}).encode()
LOG = b"".join(b"2026-01-15 09:30:%02d,000 INFO engine: step %d\n" % (i, i) for i in range(40))


def piped(data, *args):
    return subprocess.run([TELLER, *map(str, args)], input=data, capture_output=True, timeout=120)


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True).stdout


def archive(files, form=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


class InputCase(Case):
    def inspected(self, *args, data=None, status=(0, 3)):
        done = piped(data, "inspect", *args, "--json")
        self.assertIn(done.returncode, status, done.stderr.decode())
        return json.loads(done.stdout)

    def kinds(self, run):
        return {f["path"]: (f["kind"], f["rank"]) for f in run["files"]}


class StandardInput(InputCase):
    def test_a_database_must_be_a_file(self):
        done = piped(b"SQLite format 3\x00" + bytes(4096), "inspect", "-")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"as a file of its own", done.stderr)

    def test_a_trace_compressed_or_not(self):
        for data in (TRACE, gzip.compress(TRACE)):
            run = self.inspected("-", data=data)
            self.assertEqual(run["spans"], 50)
            self.assertEqual(run["files"][0]["path"], "(standard input)")

    def test_a_log_and_an_archive(self):
        self.assertEqual(self.inspected("-", data=LOG)["log_records"], 40)
        self.assertEqual(self.inspected("--logs", "-", data=LOG)["log_records"], 40)
        run = self.inspected("-", data=gzip.compress(archive({"run/rank0.json": TRACE, "run/rank0.log": LOG})))
        self.assertEqual((run["spans"], run["log_records"]), (50, 40))

    def test_beside_files(self):
        path = self.write("a.log", LOG)
        run = self.inspected(path, "-", data=TRACE)
        self.assertEqual((run["spans"], run["log_records"]), (50, 40))

    def test_the_verdict_is_that_of_the_files(self):
        verdict, _ = self.diagnose(DEMO)
        done = piped(archive({str(p.relative_to(DEMO)): p.read_bytes() for p in DEMO.rglob("*") if p.is_file()}),
                     "diagnose", "-", "--format", "json")
        piped_verdict = json.loads(done.stdout)
        self.check(piped_verdict)
        self.assertEqual(piped_verdict["verdict"], verdict["verdict"])
        self.assertEqual([f["explanation"] for f in piped_verdict["findings"]], [f["explanation"] for f in verdict["findings"]])

    def test_nothing_and_nonsense(self):
        for data in (b"", b"\x00\x01\x02" * 100):
            done = piped(data, "diagnose", "-")
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"standard input", done.stderr)
            self.assertEqual(done.stderr.count(b"\n"), 1)


class Archives(InputCase):
    FILES = {"run/traces/rank1.json": TRACE, "run/traces/rank0.json.gz": gzip.compress(TRACE), "run/logs/server.log": LOG,
             "run/notes.md": b"# notes\n"}

    def test_members_are_files_of_the_run(self):
        for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            for pack, name in ((bytes, "run.tar"), (gzip.compress, "run.tgz")):
                path = self.folder / name
                path.write_bytes(pack(archive(self.FILES, form)))
                run = self.inspected(path)
                self.assertEqual(run["spans"], 100)
                kinds = {key.split("!")[1]: value for key, value in self.kinds(run).items()}
                self.assertEqual(kinds["run/traces/rank0.json.gz"][0], "kineto")
                self.assertEqual(kinds["run/logs/server.log"], ("log", None))
                self.assertEqual(kinds["run/notes.md"][0], "other")

    def test_nothing_is_left_on_disk(self):
        temporary = self.folder / "tmp"
        temporary.mkdir()
        path = self.folder / "run.tgz"
        path.write_bytes(gzip.compress(archive({"../../evil.json": TRACE, "/abs/rank0.json": TRACE})))
        done = subprocess.run([os.path.abspath(TELLER), "inspect", path, "--json"], capture_output=True, env={**os.environ, "TMPDIR": str(temporary)},
                              cwd=temporary, timeout=60)
        self.assertEqual(json.loads(done.stdout)["spans"], 100)
        self.assertEqual(list(temporary.iterdir()), [])
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["run.tgz", "tmp"])

    def test_what_is_cut_off_is_said(self):
        whole = archive({"a/rank0.json": TRACE, "a/rank1.json": TRACE * 3})
        for data in (whole[:2500], gzip.compress(whole)[:-60]):
            path = self.folder / "cut.tar"
            path.write_bytes(data)
            run = self.inspected(path, status=(3,))
            self.assertIn("input.archive_damaged", [d["code"] for d in run["diagnostics"]])

    def test_joined_archives_are_read_to_the_last(self):
        first, second = archive({"rank0.json": TRACE}), archive({"rank1.json": TRACE, "server.log": LOG})
        for data in (first + second, gzip.compress(first) + gzip.compress(second)):
            (self.folder / "joined.tar").write_bytes(data)
            run = self.inspected(self.folder / "joined.tar", status=(0,))
            self.assertEqual(run["spans"], 100)
            self.assertEqual(run["log_records"], 40)

    def test_what_stands_behind_an_archive_is_said(self):
        path = self.folder / "run.tar.gz"
        whole = archive({"rank0.json": TRACE})
        for data, code in ((gzip.compress(whole) + b"garbage", "input.archive_damaged"),
                           (gzip.compress(whole + b"garbage"), "input.archive_behind")):
            path.write_bytes(data)
            run = self.inspected(path)
            self.assertEqual(run["spans"], 50)
            self.assertEqual([(d["code"], d["count"]) for d in run["diagnostics"] if "archive" in d["code"]], [(code, 1)])

    def test_a_damaged_archive_without_anything_usable_names_the_damage(self):
        whole = archive({"notes.md": b"# notes\n", "rank0.json": TRACE})
        for data, says in ((whole[:1100], "ends in the middle of a header"),
                           (gzip.compress(archive({"big.bin": os.urandom(50_000)}))[:30_000], "ends in the middle of a member"),
                           (whole[:1024] + b"x" * 4096, "has a damaged header")):
            path = self.write("cut.tar", data)
            text = self.fails("diagnose", path, says="damaged archive: " + says)
            self.assertIn("cut.tar", text)

    def test_links_are_not_followed(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            info = tarfile.TarInfo("rank0.json")
            info.size = len(TRACE)
            tar.addfile(info, io.BytesIO(TRACE))
            link = tarfile.TarInfo("passwd.log")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(link)
        path = self.folder / "links.tar"
        path.write_bytes(out.getvalue())
        run = self.inspected(path)
        self.assertEqual(len(run["files"]), 1)
        self.assertIn("input.archive_links", [d["code"] for d in run["diagnostics"]])

    def test_an_archive_in_an_archive_is_refused(self):
        path = self.folder / "outer.tar"
        path.write_bytes(archive({"inner.tar": archive({"rank0.json": TRACE}), "rank0.json": TRACE}))
        run = self.inspected(path)
        self.assertEqual(run["spans"], 50)
        self.assertIn("archive inside", " ".join(str(f["note"]) for f in run["files"]))


@unittest.skipUnless(shutil.which("zstd"), "no zstd program to compress with")
class Zstd(InputCase):
    def test_traces_logs_and_archives(self):
        (self.folder / "rank0.json.zst").write_bytes(zstd(TRACE[:900]) + zstd(TRACE[900:]))
        (self.folder / "server.log.zst").write_bytes(zstd(LOG))
        run = self.inspected(self.folder)
        self.assertEqual((run["spans"], run["log_records"]), (50, 40))
        path = self.folder / "run.tar.zst"
        path.write_bytes(zstd(archive({"rank0.json": TRACE})))
        self.assertEqual(self.inspected(path)["spans"], 50)

    def test_a_cut_trace_is_read_up_to_the_cut(self):
        big = trace([span(f"op{i * 7919 % 1000003}", 10 * i, 8) for i in range(20_000)]).encode()
        path = self.folder / "rank0.json.zst"
        path.write_bytes(zstd(big)[:-5000])
        run = self.inspected(path, status=(3,))
        self.assertGreater(run["spans"], 0)
        self.assertLess(run["spans"], 20_000)


class Refusals(InputCase):
    def test_traces_in_other_forms_say_what_to_do(self):
        packets = b"".join(b"\x0a" + bytes([40]) + bytes([8, 1]) + os.urandom(38) for _ in range(50))
        cases = {"results.json": (b'{"rocprofiler-sdk-tool": [{"metadata": {"pid": 1}}]}', "traceconv"),
                 "trace.pftrace": (packets, "traceconv"),
                 "host.xplane.pb": (b"\x0a\xff\xff\x7f" + bytes(range(256)), "create_perfetto_trace")}
        for name, (data, says) in cases.items():
            with self.subTest(name=name):
                self.fails("inspect", self.write(name, data), says=says)


if __name__ == "__main__":
    unittest.main()
