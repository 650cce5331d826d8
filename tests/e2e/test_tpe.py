"""Trace Pair Encoding through the program: train, encode, decode, stats, sweep."""
import gzip
import json
import os
import resource
import subprocess
import unittest

from harness import DEMO, SANITIZED, SHARED, TELLER, Case, span, teller, trace

# A vocabulary's readable header ends with the line that tells how many bytes follow.
MAGIC = b"teller-tpe-vocabulary "


def name_hash(name):
    """FNV-1a, as written beside unknown operators."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def steps(count, calls=20, **names):
    """A thread that does the same work in every step."""
    events = []
    at = 0
    for step in range(count):
        begin = at
        for call in range(calls):
            events.append(span(names.get("outer", "aten::linear"), at, 90))
            events.append(span(f"aten::op{call % 5}", at + 10, 40))
            at += 100
        events.append(span(f"ProfilerStep#{step}", begin, at - begin, cat="user_annotation"))
        at += 50
    return events


class TpeCase(Case):
    def run_teller(self, *args, status=(0, 3), **kwargs):
        done = teller("tpe", *args, **kwargs)
        self.assertIn(done.returncode, status, done.stderr.decode(errors="replace"))
        return done.stdout

    def train(self, *runs, merges=4096, name="v.tpe", **kwargs):
        path = self.folder / name
        self.run_teller("train", *runs, "--vocab", merges, "-o", path, **kwargs)
        return path

    def tokens(self, *args, **kwargs):
        return json.loads(self.run_teller("encode", *args, "--json", **kwargs))

    def trees(self, encoded, *args):
        """Decoded segments as lists of (layer, hash of the name, depth)."""
        path = self.write("tokens.json", json.dumps(encoded))
        decoded = json.loads(self.run_teller("decode", path, *args, "--json"))
        self.assertEqual(decoded["schema"], "teller.forest/1")
        trees = []
        for segment in decoded["segments"]:
            symbols = [(s["layer"], int(s["unknown"], 16) if "unknown" in s else name_hash(s["name"])) for s in segment["symbols"]]
            self.assertEqual(len(segment["symbol"]), segment["nodes"])
            trees.append([(*symbols[row], depth) for row, depth in zip(segment["symbol"], segment["depth"], strict=True)])
        return trees


class RoundTrip(TpeCase):
    def check_run(self, run):
        """Tokens of the built-in vocabulary and single nodes give the same trees."""
        encoded = self.tokens(run, "--all")
        nodes = self.train(run, merges=0)
        plain = self.tokens(run, "--all", "--vocab", nodes)
        for segment in plain["segments"]:
            self.assertEqual(len(segment["id"]), segment["nodes"])
        trees = self.trees(encoded)
        self.assertEqual(trees, self.trees(plain, "--vocab", nodes))
        return encoded, trees

    def test_vocabulary_as_json_is_what_the_file_holds(self):
        dump = json.loads(teller("tpe", "dump").stdout)
        merges = [e for e in dump["entries"] if e["kind"] == "merge"]
        self.assertEqual(len(merges), 4096)
        nodes = {e["id"]: e["nodes"] for e in dump["entries"]}
        for merge in merges:
            self.assertEqual(merge["nodes"], nodes[merge["left"]] + nodes[merge["right"]])
        self.assertEqual(teller("tpe", "dump", "--vocab", self.write("v.tpe", "nothing")).returncode, 2)

    def test_demo(self):
        encoded, trees = self.check_run(DEMO)
        self.assertGreater(sum(map(len, trees)), 10000)
        for segment in encoded["segments"]:
            for column in ("depth", "parent", "parent_offset", "total_ns", "self_ns", "worst_offset", "worst_z", "worst_excess_ns"):
                self.assertEqual(len(segment[column]), len(segment["id"]))

    def test_every_real_trace(self):
        root = self.needs("data/traces")
        runs = sorted(p for p in root.rglob("*") if p.name.endswith((".json.gz", ".json", ".sqlite")))
        runs += sorted(p.parent for p in self.needs("data/lab").rglob("label.json"))
        checked = 0
        for run in runs:
            if teller("inspect", run).returncode == 2:
                continue  # a note beside the traces
            with self.subTest(run=str(run)):
                self.check_run(run)
                checked += 1
        self.assertGreaterEqual(checked, 60)

    def test_parents_are_those_of_the_tree(self):
        encoded, trees = self.check_run(DEMO)
        vocabulary = self.train(DEMO, merges=64)
        encoded = self.tokens(DEMO, "--vocab", vocabulary)
        for segment, tree in zip(encoded["segments"], self.trees(encoded, "--vocab", vocabulary), strict=True):
            first = []
            at = 0
            # Where tokens begin follows from the sizes of the fragments: the depths of the tree and of the tokens agree there.
            sizes = self.sizes(vocabulary, segment["id"])
            for size in sizes:
                first.append(at)
                at += size
            self.assertEqual(at, len(tree))
            for token, (parent, offset) in enumerate(zip(segment["parent"], segment["parent_offset"])):
                self.assertEqual(tree[first[token]][2], segment["depth"][token])
                if parent is None:
                    continue
                node = first[parent] + offset
                self.assertEqual(tree[node][2], segment["depth"][token] - 1)
                self.assertTrue(all(tree[i][2] >= segment["depth"][token] for i in range(node + 1, first[token])))

    def sizes(self, vocabulary, ids):
        """Nodes of each token; of entries that steps of the demonstration use."""
        if not hasattr(self, "known"):
            used = json.loads(self.run_teller("stats", DEMO, "--vocab", vocabulary, "--json", "--all"))["most_used"]
            self.known = {use["id"]: use["nodes"] for use in used}
        return [self.known[i] for i in ids]

    def test_text_and_standard_input(self):
        encoded = self.run_teller("encode", DEMO, "--json")
        done = subprocess.run([TELLER, "tpe", "decode", "-"], input=encoded, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"op aten::mm", done.stdout)
        self.assertIn(b"thread main", done.stdout)
        text = self.run_teller("encode", DEMO, "--step", 3).decode()
        self.assertIn("step 3", text)

    def test_works_in_any_directory(self):
        self.assertEqual(self.tokens(DEMO, cwd="/")["vocabulary"]["name"], "default")


class Determinism(TpeCase):
    def test_threads_and_order_do_not_show(self):
        other = self.write("other.json", trace(steps(30, calls=7)))
        one = self.train(DEMO, other, "--threads", 1, name="one.tpe").read_bytes()
        two = self.train(other, DEMO, "--threads", 4, name="two.tpe").read_bytes()
        self.assertEqual(one, two)
        for command in (("encode", DEMO, "--json"), ("stats", DEMO, "--json", "--all"), ("stats", DEMO)):
            self.assertEqual(self.run_teller(*command, "--threads", 1), self.run_teller(*command, "--threads", 4))
        for command in (["sweep", "--vocab", "0,32,256", "--json"], ["stats", "--json"]):
            self.assertEqual(self.run_teller(command[0], DEMO, other, *command[1:]), self.run_teller(command[0], other, DEMO, *command[1:]))

    def test_extended_vocabulary_keeps_ids(self):
        old = self.train(DEMO, merges=40, name="old.tpe")
        other = self.write("other.json", trace(steps(30, outer="aten::brand_new")))
        new = self.train(other, "--extend", old, merges=20, name="new.tpe")
        before = self.tokens(DEMO, "--step", 2, "--vocab", old)
        self.assertGreater(new.stat().st_size, old.stat().st_size)
        # Old tokens still mean the same: read with the new vocabulary they give the same trees.
        after = json.loads(json.dumps(before))
        after["vocabulary"]["fingerprint"] = self.tokens(DEMO, "--step", 2, "--vocab", new)["vocabulary"]["fingerprint"]
        self.assertEqual(self.trees(before, "--vocab", old), self.trees(after, "--vocab", new))


class Figures(TpeCase):
    def test_stats_add_up(self):
        stats = json.loads(self.run_teller("stats", DEMO, "--json", "--all"))
        self.assertEqual(stats["schema"], "teller.tpe-stats/1")
        everything = stats["steps"]["nodes"] + stats["outside_steps"]["nodes"]
        structure = stats["steps"]["structure_nodes"] + stats["outside_steps"]["structure_nodes"]
        self.assertEqual(everything, stats["spans"] + structure)
        self.assertEqual(sum(row["nodes"] for row in stats["engines"]), stats["steps"]["nodes"])
        self.assertAlmostEqual(sum(use["covers"] for use in stats["most_used"]), 1)
        self.assertEqual(sum(use["count"] for use in stats["most_used"]), stats["steps"]["tokens"])

    def test_tokens_tell_what_proves_a_finding(self):
        plain = self.tokens(DEMO)
        self.assertNotIn("findings", plain)
        self.assertNotIn("evidence", plain["segments"][0])
        encoded = self.tokens(DEMO, "--findings")
        verdict = json.loads(teller("diagnose", DEMO, "--format", "json").stdout)
        self.assertEqual([f["id"] for f in encoded["findings"]], [f["id"] for f in verdict["findings"]])
        spans = {e["id"]: int(e["ref"].split(":")[1]) for f in verdict["findings"] for e in f["evidence"] if e["kind"] == "span"}
        self.assertTrue(spans)
        accused, told = set(), set()
        for with_findings, without in zip(encoded["segments"], plain["segments"]):
            self.assertEqual(with_findings["id"], without["id"])
            accused |= {(with_findings["rank"], with_findings["step"]) for _ in with_findings["accused"]}
            evidence = with_findings["evidence"]
            self.assertEqual(len(evidence["id"]), len(evidence["token"]))
            for token in evidence["token"]:
                self.assertLess(token, with_findings["tokens"])
            told |= set(evidence["id"])
        self.assertEqual(accused, {(s["rank"], s["index"]) for f in verdict["findings"] for s in f["steps"]})
        self.assertEqual(told, set(spans))
        self.assertIn("proves", self.run_teller("encode", DEMO, "--findings").decode())

    def test_sweep_measures_steps_that_were_not_learned_from(self):
        runs = [self.write(f"run{i}.json", trace(steps(20 + i, calls=15))) for i in range(4)]
        sweep = json.loads(self.run_teller("sweep", *runs, "--vocab", "0,8,64", "--json"))
        self.assertEqual(sweep["schema"], "teller.tpe-sweep/1")
        self.assertEqual(sorted(sweep["train"] + sweep["test"]), sorted(map(str, runs)))
        self.assertFalse(set(sweep["train"]) & set(sweep["test"]))
        self.assertEqual(sweep["tpe"][0]["tokens"], sweep["nodes"])
        # aten::linear, five operators, the steps' mark, the main thread.
        self.assertEqual(sweep["names"], 8)
        self.assertEqual(sweep["tpe"][0]["bytes_per_step"], sweep["raw_bytes_per_step"])
        saved = [row["saved"] for row in sweep["tpe"]]
        self.assertEqual(saved, sorted(saved))
        self.assertGreater(saved[-1], 0.9)
        named = json.loads(self.run_teller("sweep", runs[0], "--test", runs[1], "--vocab", "4", "--json"))
        self.assertEqual((named["train"], named["test"]), ([str(runs[0])], [str(runs[1])]))
        self.assertIn("zstd -19", self.run_teller("sweep", *runs, "--vocab", "0,8").decode())

    def test_a_test_run_is_not_learned_from_however_it_is_named(self):
        for i, outer in enumerate(("aten::train", "aten::test")):
            self.write(f"t/ok{i}/t.json", trace(steps(12, outer=outer)))

        def sweep(train, test):
            return json.loads(self.run_teller("sweep", *train, "--test", test, "--vocab", "64", "--json", cwd=self.folder, status=(0,)))

        clean = sweep(["t/ok0"], "t/ok1")
        self.assertGreater(clean["unknown_nodes"], 0)
        for test in ("t/ok1", "t/ok1/", "./t/ok1", "t//ok1", "t/../t/ok1", "t/ok1/t.json", self.folder / "t" / "ok1"):
            for train in (["t/ok0", "t/ok1"], ["t"], ["./t/", "t/ok1"], ["t/ok0", self.folder / "t" / "ok1"]):
                with self.subTest(test=str(test), train=list(map(str, train))):
                    found = sweep(train, test)
                    for key in ("unknown_nodes", "nodes", "names", "tpe", "raw_bytes_per_step"):
                        self.assertEqual(found[key], clean[key])
                    self.assertEqual((len(found["train"]), len(found["test"])), (1, 1))
        text = self.run_teller("sweep", "t", "--test", "t/ok1", "--vocab", "4", cwd=self.folder, status=(0,)).decode()
        self.assertIn("t/ok1/t.json: already read as part of t/ok1", " ".join(text.split()))
        # The same recording in another file: a link, a copy, packed otherwise.
        one = self.folder / "t" / "ok1" / "t.json"
        os.link(one, self.folder / "hard.json")
        self.write("copy.json", one.read_bytes())
        (self.folder / "packed.json.gz").write_bytes(gzip.compress(one.read_bytes()))
        subprocess.run(["tar", "cf", self.folder / "t.tar", "-C", one.parent, "t.json"], check=True)
        for test in ("hard.json", "copy.json", "packed.json.gz", "t.tar"):
            found = sweep(["t"], test)
            self.assertEqual((found["tpe"], found["names"]), (clean["tpe"], clean["names"]), test)
            self.assertIn("same recording", found["skipped_why"][0])
        self.fails("tpe", "sweep", "t/ok1", "--test", "t/ok1/", cwd=self.folder, says="training")
        self.fails("tpe", "sweep", "t/ok1", "--test", "t", cwd=self.folder, says="training")

    def test_a_run_named_twice_counts_once(self):
        self.write("t/ok/t.json", trace(steps(12)))
        for command in ("stats", "sweep"):
            once = json.loads(self.run_teller(command, "t/ok", DEMO, "--json", cwd=self.folder))
            for again in ("t/ok/", "./t/ok", "t/ok/t.json"):
                twice = json.loads(self.run_teller(command, "t/ok", again, DEMO, "--json", cwd=self.folder))
                self.assertEqual(twice["steps"], once["steps"])
                self.assertEqual(twice["engines"], once["engines"])
        one = self.train("t/ok", name="one.tpe", cwd=self.folder).read_bytes()
        self.assertEqual(self.train("t/ok", "t/ok/", "t", "./t/ok/t.json", name="two.tpe", cwd=self.folder).read_bytes(), one)

    @unittest.skipIf(SANITIZED, "sizes are those of the release build")
    def test_compression_of_real_steps_of_other_files(self):
        """Of each engine every second run is learned from, the steps of the others are measured."""
        lab = self.needs("data/lab")
        stacks = {"late_host_fsdp_w2", "slow_mm_tp_w2", "slow_scheduler_stack_1", "d09_with_stack_spin_wait"}
        for engine, least in (("vllm", 0.90), ("fsdp", 0.90), ("sglang", 0.90), ("llamacpp", 0.90)):
            # Captures with Python frames: there is one of each program, so that nothing like them can be learned from.
            runs = sorted(p.parent for p in (lab / engine).glob("*/label.json") if p.parent.name not in stacks)
            sweep = json.loads(self.run_teller("sweep", *runs, "--vocab", "4096", "--json", timeout=600))
            print(f"{engine}: {sweep['steps']} steps of {len(sweep['test'])} files, saved {sweep['tpe'][0]['saved']:.4f}")
            self.assertGreaterEqual(sweep["tpe"][0]["saved"], least, engine)


class BadInput(TpeCase):
    def fails_tpe(self, *args, says="", **kwargs):
        return self.fails("tpe", *args, says=says, **kwargs)

    def test_vocabularies(self):
        good = self.train(DEMO, merges=50).read_bytes()
        self.assertTrue(good.startswith(MAGIC))
        body = bytearray(good)
        body[len(good) // 2] ^= 1
        for name, content in {"flipped": bytes(body), "cut": good[: len(good) // 2], "long": good + b"x", "empty": b"", "text": b"hello\n" * 99,
                              "version": good.replace(b" 1\n", b" 99\n", 1)}.items():
            with self.subTest(name):
                self.fails_tpe("encode", DEMO, "--vocab", self.write(name + ".tpe", content), says=name + ".tpe")
        self.fails_tpe("encode", DEMO, "--vocab", self.folder / "nowhere.tpe", says="nowhere.tpe")
        self.fails_tpe("train", DEMO, "-o", self.folder / "no" / "such" / "v.tpe", says="v.tpe")
        self.fails_tpe("train", DEMO, says="-o FILE")
        self.fails_tpe("encode", DEMO, "--graphs", self.folder / "nowhere", says="nowhere")
        self.fails_tpe("stats", DEMO, "--graphs", self.folder / "nowhere", says="nowhere")

    def test_links_are_followed_when_a_vocabulary_is_written(self):
        (self.folder / "link.tpe").symlink_to("new.tpe")
        self.run_teller("train", DEMO, "--vocab", 5, "-o", self.folder / "link.tpe")
        self.assertTrue((self.folder / "link.tpe").is_symlink())
        self.assertTrue((self.folder / "new.tpe").read_bytes().startswith(MAGIC))
        (self.folder / "ring.tpe").symlink_to("ring.tpe")
        self.fails_tpe("train", DEMO, "-o", self.folder / "ring.tpe", says="ring.tpe")
        self.assertTrue((self.folder / "ring.tpe").is_symlink())

    def test_merges_may_stand_before_runs(self):
        runs = [self.write(f"run{i}.json", trace(steps(9 + i))) for i in range(2)]
        self.run_teller("sweep", "--vocab", "0,4", *runs, status=(0,))
        self.fails_tpe("stats", DEMO, "--logs", DEMO / "logs" / "rank0.log", says="--logs")

    def test_runs(self):
        empty = self.folder / "empty"
        empty.mkdir()
        for command in ("train", "encode", "stats", "sweep"):
            extra = ("-o", self.folder / "v.tpe") if command == "train" else ()
            self.fails_tpe(command, empty, *extra)
            self.fails_tpe(command, self.folder / "nowhere", *extra, says="nowhere")
            self.fails_tpe(command, self.write("bare.json", trace([])), *extra, says="span")
        self.fails_tpe("encode", DEMO, "--step", 4711, says="no step 4711")
        self.fails_tpe("encode", DEMO, "--rank", 99, says="rank 99")
        self.fails_tpe("sweep", DEMO, "--test", DEMO, says="training")

    def test_a_run_without_steps_is_one_segment(self):
        run = self.write("flat.json", trace([span("aten::mm", 0, 10), span("aten::t", 20, 5)]))
        encoded = self.tokens(run)
        self.assertEqual([s["kind"] for s in encoded["segments"]], ["whole"])
        self.assertEqual(len(self.trees(encoded)[0]), 3)
        self.fails_tpe("encode", run, "--step", 0, says="no step 0")

    def test_a_single_node(self):
        run = self.write("one.json", trace([span("aten::mm", 0, 10)]))
        vocabulary = self.train(run)
        encoded = self.tokens(run, "--vocab", vocabulary)
        self.assertEqual(sum(s["nodes"] for s in encoded["segments"]), 2)
        self.assertEqual([depth for *_, depth in self.trees(encoded, "--vocab", vocabulary)[0]], [0, 1])

    def test_damaged_traces_are_encoded_as_far_as_they_go(self):
        text = trace(steps(20))
        run = self.write("cut.json", text[: len(text) * 3 // 4])
        done = teller("tpe", "encode", run, "--json")
        self.assertEqual(done.returncode, 3)
        self.assertGreater(len(json.loads(done.stdout)["segments"]), 5)

    def test_what_is_lost_is_said_and_what_holds_no_trace_is_listed(self):
        text = trace(steps(12))
        packed = gzip.compress(text.encode())
        fine = [self.write(f"ok{i}/t.json", trace(steps(12 + i))).parent for i in range(2)]
        notes = self.write("notes/README.md", "hello\n").parent
        log = self.write("log/server.log", "INFO 07-01 10:00:00 [core.py:1] started\n").parent
        self.write("head/t.json.gz", "")
        (self.folder / "head" / "t.json.gz").write_bytes(packed[:6])
        (self.folder / "half.json.gz").write_bytes(packed[: len(packed) // 2])
        self.write("sick/t.json.gz", "")
        (self.folder / "sick" / "t.json.gz").write_bytes(b"\x1e" + packed[1:])
        damaged = {self.folder / "head": "damaged from its first byte", self.folder / "sick": "binary data of unknown form", self.write("cut/t.json", '{"schemaVersion": 1, "traceEv').parent: "cut off",
                   self.write("empty/t.json", "").parent: "empty", self.folder / "half.json.gz": None}
        commands = {"train": ("-o", self.folder / "v.tpe"), "stats": (), "sweep": ("--vocab", "4")}
        for command, extra in commands.items():
            with self.subTest(command):
                done = teller("tpe", command, *fine, notes, log, *extra)
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                listed = " ".join(done.stdout.decode().split())
                self.assertIn("holds nothing that can be read", listed)
                self.assertIn("holds no spans", listed)
        for run, why in damaged.items():
            for command, extra in commands.items():
                with self.subTest(command, run=run.name):
                    done = teller("tpe", command, *fine, notes, run, *extra)
                    self.assertEqual(done.returncode, 3, done.stderr)
                    self.assertEqual(done.stderr.count(b"\n"), 1)
                    self.assertIn(str(run), done.stderr.decode())
                    if why:
                        self.assertIn(why, " ".join(done.stdout.decode().split()))
                        self.assertEqual(done.stdout.count(b"skipped"), 1)
                    else:
                        self.assertNotIn(str(run), done.stdout.decode())
        for command in ("stats", "sweep"):
            done = teller("tpe", command, *fine, notes, *damaged, "--json", "-q")
            self.assertEqual((done.returncode, done.stderr), (3, b""))
            read = json.loads(done.stdout)
            self.assertEqual(read["lost_input"], sorted(map(str, damaged)))
            self.assertEqual(read["skipped"], sorted(str(p) for p in (notes, *damaged) if damaged.get(p, "") is not None))
            self.assertEqual(len(read["skipped_why"]), len(read["skipped"]))
        # With nothing else there is nothing to learn from.
        for run, why in damaged.items():
            if why:
                self.fails_tpe("train", notes, run, "-o", self.folder / "v.tpe", says=why)

    def test_a_long_list_of_what_was_skipped_is_counted(self):
        fine = self.write("ok/t.json", trace(steps(6))).parent
        notes = [self.write(f"n{i}/README.md", "hello\n").parent for i in range(9)]
        cut = self.write("zz.json", '{"traceEv')
        lines = self.run_teller("train", fine, *notes, cut, "-o", self.folder / "v.tpe", status=(3,)).decode()
        self.assertIn("zz.json: not usable", " ".join(lines.split()))
        self.assertIn("5 more", lines)
        self.assertEqual(" ".join(lines.split()).count("holds nothing that can be read"), 4)
        everything = self.run_teller("train", fine, *notes, cut, "--all", "-o", self.folder / "v.tpe", status=(3,)).decode()
        self.assertEqual(" ".join(everything.split()).count("holds nothing that can be read"), 9)

    def test_tokens(self):
        good = self.tokens(DEMO, "--step", 1)
        path = self.write("tokens.json", json.dumps(good))
        self.run_teller("decode", path)
        other = self.train(DEMO, merges=9)
        self.fails_tpe("decode", path, "--vocab", other, says="vocabulary")

        def broken(change):
            copy = json.loads(json.dumps(good))
            change(copy)
            return self.write("broken.json", json.dumps(copy))

        segment = "segment 0"
        self.fails_tpe("decode", broken(lambda t: t["segments"][0]["id"].__setitem__(0, 1 << 30)), says=segment)
        self.fails_tpe("decode", broken(lambda t: t["segments"][0]["depth"].__setitem__(-1, 1 << 29)), says=segment)
        self.fails_tpe("decode", broken(lambda t: t["segments"][0]["depth"].append(0)), says=segment)
        self.fails_tpe("decode", broken(lambda t: t["segments"][0].pop("id")), says=segment)
        self.fails_tpe("decode", broken(lambda t: t["segments"][0]["id"].__setitem__(0, -1)), says=segment)
        self.fails_tpe("decode", broken(lambda t: t["segments"][0]["id"].__setitem__(0, "x")), says=segment)
        self.fails_tpe("decode", broken(lambda t: t["segments"][0].__setitem__("unknown", {"node": [1], "hash": ["xyz"]})), says=segment)
        self.fails_tpe("decode", broken(lambda t: t.__setitem__("segments", {})), says="segments")
        self.fails_tpe("decode", broken(lambda t: t.__setitem__("schema", "teller.tokens/2")), says="version")
        self.fails_tpe("decode", self.write("no.json", "{}"), says="schema")
        self.fails_tpe("decode", self.write("no.json", "[" * 1_000_000), says="JSON")
        self.fails_tpe("decode", self.write("no.json", b"\xff\xfe\x00"), says="JSON")
        self.fails_tpe("decode", self.folder / "nowhere.json", says="nowhere")
        self.fails_tpe("decode", path, path, says="one file")
        text = json.dumps(good)
        self.fails_tpe("decode", self.write("after.json", text + "x"), says="something follows")
        self.fails_tpe("decode", self.write("zero.json", text.encode() + b"\0more"), says=f"byte {len(text)}")
        for member, value in (("nodes", 1), ("id", []), ("unknown", 7), ("kind", '"x"')):
            doubled = text.replace('"parent":', f'"{member}": {value}, "parent":', 1)
            self.fails_tpe("decode", self.write("doubled.json", doubled), says=f'twice: "{member}"')
        self.fails_tpe("decode", broken(lambda t: t["segments"][0].__setitem__("tokens", 99999)), says='"tokens" is 99999')
        # Few bytes that ask for many nodes.
        used = json.loads(self.run_teller("stats", DEMO, "--json", "--all"))["most_used"]
        largest = max(used, key=lambda use: use["nodes"])
        count = (1 << 26) // largest["nodes"] + 1
        flood = {"nodes": count * largest["nodes"], "id": [largest["id"]] * count, "depth": [0] * count, "unknown": {"node": [], "hash": []}}
        self.fails_tpe("decode", self.write("flood.json", json.dumps({**good, "segments": [flood]})), says="67108864 nodes")

    def test_tokens_must_hold_what_they_state(self):
        run = self.write("new.json", trace(steps(4, calls=5, outer="aten::brand_new")))
        good = self.tokens(run)
        place = next(s for s, segment in enumerate(good["segments"]) if len(segment["unknown"]["node"]) > 2)
        self.trees(good)
        sizes = self.sizes_of(good)[place]

        def fails(change, says):
            copy = json.loads(json.dumps(good))
            change(copy["segments"][place])
            self.fails_tpe("decode", self.write("broken.json", json.dumps(copy)), says=says)

        segment = good["segments"][place]
        node = segment["unknown"]["node"]
        known = next(n for n in range(segment["nodes"]) if n not in node)

        def token(of):
            return next(t for t in range(len(sizes)) if sum(sizes[: t + 1]) > of)

        def drop(s, row=1):
            del s["unknown"]["node"][row], s["unknown"]["hash"][row]

        def add(s, nodes):
            s["unknown"] = {"node": nodes, "hash": ["1"] * len(nodes)}

        fails(lambda s: s.__setitem__("nodes", s["nodes"] + 1), f"segment {place}: \"nodes\" is {segment['nodes'] + 1}")
        fails(lambda s: s.pop("nodes"), f"segment {place}: \"nodes\"")
        fails(lambda s: s.__setitem__("nodes", "7"), f"segment {place}: \"nodes\"")
        fails(drop, f"segment {place}, token {token(node[1])}: node {node[1]} ")
        fails(lambda s: add(s, sorted([*node, known])), f"segment {place}, token {token(known)}: \"unknown\" has a hash for node {known}")
        fails(lambda s: add(s, [node[0], *node]), f"segment {place}: \"unknown\" names node {node[0]} after node {node[0]}")
        fails(lambda s: add(s, node[::-1]), f"segment {place}: \"unknown\" names node")
        fails(lambda s: add(s, [*node, s["nodes"]]), f"segment {place}: \"unknown\" names node {segment['nodes']}")
        fails(lambda s: s["id"].__setitem__(2, 1 << 30), f"segment {place}, token 2: id is")

    def sizes_of(self, encoded):
        """Nodes of each token by segment: the lines of the text that begin a token are marked."""
        path = self.write("sizes.json", json.dumps(encoded))
        out = []
        for line in self.run_teller("decode", path).decode().splitlines():
            if line.startswith("+"):
                out[-1].append(1)
            elif line.startswith(" "):
                out[-1][-1] += 1
            else:
                out.append([])
        return out

    @unittest.skipIf(SANITIZED, "memory is that of the release build")
    def test_deep_tokens_are_refused_within_memory(self):
        """Lists in lists, inside of members that decoding passes over and of those that it reads."""
        deep = "[" * 16_000_000
        closed = "[" * 300_000 + "]" * 300_000
        limit = 128 << 20

        def bounded():
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

        for name, text in {"closed": f'{{"x":{closed},"y":1}}', "open": f'{{"x":{deep}', "label": f'{{"segments":[{{"kind":{closed}}}]}}',
                           "column": f'{{"segments":[{{"id":{closed}}}]}}', "objects": '{"x":' * 300_000 + "1" + "}" * 300_000}.items():
            with self.subTest(name):
                self.fails_tpe("decode", self.write("deep.json", text), says="segment 0" if name == "column" else "8 deep", preexec_fn=bounded)

    @unittest.skipIf(SANITIZED, "memory is that of the release build")
    def test_many_nodes_are_written_within_memory(self):
        """A short file may ask for millions of nodes: what is held of one are eight bytes."""
        run = self.write("long.json", trace(steps(6, calls=500)))
        vocabulary = self.train(run)
        encoded = self.tokens(run, "--step", 3, "--vocab", vocabulary)
        segment = encoded["segments"][0]
        count = (1 << 23) // segment["nodes"]
        many = {"kind": "step", "nodes": count * segment["nodes"], "id": segment["id"] * count, "depth": segment["depth"] * count,
                "unknown": {"node": [], "hash": []}}
        path = self.write("many.json", json.dumps({**encoded, "segments": [many]}))
        self.assertLess(path.stat().st_size, 1 << 20)
        limit = 128 << 20

        def bounded():
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

        for json_too in ((), ("--json",)):
            self.run_teller("decode", path, "--vocab", vocabulary, *json_too, stdout=subprocess.DEVNULL, preexec_fn=bounded)

    def test_members_of_no_interest_are_passed_over(self):
        good = self.tokens(DEMO, "--step", 1)
        trees = self.trees(good)
        good["more"] = {"id": [[1], {"segments": [2]}], "schema": None}
        good["segments"][0]["more"] = [{"id": "x", "unknown": {}}]
        good["segments"][0]["unknown"]["more"] = [[None, 1.5, True]]
        self.assertEqual(self.trees(good), trees)
        self.assertEqual(self.trees(dict(reversed(good.items()))), trees)

    def test_hostile_names_do_nothing_to_a_terminal(self):
        evil = "aten::\x1b[2J\x07\u202eevil\n"
        run = self.write("evil.json", trace(steps(6, outer=evil)))
        vocabulary = self.train(run, merges=30)
        tokens = self.write("t.json", self.run_teller("encode", run, "--json", "--vocab", vocabulary))
        for output in (self.run_teller("encode", run, "--vocab", vocabulary, "--step", 1), self.run_teller("stats", run, "--vocab", vocabulary),
                       self.run_teller("decode", tokens, "--vocab", vocabulary), self.run_teller("decode", tokens, "--json", "--vocab", vocabulary),
                       self.run_teller("stats", run, "--json", "--vocab", vocabulary), tokens.read_bytes()):
            self.assertFalse(set(output) & (set(range(32)) - {10}), "control bytes")
            self.assertNotIn("\u202e".encode(), output)

    @unittest.skipIf(SANITIZED, "memory is that of the release build")
    def test_a_million_names_stay_within_memory(self):
        """Names that no one has seen: every one is an unknown operator, and none fails."""
        count = 1_000_000
        events = ",".join(f'{{"ph":"X","cat":"cpu_op","name":"op_{i:x}q","ts":{i * 2},"dur":1,"pid":1,"tid":1}}' for i in range(count))
        run = self.write("names.json", f'{{"baseTimeNanoseconds":0,"traceEvents":[{events}]}}')
        del events
        limit = 1536 << 20

        def bounded():
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

        stats = json.loads(self.run_teller("stats", run, "--json", preexec_fn=bounded, timeout=600))
        self.assertEqual(stats["steps"]["nodes"] + stats["outside_steps"]["nodes"], count + stats["steps"]["structure_nodes"])
        self.assertGreaterEqual(stats["steps"]["unknown_nodes"], count)
        self.train(run, "--threads", 2, merges=100, preexec_fn=bounded, timeout=600)

    def test_a_deep_trace(self):
        depth = 100_000
        run = self.write("deep.json", trace([span("f", i, 2 * depth - 2 * i + 1) for i in range(depth)]))
        encoded = self.tokens(run)
        self.assertEqual(sum(s["nodes"] for s in encoded["segments"]), depth + 1)
        tree = self.trees(encoded)[0]
        # Deeper calls than the trees hold hang at their bound.
        self.assertEqual(max(d for *_, d in tree), 65_001)
        path = self.write("tokens.json", json.dumps(encoded))
        self.assertEqual(self.run_teller("decode", path).count(b"\n"), depth + 2)
        vocabulary = self.train(run, merges=64)
        self.assertEqual(len(self.trees(self.tokens(run, "--vocab", vocabulary), "--vocab", vocabulary)[0]), depth + 1)


if __name__ == "__main__":
    unittest.main()
