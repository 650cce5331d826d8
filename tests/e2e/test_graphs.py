"""Kernels of replayed CUDA and HIP graphs get the module and the op that their capture, or an eager run, shows.

The truth is derived here without the aligner: the frames around each captured launch by the capture file's own times, and
the launch that belongs to a replayed kernel by counting: the n-th kernel of a name is the n-th launch of that name."""
import collections
import gzip
import json
import os

from harness import Case, span, teller, trace

TRACELENS = "data/traces/tracelens/"
DECODE = TRACELENS + "sglang_qwen3_8b_decode/decode_step.json.gz"
CAPTURE = TRACELENS + "sglang_qwen3_8b_decode/graph_capture_bs32_rank0.json.gz"
EXTEND = TRACELENS + "sglang_qwen3_8b_extend_step.json.gz"
MODULE = "nn.Module: "
WIDE = {**os.environ, "COLUMNS": "400"}


def events_of(path):
    return json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]


def frames_around(events, launches):
    """For each launch the names of the nn.Module frames and of the operators around it, outermost first."""
    spans = [e for e in events if e.get("ph") == "X" and e.get("cat") in ("python_function", "cpu_op")
             and (e["cat"] == "cpu_op" or e["name"].startswith(MODULE))]
    out = []
    for launch in launches:
        begin, end = launch["ts"], launch["ts"] + launch["dur"]
        around = [s for s in spans if s["tid"] == launch["tid"] and s["ts"] <= begin and s["ts"] + s["dur"] >= end]
        around.sort(key=lambda s: (s["ts"], -s["dur"]))
        modules = [s["name"][len(MODULE):] for s in around if s["cat"] == "python_function"]
        ops = [s["name"] for s in around if s["cat"] == "cpu_op"]
        out.append(("/".join(modules), ops[-1] if ops else ""))
    return out


