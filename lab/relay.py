"""Carries Ethernet frames between two TAP devices in two network namespaces, and delays or loses some of them when it is told to.

Stands in for netem, which many kernels lack. Its orders come as those of the start-up hook do (lab.hook.site_orders), for the site
"link": effect "delay" (ns) or "lose" (share of the segments with data). What was done is appended to the file of the same name with ".done": of a
delay from the first frame to the last, of losses how long each lost segment was waited for, until it was sent again (or
acknowledged: what got through may be sent a second time). Only TCP segments with data are lost: what a lost acknowledgement or
window costs nothing here could tell.
The devices vanish with this process.

usage: python -m lab.relay NAMESPACE DEVICE NAMESPACE DEVICE TABLE
"""
import collections
import ctypes
import fcntl
import json
import os
import random
import select
import struct
import sys
import time

from lab.hook import site_orders

TUNSETIFF = 0x400454CA
TAP, NO_INFO = 0x0002, 0x1000
CLONE_NEWNET = 0x40000000
FRAME = 65600
WRAP = 1 << 32  # of sequence numbers


def enter(path):
    file = os.open(path, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(file, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
    finally:
        os.close(file)


def open_tap(namespace, device):
    enter(f"/run/netns/{namespace}")
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", device.encode(), TAP | NO_INFO))
    return tap


class Segment:
    """What a frame says of its TCP connection: `sender` and `receiver` (address, port), `first` sequence number, `size` of its data, and
    `next` sequence number that its sender waits for."""

    def __init__(self, frame, tcp):
        self.sender, self.receiver = (bytes(frame[26:30]), bytes(frame[tcp:tcp + 2])), (bytes(frame[30:34]), bytes(frame[tcp + 2:tcp + 4]))
        self.first, self.next = struct.unpack_from("!II", frame, tcp + 4)
        self.size = 14 + int.from_bytes(frame[16:18], "big") - tcp - 4 * (frame[tcp + 12] >> 4)

    @classmethod
    def of(cls, frame):
        """None of a frame that is no TCP segment over IPv4."""
        if len(frame) < 54 or frame[12:14] != b"\x08\x00" or frame[23] != 6:
            return None
        tcp = 14 + 4 * (frame[14] & 15)
        return cls(frame, tcp) if len(frame) >= tcp + 20 else None

    def ends(self, sender, receiver, first):
        """Whether nobody waits for the byte `first` any more once this segment has passed: it holds it, or its sender has it."""
        if (self.sender, self.receiver) == (sender, receiver):
            return (first - self.first) % WRAP < self.size
        return (self.receiver, self.sender) == (sender, receiver) and 0 < (self.next - first) % WRAP < WRAP // 2


class Relay:
    def __init__(self, taps, table, done):
        self._taps, self._table, self._done = taps, table, done
        self._held = collections.deque()  # (when, to, frame): a delay is one for all, so their order stays
        self._random = random.Random(1)
        self._told = None
        self._first = self._last = 0
        self._lost = {}  # (sender, receiver, first sequence number) -> when it was lost

    def run(self):
        poll = select.poll()
        for tap in self._taps:
            poll.register(tap, select.POLLIN)
        while True:
            wait = 20 if not self._held else max(0, (self._held[0][0] - time.time_ns()) // 1_000_000)
            for tap, _ in poll.poll(min(20, wait)):
                self._receive(tap, self._taps[1 - self._taps.index(tap)])
            while self._held and self._held[0][0] <= time.time_ns():
                _, to, frame = self._held.popleft()
                self._send(to, frame)
            self._tell()

    def _receive(self, tap, to):
        for _ in range(64):
            try:
                frame = os.read(tap, FRAME)
            except BlockingIOError:
                return
            now = time.time_ns()
            order = self._order(now)
            if order is None and not self._held:
                self._send(to, frame)
            elif order is None or order.effect == "delay":
                if order is not None:
                    self._affected(order, now)
                self._held.append((now + (order.ns if order is not None else 0), to, frame))
            elif (segment := Segment.of(frame)) and segment.size > 0 and self._random.random() < order.share:
                self._lose(order, segment, now)
            else:
                self._send(to, frame)

    def _order(self, now):
        for order in self._table.orders[:self._table.count]:
            if order.site == "link" and order.t0_ns <= now < order.t1_ns:
                return order
        return None

    def _affected(self, order, now):
        if self._told != order.t0_ns:
            order.hits += 1
            self._told, self._first = order.t0_ns, now
        self._last = now + order.ns

    def _tell(self):
        """Writes down an order whose time is over, once."""
        now = time.time_ns()
        if self._first and now > self._last and self._order(now) is None:
            self._write(self._first, self._last)
            self._first = 0

    def _write(self, begin, end):
        os.write(self._done, json.dumps({"site": "link", "t0_ns": begin, "t1_ns": end}).encode() + b"\n")

    def _lose(self, order, segment, now):
        if self._told != order.t0_ns:
            self._told = order.t0_ns
            self._lost.clear()  # of connections that are gone
        if not any(segment.ends(*key) for key in self._lost):  # what is lost again is waited for since the first time
            order.hits += 1
            self._lost[segment.sender, segment.receiver, segment.first] = now

    def _send(self, to, frame):
        if self._lost and (segment := Segment.of(frame)):
            for key in [key for key in self._lost if segment.ends(*key)]:
                self._write(self._lost.pop(key), time.time_ns())
        try:
            os.write(to, frame)
        except (BlockingIOError, OSError):
            pass  # a full or closed link loses frames, as links do


def main():
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    taps = [open_tap(*sys.argv[1:3]), open_tap(*sys.argv[3:5])]
    os.close(here)
    table = site_orders.attach(sys.argv[5])
    done = os.open(f"{sys.argv[5]}.done", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    print("ready", flush=True)
    Relay(taps, table, done).run()


if __name__ == "__main__":
    main()
