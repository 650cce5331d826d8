"""The fault laboratory's command line: ./dev lab VERB, or teller lab VERB."""
import argparse
import json
import os
import pathlib
import signal
import sys

from lab import real, stacks, visible
from lab.course import Runner
from lab.errors import SEED, LabError, Parser, number, whole

ROOT = pathlib.Path(__file__).resolve().parent.parent


def say(text):
    print(f"lab: {text}", file=sys.stderr, flush=True)


def show_list():
    for name, stack in stacks.ALL.items():
        print(f"{name}: {'set up' if stack.setup.is_ready() else f'not set up: ./dev lab setup {name}'}")
        for fault in stack.faults.values():
            why = fault.why_not()
            print(f"  {fault.kind:<20} {fault.fault_class:<18} {fault.about}{f' (not here: {why})' if why else ''}")


def plan(args, faults):
    """(kind, seed, folder) of every case asked for."""
    pairs = []
    for text in args.fault:
        kind, colon, seed = text.partition(":")
        if kind not in faults:
            raise stacks.no_such_fault(kind, [args.stack])
        try:
            pairs.append((kind, SEED(seed) if colon else args.seed))
        except argparse.ArgumentTypeError as error:
            raise LabError(f"\"{text}\": the seed after the colon: {error}") from None
    if len(set(pairs)) < len(pairs):
        raise LabError("the same fault and seed are given twice")
    out = pathlib.Path(args.output)
    if len(pairs) == 1:
        return [(*pairs[0], out)]
    return [(kind, seed, out / f"{kind}-{seed}") for kind, seed in pairs]


# Verbs with a command line of their own: name -> (module, what it does).
MODULES = {
    "baselines": ("lab.baselines", "say which baselines the scorer knows"),
    "ceiling": ("lab.ceiling", "say how many faults of a set can be seen at all, told where they are"),
    "leak": ("lab.leak", "say whether a set of cases gives its answers away by other things than its faults"),
    "retimed": ("lab.retimed", "make a seeded set of cases of recorded runs"),
    "simulated": ("lab.simulated", "make a seeded set of simulated cases over engines, ranks, kinds and magnitudes"),
}


def run_module(verb, args):
    from importlib import import_module
    if verb == "baselines":
        return import_module("lab.baselines.__main__").main(args or ["list"])
    return import_module(MODULES[verb][0]).main(args)


def parse(argv):
    parser = Parser(prog="lab", description="Labelled runs from real engines on this machine.",
                    epilog="The program's own verbs: list, check, retime, simulate, score (teller lab VERB --help).")
    verbs = parser.add_subparsers(dest="verb", required=True, parser_class=Parser)
    for verb, (_, about) in MODULES.items():
        verbs.add_parser(verb, help=about)
    verbs.add_parser("help", help="say this")
    verbs.add_parser("list", help="stacks and the faults they can have")
    setup = verbs.add_parser("setup", help="install a stack into the cache folder")
    setup.add_argument("stack", choices=[*sorted(stacks.ALL), "baselines"])
    run = verbs.add_parser("run", help="make cases")
    every = verbs.add_parser("real", help="make every kind of case of every stack; goes on where an earlier call stopped")
    table = verbs.add_parser("visible", help="which faults show in which kind of input")
    run.add_argument("stack", choices=sorted(stacks.ALL))
    run.add_argument("--fault", action="append", required=True, metavar="KIND[:SEED]", help="may be repeated; cases then share a server")
    run.add_argument("-o", "--output", required=True, help="the case; with several faults the folder of the cases")
    run.add_argument("--port", type=whole(1, 65535),
                     help="of the server, default: a free one; of the meeting of ranks in their own network, default: 29500")
    every.add_argument("-o", "--output", default="build/real", help="the folder of the cases; default: build/real")
    every.add_argument("--stacks", nargs="+", choices=sorted(stacks.ALL), default=list(stacks.ALL), metavar="STACK", help="only these")
    every.add_argument("--only", nargs="+", default=[], metavar="KIND", help="only these kinds")
    every.add_argument("--tries", type=whole(1, 9), default=2, metavar="N", help="how often a case that fails is made; default: 2")
    every.add_argument("--limit", type=number(0, 4096), metavar="P", help="keep no case during which other programs used more than P processors")
    for verb in (run, every):
        verb.add_argument("--seed", type=SEED, default=1)
        verb.add_argument("--nice", type=int, default=0, choices=range(-20, 20), metavar="N",
                          help="how server and injectors are weighed against the machine's other work (-20 most; needs root)")
    table.add_argument("cases", help="a folder of cases")
    table.add_argument("--teller", default=os.environ.get("TELLER", str(ROOT / "build/release/teller")), help="the program")
    for verb in (every, table):
        verb.add_argument("--format", choices=("text", "json"), default="text")
    run.add_argument("--no-profile", action="store_true", help="record no trace")
    if argv == ["help"]:
        argv = ["--help"]
    return parser.parse_args(argv)


def make_run(args):
    cases = plan(args, stacks.ALL[args.stack].faults)
    Runner(stacks.ALL[args.stack], args.port, not args.no_profile, args.nice, say).run(cases)
    return 0


def make_real(args):
    chosen = [stack for name, stack in stacks.ALL.items() if name in args.stacks]
    planned = real.plan(chosen, pathlib.Path(args.output), args.only, args.seed)
    for stack in chosen:
        if not stack.setup.is_ready():
            say(f"{stack.name} is not set up, so its cases will be missing: ./dev lab setup {stack.name}")
    failed = real.make(chosen, planned, say=say, tries=args.tries, limit=args.limit, nice=args.nice)
    made = real.summary(planned, failed, real.impossible(chosen, args.only))
    print(json.dumps(made, indent=1) if args.format == "json" else real.text(made))
    return 3 if failed else 0


def show_visible(args):
    rows = visible.run(args.cases, args.teller)
    table = visible.by_kind(rows)
    print(json.dumps({"kinds": table, "cases": rows}, indent=1) if args.format == "json" else visible.text(table, rows))
    return 3 if any(row["error"] for row in rows) else 0


UNDONE = {"run": "no case was written", "real": "cases that were made remain; the same command goes on", "setup": "run it again"}
VERBS = {"run": make_run, "real": make_real, "visible": show_visible}


def main(argv):
    undone = UNDONE.get(argv[0] if argv else None, "nothing was changed")
    try:
        if argv and argv[0] in MODULES:
            return run_module(argv[0], argv[1:])
        args = parse(argv)
        if args.verb == "list":
            show_list()
            return 0
        if args.verb == "setup" and args.stack == "baselines":
            return run_module("baselines", ["setup"])
        if args.verb == "setup":
            stacks.ALL[args.stack].setup.install(say)
            return 0
        return VERBS[args.verb](args)
    except LabError as error:
        say(error)
    except OSError as error:
        say(f"{error.filename or 'output'}: {error.strerror or error}; {undone}")
    except KeyboardInterrupt:
        say(f"interrupted; {undone}")
    return 2


def on_signal(number, _frame):
    raise KeyboardInterrupt(signal.Signals(number).name)


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # names of files are bytes
    signal.signal(signal.SIGTERM, on_signal)
    sys.exit(main(sys.argv[1:]))