def captured_truth(capture):
    """(kernel name, occurrence) -> (module path, op), of the launches between the calls that begin and end the capture."""
    events = events_of(capture)
    calls = sorted((e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")), key=lambda e: e["ts"])
    begin = next(e["ts"] for e in calls if "StreamBeginCapture" in e["name"])
    end = next(e["ts"] for e in calls if "StreamEndCapture" in e["name"])
    launches = [e for e in calls if begin < e["ts"] < end and "kernel" in e.get("args", {})]
    seen = collections.Counter()
    truth = {}
    for launch, where in zip(launches, frames_around(events, launches)):
        name = launch["args"]["kernel"]
        truth[name, seen[name]] = where
        seen[name] += 1
    return truth, seen


class GraphCase(Case):
    def exported(self, *paths):
        done = teller("export", *paths, "-o", self.folder / "out.json")
        self.assertIn(done.returncode, (0, 3), done.stderr.decode())
        return json.loads((self.folder / "out.json").read_text())["traceEvents"]

    def replayed(self, *paths):
        """GPU work of graph launches by start: (name, module, op, confidence), None where not attributed."""
        events = self.exported(*paths)

        def place(event):
            return event["pid"], event["tid"], event["ts"]

        launches = {place(e) for e in events if e["ph"] == "X" and "GraphLaunch" in e["name"]}
        ids = {e["id"] for e in events if e["ph"] == "s" and e["cat"] == "launch" and place(e) in launches}
        work = {place(e) for e in events if e["ph"] == "f" and e["cat"] == "launch" and e["id"] in ids}
        ours = [e for e in events if e["ph"] == "X" and place(e) in work]
        ours.sort(key=lambda e: e["ts"])
        return [(e["name"], e["args"].get("module"), e["args"].get("op"), e["args"].get("confidence")) for e in ours]

    def score(self, paths, truth, counts):
        """Of the kernels of the truth: how many have its module, its op; how many of the confident ones are wrong."""
        kernels = self.replayed(*paths)
        here = collections.Counter(k[0] for k in kernels)
        seen = collections.Counter()
        modules = ops = total = confident = wrong = 0
        for name, module, op, confidence in kernels:
            at = seen[name]
            seen[name] += 1
            if here[name] != counts[name]:  # cannot be told by counting
                continue
            total += 1
            want_module, want_op = truth[name, at]
            modules += module == want_module
            ops += op == want_op
            if confidence is not None and confidence >= 0.8:
                confident += 1
                wrong += module != want_module
        return {"total": total, "modules": modules, "ops": ops, "confident": confident, "wrong": wrong}


class SmallGraphs(GraphCase):
    LAYERS = 5
    LAYER = [("gemm_qkv_64x32", "Attention", "aten::mm"), ("paged_attention_v1", "Attention", "attn::paged"),
             ("gemm_out_64x32", "Attention", "aten::mm"), ("rmsnorm_kernel", "Norm", "norm::rms"), ("gemm_up_64x32", "MLP", "aten::mm")]

    def capture(self):
        events = [span("hipStreamBeginCapture", 1, 1, "cuda_runtime"), span("nn.Module: Model_0", 5, 10_000, "python_function")]
        at = 10
        for layer in range(self.LAYERS):
            events.append(span(f"nn.Module: Layer_{layer}", at, 99, "python_function"))
            for i, (kernel, module, op) in enumerate(self.LAYER):
                begin = at + 1 + 19 * i
                events += [span(f"nn.Module: {module}_{layer}", begin, 18, "python_function"), span(op, begin + 1, 16),
                           span("hipLaunchKernel", begin + 2, 3, "cuda_runtime", kernel=kernel, correlation=begin)]
            at += 100
        return events + [span("hipStreamEndCapture", 10_100, 1, "cuda_runtime")]

    def replay(self):
        events = [span("step[DECODE bs=8]", 100, 900, "user_annotation"),
                  span("hipGraphLaunch", 110, 5, "cuda_runtime", correlation=7)]
        names = [kernel for _ in range(self.LAYERS) for kernel, _, _ in self.LAYER]
        return events + [span(name, 200 + 10 * i, 9, "kernel", 0, 3, correlation=7, stream=3, device=0)
                         for i, name in enumerate(names)]

    def test_a_capture_in_another_file_names_modules(self):
        self.write("run/capture_bs8.json.gz", trace(self.capture()))
        self.write("run/decode.json", trace(self.replay()))
        kernels = self.replayed(self.folder / "run")
        wanted = [(f"Model_0/Layer_{layer}/{module}_{layer}", op) for layer in range(self.LAYERS) for _, module, op in self.LAYER]
        self.assertEqual([(module, op) for _, module, op, _ in kernels], wanted)
        text = teller("tree", self.folder / "run", env=WIDE).stdout.decode()
        self.assertRegex(text, r"Layer_4 \(aligned, confidence 0\.9\d\)")
        counts = json.loads(teller("inspect", self.folder / "run", "--json").stdout)["graph_replays"]
        self.assertEqual(counts, {"launches": 1, "work": 25, "attributed": 25,
                                  "attributed_by": {"capture": 25, "eager step": 0, "learned sequence": 0}})

    def learn(self, *runs, to="model.graphs"):
        done = teller("graphs", "learn", *runs, "-o", self.folder / to)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return self.folder / to

    def test_a_replay_alone_gets_its_modules_from_an_earlier_run(self):
        capture = self.write("first/capture_bs8.json.gz", trace(self.capture()))
        replay = self.write("second/decode.json", trace(self.replay()))
        learned = self.learn(capture)
        self.assertNotIn(str(self.folder), learned.read_text())
        wanted = [(f"Model_0/Layer_{layer}/{module}_{layer}", op) for layer in range(self.LAYERS) for _, module, op in self.LAYER]
        beside = self.write("third/decode.json", trace(self.replay())).parent
        (beside / "model.graphs").write_bytes(learned.read_bytes())
        for args in (["--graphs", learned, replay], [replay, learned], [beside], ["--graphs", learned, "--graphs", learned, replay]):
            kernels = self.replayed(*args)
            self.assertEqual([(module, op) for _, module, op, _ in kernels], wanted, args)
            self.assertTrue(all(0.8 <= k[3] < 0.9 for k in kernels), kernels)
        said = json.loads(teller("inspect", "--graphs", learned, replay, "--json").stdout)
        self.assertEqual(said["graph_replays"]["attributed_by"], {"capture": 0, "eager step": 0, "learned sequence": 25})
        self.assertEqual([f["kind"] for f in said["files"]], ["kineto", "graphs"])
        text = teller("tree", replay, "--graphs", learned, env=WIDE).stdout.decode()
        self.assertRegex(text, r"Layer_4 \(learned earlier, confidence 0\.8\d\)")
        origins = {e["args"].get("learned_in") for e in self.exported("--graphs", learned, replay) if e.get("cat") == "kernel"}
        self.assertEqual(origins, {str(learned)})

    def test_a_finding_says_whence_its_module_is_known(self):
        """Kernel 14 of 25 (gemm_up of layer 2) is slow in six steps of forty."""
        names = [kernel for _ in range(self.LAYERS) for kernel, _, _ in self.LAYER]
        events, at = [], 1000
        for step in range(40):
            begin = at
            events.append(span("hipGraphLaunch", begin + 10, 5, "cuda_runtime", correlation=step + 1))
            now = begin + 30
            for i, name in enumerate(names):
                length = 100 + (step * 7 + i * 3) % 5 + (9000 if i == 14 and 20 <= step < 26 else 0)
                events.append(span(name, now, length, "kernel", 0, 3, correlation=step + 1, stream=3, device=0))
                now += length + 1
            events.append(span("hipDeviceSynchronize", begin + 20, now - begin - 20, "cuda_runtime"))
            events.append(span("step[DECODE bs=8]", begin, now + 10 - begin, "user_annotation"))
            at = now + 60
        replay = self.write("slow/decode.json", trace(events))
        learned = self.learn(self.write("capture.json", trace(self.capture())))
        verdict, _ = self.diagnose(replay, "--graphs", learned)
        finding = verdict["findings"][0]
        self.assertEqual(finding["class"], "KERNEL_REGRESSION")
        self.assertEqual((finding["culprit"]["op"], finding["culprit"]["module"]), ("gemm_up_64x32", "Model_0/Layer_2/MLP_2"))
        said = [e["text"] for e in finding["evidence"] if "graph replayed" in e["text"]]
        self.assertEqual(len(said), 1, finding["evidence"])
        self.assertIn("learned sequence of " + str(learned), said[0])
        text = teller("diagnose", replay, "--graphs", learned, env=WIDE).stdout.decode()
        self.assertIn("1 trace file, 1 file of learned graphs", text)
        self.assertIn("1,000 replayed kernels with module or operator from learned graphs", text)
        alone, _ = self.diagnose(replay)
        self.assertFalse(alone["findings"][0]["culprit"]["module"])

    def test_learned_files_merge_and_say_the_same(self):
        first = self.learn(self.write("a.json", trace(self.capture())), to="a.graphs")
        again = self.learn(first, first, to="b.graphs")
        self.assertEqual(first.read_bytes(), again.read_bytes())

    def test_a_bad_learned_file_is_an_error_with_its_place(self):
        replay = self.write("decode.json", trace(self.replay()))
        learned = self.learn(self.write("capture.json", trace(self.capture())))
        good = learned.read_bytes()
        for name, content, says in (("cut.graphs", good[:len(good) // 2], "cut off"),
                                    ("flipped.graphs", good.replace(b"Layer_1", b"Layer_2"), "damaged"),
                                    ("later.graphs", good.replace(b"graphs/1", b"graphs/7"), "teller.graphs/7"),
                                    ("none.graphs", b"INFO 07-01 10:00:00 [core.py:1] started\n", "no file of learned graphs")):
            bad = self.write("bad/" + name, content)
            self.assertIn(name, self.fails("tree", replay, "--graphs", bad, says=says))
        self.fails("tree", replay, "--graphs", self.folder / "absent", says="no such file")
        # Where it only lies beside a trace, the rest is read and the loss is said.
        (self.folder / "bad" / "none.graphs").unlink()
        done = teller("inspect", self.folder / "bad", replay)
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"cut off", done.stdout)

    def test_nothing_to_learn_is_said(self):
        self.fails("graphs", "learn", self.write("decode.json", trace(self.replay())), says="nothing to learn")

    def test_a_replay_alone_names_none(self):
        self.write("run/decode.json", trace(self.replay()))
        self.assertEqual({k[1:] for k in self.replayed(self.folder / "run")}, {(None, None, None)})


class RealGraphs(GraphCase):
    def setUp(self):
        super().setUp()
        self.decode = self.needs(DECODE)
        self.capture = self.needs(CAPTURE)
        self.truth, self.counts = captured_truth(self.capture)

    def test_the_truth_is_one(self):
        """The counting is no guess: 36 attention kernels, one in each of 36 attention modules, in order."""
        attention = sorted((at, where[0]) for (name, at), where in self.truth.items() if "paged_attention_ll4mi_QKV" in name)
        self.assertEqual(len(attention), 36)
        for at, module in attention:
            self.assertIn(f"Qwen3DecoderLayer_{at}/", module)
        self.assertGreater(len(self.truth), 500)

    def test_replayed_kernels_get_the_module_of_the_capture(self):
        score = self.score([self.decode, self.capture], self.truth, self.counts)
        print(f"\nreplay with its capture: {score}")
        self.assertGreaterEqual(score["total"], 0.95 * len(self.truth))
        self.assertGreaterEqual(score["modules"], 0.95 * score["total"])
        self.assertGreaterEqual(score["ops"], 0.95 * score["total"])
        self.assertEqual(score["wrong"], 0)
        self.assertGreaterEqual(score["confident"], 0.95 * score["total"])

    def test_a_replay_alone_with_what_its_capture_taught(self):
        learned = self.folder / "qwen3.graphs"
        done = teller("graphs", "learn", self.capture, "-o", learned)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        score = self.score(["--graphs", learned, self.decode], self.truth, self.counts)
        print(f"\nreplay alone with what was learned: {score}, {learned.stat().st_size} bytes")
        self.assertGreaterEqual(score["total"], 0.95 * len(self.truth))
        self.assertGreaterEqual(score["modules"], 0.95 * score["total"])
        self.assertGreaterEqual(score["ops"], 0.95 * score["total"])
        self.assertEqual(score["wrong"], 0)

    def test_what_other_models_taught_says_nothing_sure(self):
        others = [self.needs(TRACELENS + name) for name in
                  ("bert_small_h100.json.gz", "xdit_sd35_pair", "qwen15_0.5b_h100.json.gz", "vllm_b200_eager_tp8_rank.json.gz")]
        learned = self.folder / "others.graphs"
        done = teller("graphs", "learn", *others, "-o", learned)
        self.assertIn(done.returncode, (0, 3), done.stderr.decode())
        sure = [k for k in self.replayed("--graphs", learned, self.decode) if k[3] is not None and k[3] >= 0.8]
        self.assertEqual(sure, [])

    def test_an_eager_prefill_of_the_same_model_does_as_reference(self):
        """No capture here: the truth is only used to judge. What is said with confidence is right."""
        score = self.score([self.decode, self.needs(EXTEND)], self.truth, self.counts)
        print(f"\nreplay with an eager prefill: {score}")
        self.assertGreater(score["total"], 500)
        self.assertGreaterEqual(score["modules"], 0.5 * score["total"])
        self.assertLessEqual(score["wrong"], 0.02 * score["confident"])

    def test_without_a_twin_nothing_is_said(self):
        for others in ([], [self.needs(TRACELENS + "bert_small_h100.json.gz")], [self.needs(TRACELENS + "xdit_sd35_pair")]):
            kernels = self.replayed(self.decode, *others)
            self.assertFalse([k for k in kernels if k[3] is not None], others)
        mixed = self.replayed(self.needs(TRACELENS + "vllm_mixed_piecewise_step.json.gz"))
        self.assertFalse([k for k in mixed if k[3] is not None])

    def test_tree_shows_and_counts_them(self):
        stats = teller("tree", self.decode, self.capture, "--stats", env=WIDE).stdout.decode()
        line = next(text for text in stats.splitlines() if text.split()[:1] == ["graphs"])
        self.assertIn("544 of 544", line)
        text = teller("tree", self.decode, self.capture, env=WIDE).stdout.decode()
        self.assertIn("Qwen3DecoderLayer_35", text)
        self.assertIn("aligned", text)
