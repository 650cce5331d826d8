"""Processes as /proc shows them: who belongs to a session, what they use, how they are ended."""
import os
import signal
import time

TICKS = os.sysconf("SC_CLK_TCK")


def processor_of(rank):
    """The one that a rank of a job is bound to. Ranks share processors where there are fewer."""
    cpus = sorted(os.sched_getaffinity(0))
    return cpus[rank % len(cpus)]


def stat(pid):
    """(name, state, parent, session, start in ticks since boot, CPU seconds, waits for a page from disk), or None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    words = rest.split()
    return (name, words[0], int(words[1]), int(words[3]), int(words[19]), (int(words[11]) + int(words[12])) / TICKS, int(words[9]))


def start_ticks(pid):
    found = stat(pid)
    return found[4] if found else None


def command(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def favour(session, nice, patience_s=3.0):
    """Sets how the kernel weighs a whole session against others (-20 most .. 19). False where it is not allowed."""
    until = time.monotonic() + patience_s
    while True:
        try:
            with open(f"/proc/{session}/autogroup", "w", encoding="ascii") as file:
                file.write(str(nice))
            return True
        except BlockingIOError:  # the kernel takes few of these in a second
            if time.monotonic() >= until:
                return False
            time.sleep(0.05)
        except OSError:
            return False


def members(session, began):
    """Living processes of a session whose leader started at tick `began`. A leader of another start is another session."""
    leader = start_ticks(session)
    if leader is not None and leader != began:
        return []
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (seen := stat(entry)) and seen[3] == session and seen[1] != "Z" and seen[4] >= began:
            found.append(int(entry))
    return sorted(found)


def send(pid, number):
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def end_session(session, began, patience_s=0.0):
    """Ends all of a session, asking first when there is patience. True when nothing of it is left."""
    if patience_s > 0:
        for pid in members(session, began):
            send(pid, signal.SIGCONT)
            send(pid, signal.SIGTERM)
        until = time.monotonic() + patience_s
        while time.monotonic() < until and members(session, began):
            time.sleep(0.05)
    for _ in range(100):
        left = members(session, began)
        if not left:
            return True
        for pid in left:
            send(pid, signal.SIGKILL)
            send(pid, signal.SIGCONT)
        time.sleep(0.05)
    return not members(session, began)
