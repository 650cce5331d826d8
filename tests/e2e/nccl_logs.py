"""Synthetic NCCL_DEBUG=INFO logs in the line forms of several versions, healthy or with one weak link."""
import random

BUS = ["17000", "2a000", "3d000", "5e000", "97000", "ab000", "bd000", "e1000"]
VERSIONS = [(2, 14), (2, 18), (2, 20), (2, 22), (2, 25), (2, 27)]

# NVLink of an eight-GPU cube mesh, one or two links a pair: uneven by design.
CUBE = {(0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2, (2, 6): 1, (3, 7): 1,
        (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2}


class Job:
    """A job of `hosts` machines with `gpus` GPUs each, one communicator over all of them.

    fabric: "switch", "mesh", "bridges" (pairs), "cube", "pcie". The other arguments break something:
    links {(host, gpu, gpu or "NVS"): factor, 0 = gone}, pcie {(host, gpu): GB/s}, shm {(host, gpu, gpu)},
    socket {host}, no_gdr {(host, gpu)}.
    """

    def __init__(self, gpus=8, hosts=1, version=(2, 22), fabric="switch", links=(), pcie=(), shm=(), socket=(), no_gdr=(),
                 numa_shm=False, all_shm=False, nodes=None):
        self.gpus, self.hosts, self.version, self.fabric = gpus, hosts, version, fabric
        self.links, self.pcie, self.shm = dict(links), dict(pcie), {(h, *sorted((a, b))) for h, a, b in shm}
        self.socket, self.no_gdr, self.numa_shm, self.all_shm = set(socket), set(no_gdr), numa_shm, all_shm
        self.nodes = nodes or list(range(gpus))  # which GPUs of the design are used

    def host(self, h):
        return f"gpu-node{h:02d}.cluster"

    def rank(self, h, g):
        return h * self.gpus + g

    def node(self, kind, ident):
        return f"{kind}/0-{ident}" if self.version >= (2, 20) else f"{kind}/{ident.upper() if self.version < (2, 18) else ident}"

    def bandwidth(self, h, a, b):
        """GB/s of the NVLink connection between two GPUs, or of one GPU and "NVS"."""
        if self.fabric == "pcie":
            return 0
        if self.fabric == "switch":
            base = 360.0 if b == "NVS" else 0
        elif b == "NVS":
            return 0
        elif self.fabric == "mesh":
            base = 80.0
        elif self.fabric == "bridges":
            base = 240.0 if a // 2 == b // 2 else 0
        else:
            base = 20.0 * CUBE.get(tuple(sorted((self.nodes[a], self.nodes[b]))), 0)
        return base * self.links.get((h, a, b), self.links.get((h, b, a), 1))

    def topology(self, h):
        old = self.version < (2, 14)
        yield "=== System : maxBw 360.0 totalBw 360.0 ===" if not old else "=== System : maxWidth 360.0 totalWidth 360.0 ==="
        half = max(1, self.gpus // 2)
        for cpu in range(2):
            mine = range(0, half) if cpu == 0 else range(half, self.gpus)
            yield f"{self.node('CPU', str(cpu))} (1/1/2)"
            for g in mine:
                up = self.pcie.get((h, g), 48.0)
                yield f"+ PCI[48.0] - {self.node('PCI', f'{g + 1}000')} (1000c0301000100b)"
                pad = " " * 14
                if self.version >= (2, 27):  # a device and its GPU are two nodes
                    yield f"{pad}+ PCI[{up:.1f}] - {self.node('DEV', BUS[g])} (10de232410de17a6)"
                    pad += " " * 14
                    yield f"{pad}+ LOC[5000.0] - {self.node('GPU', BUS[g])} ({self.rank(h, g)})"
                else:
                    yield f"{pad}+ PCI[{up:.1f}] - {self.node('GPU', BUS[g])} ({self.rank(h, g)})"
                    pad += " " * 14
                for other in [*range(self.gpus), "NVS"]:
                    gbs = 0 if other == g else self.bandwidth(h, g, other)
                    if gbs:
                        end = self.node("NVS", "0") if other == "NVS" else self.node("DEV" if self.version >= (2, 27) else "GPU", BUS[other])
                        yield f"{pad}+ NVL[{gbs:.1f}] - {end}"
            yield f"+ SYS[16.0] - {self.node('CPU', str(1 - cpu))}"
            yield f"+ PCI[48.0] - {self.node('NIC', f'4{cpu}000')}"
            yield f"{' ' * 14}+ NET[50.0] - {self.node('NET', str(cpu))} (0/{cpu}a1b2/1/50.000000)"
        yield "=========================================="
        names = [self.node("GPU", BUS[g]) for g in range(self.gpus)]
        for name in names:
            yield f"{name} :" + " ".join(f"{n} (1/240.0/NVL)" for n in names) + " "
        word = "bw" if self.version >= (2, 14) else "speed"
        yield f"Pattern 4, crossNic 0, nChannels 12, {word} 20.000000/20.000000, type NVL/PIX, sameChannels 1"
        yield " 0 : " + " ".join(names)

    def via(self, h, a, b):
        if self.all_shm or (h, *sorted((a, b))) in self.shm or (self.numa_shm and (a < self.gpus // 2) != (b < self.gpus // 2)):
            return "SHM/direct/direct"
        if self.fabric == "bridges" and a // 2 != b // 2 and self.numa_shm:
            return "SHM/direct/direct"
        return {(2, 14): "P2P/IPC", (2, 18): "P2P/IPC/read", (2, 20): "P2P/CUMEM"}.get(self.version, "P2P/CUMEM/read")

    def bracket(self, g):
        return BUS[g] if self.version < (2, 18) else str(g)

    def net(self, h, g):
        if h in self.socket:
            return "NET/Socket/0"
        return f"NET/IB/{g % 2}" + ("" if (h, g) in self.no_gdr else "/GDRDMA")

    def connections(self, h, g, channels):
        world = self.gpus * self.hosts
        me = self.rank(h, g)
        for c in range(channels):
            name = f"Channel {c:02d}/0" if self.version >= (2, 14) else f"Channel {c:02d}"
            for step in (1, -1):
                peer = (me + step) % world
                ph, pg = divmod(peer, self.gpus)
                if peer == me:
                    continue
                if ph == h:
                    yield f"{name} : {me}[{self.bracket(g)}] -> {peer}[{self.bracket(pg)}] via {self.via(h, g, pg)}"
                elif step == 1:
                    yield f"{name} : {me}[{self.bracket(g)}] -> {peer}[{self.bracket(pg)}] [send] via {self.net(h, g)}"
                else:
                    yield f"{name} : {peer}[{self.bracket(pg)}] -> {me}[{self.bracket(g)}] [receive] via {self.net(h, g)}"

    def init(self, h, g, what):
        front = "ncclCommInitRank " if self.version >= (2, 21) else ""
        new = self.version >= (2, 18)
        return (f"{front}comm 0x55{h}{g}a990 rank {self.rank(h, g)} nranks {self.gpus * self.hosts} cudaDev {g} "
                + (f"nvmlDev {g} " if new else "") + f"busId {BUS[g]} " + ("commId 0x54fe282d32a87d85 " if new else "") + f"- Init {what}")

    def messages(self, h, g, channels=4):
        """(thread, text) of one process in its own order."""
        main, late = 100 + g, 300 + g
        network = "Socket" if h in self.socket else "IB"
        if h in self.socket:
            yield main, "NET/IB : No device found."
        yield main, f"Using network {network}"
        if self.version >= (2, 18):
            yield main, self.init(h, g, "START")
        for text in self.topology(h):
            yield main, text
        if (h, g) in self.no_gdr:
            yield main, f"NET/IB : GPU Direct RDMA Disabled for HCA {g % 2} 'mlx5_{g % 2}'"
        if g == 0 and h == 0:
            for c in range(channels):
                yield main, f"Channel {c:02d}/{channels:02d} : " + " ".join(f"{r:3d}" for r in range(self.gpus * self.hosts))
        world = self.gpus * self.hosts
        me = self.rank(h, g)
        yield main, "Trees " + " ".join(f"[{c}] {me + 1 if me + 1 < world else -1}/-1/-1->{me}->{me - 1}" for c in range(channels))
        yield main, "P2P Chunksize set to 524288"
        lazy = self.version >= (2, 22)  # connections are made at first use, by another thread
        if not lazy:
            for text in self.connections(h, g, channels):
                yield main, text
            yield main, "Connected all rings"
        nvls = "" if self.version < (2, 18) else " 0 collnet channels, 0 nvls channels,"
        yield main, f"{channels} coll channels,{nvls} {channels} p2p channels, {max(1, channels // 2)} p2p channels per peer"
        yield main, self.init(h, g, "COMPLETE")
        if self.version >= (2, 20):
            what = "" if self.version < (2, 22) else " - ncclCommInitRank"
            yield main, (f"Init timings{what}: rank {self.rank(h, g)} nranks {self.gpus * self.hosts} total 1.{g}0 (kernels 0.20, "
                         "bootstrap 0.31, allgathers 0.00, topo 0.04, graphs 0.02, connections 0.03, rest 0.01)")
        if lazy:
            for text in self.connections(h, g, channels):
                yield late, text
            yield late, "Connected all rings, use ring PXN 0 GDR 1"

    def process(self, h, g):
        for tid, text in self.messages(h, g):
            yield f"{self.host(h)}:{4000 + self.rank(h, g)}:{tid + 7000} [{g}] NCCL INFO {text}"

    def log(self, seed=1, noise=False):
        """All processes into one pipe: lines of different processes mixed, with `noise` also torn into other output."""
        rng = random.Random(seed)
        queues = [list(self.process(h, g)) for h in range(self.hosts) for g in range(self.gpus)]
        out = [f"NCCL version {self.version[0]}.{self.version[1]}.3+cuda12.4"]
        while queues:
            queue = rng.choice(queues)
            for _ in range(rng.randint(1, 5)):
                if queue:
                    out.append(queue.pop(0))
            queues = [q for q in queues if q]
        if not noise:
            return "\n".join(out) + "\n"
        text = ""
        for line in out:
            kind = rng.random()
            if kind < 0.1:  # in the middle of another line, whose rest comes behind
                text += f"step {rng.randint(0, 99)}: loss={rng.random():.4f} " + line + "\nlr=0.001\n"
            elif kind < 0.15:
                text += f"  {rng.random():.2f}  " + line + "\n"
            elif kind < 0.2:
                text += f"(Worker pid={rng.randint(2, 9)}) " + line + "\n"
            elif kind < 0.22:
                text += "tokens" + line + "\n"
            else:
                text += line + "\n"
        return text
