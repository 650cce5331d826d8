"""Runs the speed measurements; see bench/run."""

import argparse
import operator
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import tpe_run

BUILD = "build/release"
# Targets, as ratios of one run on one file.
MIN_OF_SCAN = 0.50  # bytes per second against the scan's
MAX_RSS = 0.50  # peak resident memory against the uncompressed size
MIN_TWO_THREADS = 1.6  # against one thread
MIN_OF_NSYS_SCAN = 0.60  # rows per second of reading an export against the bare scan's
MIN_SIMULATED = 200  # MB/s on two cores, unless the disk is the bound
MIN_OF_DISK = 0.8
MAX_SIMULATED_MB = 300
MAX_RETIME = 5.0  # seconds of re-timing against building the trees
MIN_OF_HTA = 30.0
MAX_GROWTH = 1.25  # seconds per byte of the largest size against the smallest


def timed(command):
    """Wall seconds, peak RSS in bytes and standard output of a command."""
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"bench: {' '.join(command)} failed with {process.returncode}")
    return time.monotonic() - start, usage.ru_maxrss * 1024, output


def scan_seconds(path):
    _, _, output = timed([f"{BUILD}/bench/bench_scan", path, "3"])
    return float(re.search(r"seconds ([0-9.]+)", output).group(1))


def tree_seconds(path, threads):
    command = [f"{BUILD}/teller", "tree", "--stats", path]
    if threads:
        command += ["--threads", str(threads)]
    seconds, rss, _ = timed(command)
    return seconds, rss


def measure(path, repeats):
    scan, default, one, two, rss = [], [], [], [], []
    for _ in range(repeats):
        scan.append(scan_seconds(path))
        seconds, peak = tree_seconds(path, 0)
        default.append(seconds)
        rss.append(peak)
        one.append(tree_seconds(path, 1)[0])
        two.append(tree_seconds(path, 2)[0])
    return {"scan": min(scan), "tree": min(default), "one": min(one), "two": min(two), "rss": max(rss)}


def hta_seconds(path, venv):
    """Loads the file with HolisticTraceAnalysis; a failure behind the loading still has a time."""
    if not os.path.exists(f"{venv}/bin/python"):
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([f"{venv}/bin/pip", "-q", "install", "HolisticTraceAnalysis"], check=True)
    script = (
        "import sys,time\n"
        "from hta.trace_analysis import TraceAnalysis\n"
        "start=time.monotonic()\n"
        "try:\n"
        "  TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir='')\n"
        "except Exception as error:\n"
        "  print('failed after loading:', type(error).__name__, error, file=sys.stderr)\n"
        "print(time.monotonic()-start)\n"
    )
    _, rss, output = timed([f"{venv}/bin/python", "-c", script, os.path.abspath(path)])
    return float(output.strip().splitlines()[-1]), rss


def read_seconds(path, threads):
    """Seconds that reading took, and the peak memory of all."""
    command = [f"{BUILD}/bench/bench_ingest", path, "--threads", str(threads)]
    _, rss, output = timed(command)
    return float(re.search(r"read ([0-9.]+)", output).group(1)), rss


def measure_nsys(folder, rows, repeats, targets):
    path = f"{folder}/export.sqlite"
    subprocess.run([f"{BUILD}/bench/bench_nsys_generate", path, str(rows)], check=True)
    scan, read, one, rss = [], [], [], []
    for _ in range(repeats):
        _, _, output = timed([f"{BUILD}/bench/bench_nsys_scan", path, "1"])
        scan.append(float(re.search(r"seconds ([0-9.]+)", output).group(1)))
        count = int(re.search(r"rows (\d+)", output).group(1))
        seconds, peak = read_seconds(path, 0)
        read.append(seconds)
        one.append(read_seconds(path, 1)[0])
        rss.append(peak)
    of_scan = min(scan) / min(read)
    print(
        f"nsys, {count / 1e6:.1f} M rows: scan {count / min(scan) / 1e6:.2f} M rows/s, read {count / min(read) / 1e6:.2f} M rows/s"
        f" = {of_scan:.2f} of the scan, with one thread {min(scan) / min(one):.2f} ({max(rss) / 1e6:.0f} MB)"
    )
    targets.check(f"nsys, {count / 1e6:.1f} M rows, speed as a share of the scan's", of_scan, MIN_OF_NSYS_SCAN, operator.ge)
    return path


def measure_retime(spans, targets):
    _, rss, output = timed([f"{BUILD}/bench/bench_retime", str(spans), "3"])
    ratio = float(re.search(r"takes ([0-9.]+) x", output).group(1))
    print(f"{output.splitlines()[-1]} ({spans / 1e6:.0f} M spans, {rss / spans:.0f} bytes of memory a span)")
    targets.check("time of re-timing against building the trees", ratio, MAX_RETIME, operator.le)


