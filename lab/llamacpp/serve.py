"""llama.cpp's server on one port. Run by the stack's own Python.

usage: serve.py MODEL PORT SLOTS CONTEXT
"""
import signal
import sys
import threading

import xllamacpp


def main():
    model, port, slots, context = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.port = port
    params.n_parallel = slots
    params.n_ctx = context
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.n_batch = 256
    params.verbosity = 4
    params.endpoint_metrics = True
    server = xllamacpp.Server(params)
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    while not over.wait(0.2):
        pass
    del server


if __name__ == "__main__":
    main()
