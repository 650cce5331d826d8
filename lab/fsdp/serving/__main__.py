"""One rank of a torch service: FSDP1, FSDP2 or tensor parallel over gloo. Runs a list of requests to its end.

usage: python -m lab.fsdp.serving PLAN.json RANK
"""
import datetime
import json
import logging
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from lab.fsdp.serving.engine import Engine, Feed, log

START_TIMEOUT_S = 100
FORMATS = {
    "plain": ("%(asctime)s [rank{rank}] %(levelname)s %(name)s: %(message)s", None),
    "vllm": ("(Worker rank={rank} pid=%(process)d) %(levelname)s %(asctime)s [%(filename)s:%(lineno)d] %(message)s", None),
    "iso": ("%(asctime)s.%(msecs)03d %(levelname)s rank={rank} %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S"),
}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        plan = json.load(file)
    rank = int(sys.argv[2])
    text, date = FORMATS[plan["log_format"]]
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format=text.format(rank=rank), datefmt=date)
    log.info("starting %s, world_size=%d, torch %s", plan["mode"], plan["world_size"], torch.__version__)
    torch.set_num_threads(1)
    torch.manual_seed(plan["seed"])
    dist.init_process_group("gloo", rank=rank, world_size=plan["world_size"], timeout=datetime.timedelta(seconds=START_TIMEOUT_S))
    status = 0
    engine = Engine(plan, rank)
    distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=plan["timeout_s"]), dist.group.WORLD)
    signal.signal(signal.SIGTERM, engine.leave)
    try:
        with torch.inference_mode() if plan["mode"] == "tp" else torch.no_grad():
            engine.serve(Feed(plan["requests"], rank, plan["model"]["vocab"], plan["seed"] + (0 if plan["mode"] == "tp" else rank)))
        dist.barrier()
    except Exception:
        log.exception("inference failed at step %d", engine.step)
        status = 1
    if engine.recorder:
        engine.recorder.write()
    if status == 0:
        dist.destroy_process_group()
        log.info("process group destroyed, exiting")
    sys.stdout.flush()
    os._exit(status) if status else sys.exit(0)


if __name__ == "__main__":
    main()
