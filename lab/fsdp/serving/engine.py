"""The engine of one rank: takes requests from its feed, runs their steps, profiles some of them."""
import json
import logging
import time

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, record_function

from lab.fsdp.serving.model import Decoder

log = logging.getLogger("serve")
STOP = 1


class Feed:
    """The requests of this rank, in order: a batch of prompts each."""

    def __init__(self, requests, rank, vocab, seed):
        self._requests, self._rank, self._vocab = requests, rank, vocab
        self._random = torch.Generator().manual_seed(seed)

    def __len__(self):
        return len(self._requests)

    def fetch(self, number):
        """(prompts, how many tokens to generate)"""
        request = self._requests[number]
        shape = (request["batch"], request["prompt_len"][self._rank])
        return torch.randint(2, self._vocab, shape, generator=self._random), request["decode"]


class Recorder:
    """torch.profiler over the steps from `wait` on, `active` of them."""

    def __init__(self, plan, rank, notes):
        self._notes = notes
        self.plan, self._path = plan, f"{plan['folder']}/rank{rank}.json.gz"
        self.profiler = self._stopped = None

    def _note(self, event, begin):
        self._notes({"event": event, "t0_ns": begin, "t1_ns": time.time_ns()})

    def before(self, step):
        if step == self.plan["wait"]:
            begin = time.time_ns()
            self.profiler = profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=self.plan["with_stack"])
            self.profiler.start()
            self._note("profiler_start", begin)
            log.info("profiler started at step %d", step)

    def after(self, step):
        if self.profiler and step == self.plan["wait"] + self.plan["active"] - 1:
            self.stop()
            if self.plan["write_at_once"]:
                self.write()

    def stop(self):
        if self.running():
            begin = time.time_ns()
            self.profiler.stop()
            self.profiler, self._stopped = None, self.profiler
            self._note("profiler_stop", begin)
            log.info("profiler stopped")

    def running(self):
        return self.profiler is not None

    def write(self):
        self.stop()
        if self._stopped:
            begin = time.time_ns()
            self._stopped.export_chrome_trace(self._path)
            self._stopped = None
            self._note("profiler_write", begin)
            log.info("profiler trace written")


class Engine:
    def __init__(self, plan, rank):
        self.plan, self.rank = plan, rank
        self.step = 0
        self.leaving = False
        self.record = open(f"{plan['folder']}/steps{rank}.jsonl", "w", buffering=1)
        self.recorder = Recorder(plan["profile"], rank, self.note) if plan["profile"] else None
        self.model = self.shard(Decoder(plan["model"], plan["world_size"] if plan["mode"] == "tp" else 1))
        count = sum(p.numel() for p in self.model.parameters())
        log.info("model ready: %d layers, %.2f M parameters in all", plan["model"]["layers"], count / 1e6)

    def shard(self, model):
        if self.plan["mode"] == "fsdp":
            from torch.distributed.fsdp import FullyShardedDataParallel
            from torch.distributed.fsdp.wrap import ModuleWrapPolicy
            from lab.fsdp.serving.model import Layer
            return FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({Layer}), device_id=torch.device("cpu"))
        if self.plan["mode"] == "fsdp2":
            from torch.distributed.fsdp import fully_shard
            for layer in model.layers:
                fully_shard(layer)
            fully_shard(model)
        return model

    def leave(self, *_):
        """Asks for an orderly end after the step under way."""
        self.leaving = True

    def agree(self):
        """Rank 0 tells the others whether to go on."""
        word = torch.tensor([STOP if self.leaving and self.rank == 0 else 0])
        dist.broadcast(word, 0)
        return int(word)

    def serve(self, feed):
        for number in range(len(feed)):
            if not self.request(number, *feed.fetch(number)):
                log.info("shutting down: no more requests are taken")
                break

    def request(self, number, prompts, new_tokens):
        """Runs one request; False when the service is to end."""
        batch, length = prompts.shape
        log.info("request %d admitted: batch=%d prompt_len=%d max_new_tokens=%d", number, batch, length, new_tokens)
        begin = time.perf_counter()
        inner = self.model.module if self.plan["mode"] == "fsdp" else self.model
        caches = inner.caches(batch, length + new_tokens)
        tokens = prompts
        for n in range(new_tokens + 1):
            if self.agree() == STOP:
                return False
            start = 0 if n == 0 else length + n - 1
            tokens, took = self.one_step(number, "prefill" if n == 0 else f"decode step {n}", tokens, caches, start)
            if n == 0:
                log.info("request %d prefill done: %d tokens in %.1f ms", number, batch * length, took)
            else:
                log.info("request %d decode step %d: %.1f ms", number, n, took)
        log.info("request %d finished: %d tokens in %.3f s", number, batch * new_tokens, time.perf_counter() - begin)
        return True

    def one_step(self, request, name, tokens, caches, start):
        if self.recorder:
            self.recorder.before(self.step)
        profiled = self.recorder is not None and self.recorder.running()
        begin, at = time.time_ns(), time.perf_counter()
        self.note({"step": self.step, "request": request, "name": name, "profiled": profiled, "t0_ns": begin})
        with record_function(name):
            tokens = self.forward(tokens, caches, start)
        took = (time.perf_counter() - at) * 1e3
        self.note({"step": self.step, "t1_ns": time.time_ns()})
        if self.recorder:
            self.recorder.after(self.step)
        self.step += 1
        return tokens, took

    def forward(self, tokens, caches, start):
        return self.model(tokens, caches, start).argmax(-1)

    def note(self, entry):
        """For whoever watches the service: which step is under way."""
        self.record.write(json.dumps(entry) + "\n")
