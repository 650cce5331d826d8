"""What a command keeps in memory is bounded by a multiple of its input, also when it writes all of it as JSON."""
import json
import os
import unittest

from harness import SANITIZED, TELLER, Case


@unittest.skipIf(SANITIZED, "a sanitizer has memory of its own")
class Memory(Case):
    LINES = 120_000

    def peak(self, *args):
        """Peak memory of the program in bytes; its output goes to out.txt."""
        pid = os.fork()
        if pid == 0:
            os.dup2(os.open(self.folder / "out.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
            os.execv(TELLER, [TELLER, *map(str, args)])
        _, status, usage = os.wait4(pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        return usage.ru_maxrss * 1024

    def test_json_needs_hardly_more_than_text(self):
        clock = lambda i: f"10:{i // 6000 % 60:02}:{i // 100 % 60:02}"
        for command, line in (("logs", lambda i: f"INFO 07-01 {clock(i)} x\n"),
                              ("requests", lambda i: f"INFO 07-01 {clock(i)} [core.py:1] Added request cmpl-{i:08x}-0.\n")):
            log = self.write(command + ".log", "".join(map(line, range(self.LINES))))
            size = log.stat().st_size
            text = self.peak(command, log)
            peak = self.peak(command, log, "--json")
            written = json.loads((self.folder / "out.txt").read_text())
            self.assertEqual(len(written["records" if command == "logs" else "requests"]), self.LINES)
            print(f"\n{command} --json: peak {peak / size:.1f} times the input; as text {text / size:.1f} times")
            self.assertLess(peak, 45 * size)
            self.assertLess(peak, 1.1 * text)


if __name__ == "__main__":
    unittest.main()