def measure_simulate(folder, targets):
    """Simulated traces against dd writing as many bytes into the same folder, both into the page cache; memory of 1,000 ranks."""
    cases, copy = f"{folder}/cases", f"{folder}/copy"
    seconds, rss, _ = timed([f"{BUILD}/teller", "lab", "simulate", "--engine", "vllm", "--ranks", "1000", "--steps", "20", "-q", "-o", cases])
    size = sum(f.stat().st_size for f in pathlib.Path(cases).rglob("*.json"))
    shutil.rmtree(cases)
    four, _, _ = timed([f"{BUILD}/teller", "lab", "simulate", "--engine", "vllm", "--ranks", "256", "--steps", "20", "--count", "4", "-q", "-o", cases])
    size_of_four = sum(f.stat().st_size for f in pathlib.Path(cases).rglob("*.json"))
    shutil.rmtree(cases)
    disk, _, _ = timed(["dd", "if=/dev/zero", f"of={copy}", "bs=1M", f"count={size_of_four >> 20}"])
    os.remove(copy)
    speed, of_disk = size_of_four / four / 1e6, disk / four
    print(f"simulate: 1,000 ranks x 20 steps, {size / 1e6:.0f} MB of JSON in {seconds:.1f} s, one thread, {size / seconds / 1e6:.0f} MB/s, peak memory {rss / 1e6:.0f} MB;"
          f" 4 cases of 256 ranks: {speed:.0f} MB/s; dd {size_of_four / disk / 1e6:.0f} MB/s")
    if of_disk < MIN_OF_DISK:
        targets.check("simulated JSON in MB/s", speed, MIN_SIMULATED, operator.ge)
    else:
        print("simulate: bound by the disk")
    targets.check("peak memory of 1,000 simulated ranks in MB", rss / 1e6, MAX_SIMULATED_MB, operator.le)


class Targets:
    """What was wanted and what came out."""

    def __init__(self):
        self.lines = []
        self.missed = 0

    def check(self, what, value, wanted, better):
        """`better` is operator.ge for what should be large, operator.le for what should be small."""
        met = better(value, wanted)
        self.missed += not met
        bound = "at least" if better is operator.ge else "at most"
        self.lines.append(f"{'met   ' if met else 'missed'}  {what}: {value:.2f}, wanted {bound} {wanted:g}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="300 2000", help="megabytes, separated by blanks")
    parser.add_argument("--nsys-rows", type=int, default=5_000_000, help="rows of the export; 0 = none")
    parser.add_argument("--retime-spans", type=int, default=10_000_000, help="spans of the run that is re-timed; 0 = none")
    parser.add_argument("--tpe", action="store_true", help="also Trace Pair Encoding, against tokenizers from PyPI")
    parser.add_argument("--tpe-nodes", type=int, default=4_000_000, help="nodes that both train on")
    parser.add_argument("--tpe-large", type=int, default=100_000_000, help="nodes of the large training; 0 = none")
    parser.add_argument("--tpe-file", help="file of real symbols instead of generated ones, see bench/tpe.cpp")
    parser.add_argument("--simulate", action="store_true", help="also the simulator, which writes 3 GB")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--hta", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the generated files")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a target is missed")
    options = parser.parse_args()
    load, cores = os.getloadavg()[0], os.cpu_count()
    if load > 0.5 * cores:
        print(f"note: the machine is busy (load {load:.1f} on {cores} cores); ratios of thread counts mean little")
    targets = Targets()
    per_byte = []
    folder = tempfile.mkdtemp(prefix="teller_bench_")
    for number, size in enumerate(options.sizes.split()):
        path = f"{folder}/trace_{size}.json"
        subprocess.run([f"{BUILD}/bench/bench_generate", path, size], check=True)
        bytes_total = os.path.getsize(path)
        result = measure(path, options.repeats)
        of_scan = result["scan"] / result["tree"]
        two_threads = result["one"] / result["two"]
        rss = result["rss"] / bytes_total
        per_byte.append(result["tree"] / bytes_total)
        print(
            f"{size} MB: scan {bytes_total / result['scan'] / 1e9:.2f} GB/s, tree {bytes_total / result['tree'] / 1e9:.2f} GB/s"
            f" = {of_scan:.2f} of the scan; two threads {two_threads:.2f} x one; peak memory {rss:.2f} x the file"
            f" ({result['tree']:.2f} s, {result['rss'] / 1e6:.0f} MB)"
        )
        targets.check(f"{size} MB, speed as a share of the scan's", of_scan, MIN_OF_SCAN, operator.ge)
        targets.check(f"{size} MB, peak memory as a share of the file", rss, MAX_RSS, operator.le)
        targets.check(f"{size} MB, two threads against one", two_threads, MIN_TWO_THREADS, operator.ge)
        if options.hta and number == 0:
            seconds, memory = hta_seconds(path, ".venv-bench")
            ratio = seconds / result["tree"]
            print(f"{size} MB: HolisticTraceAnalysis {seconds:.1f} s, {memory / 1e6:.0f} MB = {ratio:.0f} x the time of tree")
            targets.check(f"{size} MB, speed against HolisticTraceAnalysis", ratio, MIN_OF_HTA, operator.ge)
        if not options.keep:
            os.remove(path)
    if options.nsys_rows:
        path = measure_nsys(folder, options.nsys_rows, options.repeats, targets)
        if not options.keep:
            os.remove(path)
    if options.retime_spans:
        measure_retime(options.retime_spans, targets)
    if options.tpe:
        tpe_run.measure(folder, options, targets, BUILD, timed)
    if options.simulate:
        measure_simulate(folder, targets)
    if len(per_byte) > 1:
        growth = per_byte[-1] / per_byte[0]
        print(f"time per byte of the largest file: {growth:.2f} x that of the smallest")
        targets.check("growth of time per byte", growth, MAX_GROWTH, operator.le)
    if not options.keep:
        os.rmdir(folder)
    for line in targets.lines:
        print(line)
    return 1 if targets.missed and options.strict else 0


if __name__ == "__main__":
    sys.exit(main())
