"""Runs a command and writes its output to a file, line by line, and the epoch ns at which each line came to another.

usage: stamp.py LOG STAMPS COMMAND...
"""
import os
import signal
import subprocess
import sys
import time


def main():
    log, stamps, command = sys.argv[1], sys.argv[2], sys.argv[3:]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda n, _frame: os.kill(process.pid, n))
    with open(log, "ab", buffering=0) as lines, open(stamps, "ab", buffering=0) as times:
        for line in process.stdout:
            at = time.time_ns()
            times.write(b"%d\n" % at)  # first: a line that is there has its stamp
            lines.write(line)
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())
