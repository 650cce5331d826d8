"""The fault laboratory's command line: ./dev lab VERB."""
import argparse
import pathlib
import signal
import sys

from lab import stacks
from lab.course import Runner
from lab.errors import LabError

def say(text):
    print(f"lab: {text}", file=sys.stderr, flush=True)


def show_list():
    for name, stack in stacks.ALL.items():
        print(f"{name}: {'set up' if stack.setup.is_ready() else f'not set up: ./dev lab setup {name}'}")
        for fault in stack.faults.values():
            print(f"  {fault.kind:<20} {fault.fault_class:<18} {fault.about}")


def plan(args, faults):
    """(kind, seed, folder) of every case asked for."""
    pairs = []
    for text in args.fault:
        kind, _, seed = text.partition(":")
        if kind not in faults:
            raise LabError(f"unknown fault \"{kind}\"; ./dev lab list shows what {args.stack} can have")
        if seed and not seed.isdigit():
            raise LabError(f"\"{text}\": the seed after the colon is a whole number")
        pairs.append((kind, int(seed) if seed else args.seed))
    if len(set(pairs)) < len(pairs):
        raise LabError("the same fault and seed are given twice")
    out = pathlib.Path(args.output)
    if len(pairs) == 1:
        return [(*pairs[0], out)]
    return [(kind, seed, out / f"{kind}-{seed}") for kind, seed in pairs]


def parse(argv):
    parser = argparse.ArgumentParser(prog="./dev lab", description="Labelled runs from real engines on this machine.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="stacks and the faults they can have")
    setup = verbs.add_parser("setup", help="install a stack into the cache folder")
    setup.add_argument("stack", choices=sorted(stacks.ALL))
    run = verbs.add_parser("run", help="make cases")
    run.add_argument("stack", choices=sorted(stacks.ALL))
    run.add_argument("--fault", action="append", required=True, metavar="KIND[:SEED]", help="may be repeated; cases then share a server")
    run.add_argument("--seed", type=int, default=1)
    run.add_argument("-o", "--output", required=True, help="the case; with several faults the folder of the cases")
    run.add_argument("--port", type=int, help="of the server; default: a free one")
    run.add_argument("--nice", type=int, default=0, choices=range(-20, 20), metavar="N",
                     help="how server and injectors are weighed against the machine's other work (-20 most; needs root)")
    run.add_argument("--no-profile", action="store_true", help="record no trace")
    return parser.parse_args(argv)


def main(argv):
    args = parse(argv)
    try:
        if args.verb == "list":
            show_list()
            return 0
        stack = stacks.ALL[args.stack]
        if args.verb == "setup":
            stack.setup.install(say)
            return 0
        cases = plan(args, stack.faults)
        Runner(stack, args.port, not args.no_profile, args.nice, say).run(cases)
        return 0
    except LabError as error:
        say(error)
    except OSError as error:
        say(f"{error.filename or 'output'}: {error.strerror or error}; no case was written")
    except KeyboardInterrupt:
        say("interrupted; no case was written")
    return 2


def on_signal(number, _frame):
    raise KeyboardInterrupt(signal.Signals(number).name)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, on_signal)
    sys.exit(main(sys.argv[1:]))
