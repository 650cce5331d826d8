#!/usr/bin/env python3
"""Fills the tables of a page from what the laboratory measured, so that no figure is copied by hand.

usage: fill_results.py [--present] RESULTS PAGE...

With --present, parts whose file is not there stay as they are, and are named; without it nothing is written then. RESULTS is the folder `R` of lab/baselines/README.md. In a PAGE every part from `<!-- WHAT NAME -->` to `<!-- end -->` is written anew:

  scores NAME    RESULTS/NAME-teller/scores.json (first row) and RESULTS/NAME/scores.json, every method
  measured NAME  the row of TELLER alone and the best figure of any baseline
  ceiling        RESULTS/ceiling.json
  leak           RESULTS/leak.json
"""
import json
import pathlib
import re
import sys

PART = re.compile(r"(<!-- (scores|measured|ceiling|leak)(?: ([\w-]+))? -->\n).*?(<!-- end -->)", re.S)
PRIORS = ("50", "10", "1", "0_1")
SHARES = (("case F1", "case_f1"), ("false alarms", "false_alarms"), ("all right", "right"), None, ("operator first", "op_ac1"), ("rank", "rank_ac1"),
          ("log line", "line_ac1"), ("class", "class_ac1"))
STEPS = "step F1 at 50 / 10 / 1 / 0.1 %"


class Missing(Exception):
    """A part's file is not there."""


def document(path):
    if not path.exists():
        raise Missing(f"{path}: there is no such file")
    return json.loads(path.read_text())


def shown(value):
    return "-" if value is None else f"{value:.2f}"


def row(cells):
    return "| " + " | ".join(cells) + " |"


def head(cells):
    return [row(cells), "|" + "---|" * len(cells)]


def all_cases(method):
    return next(t for t in method["tables"] if t["group"] == "all")


def figure(method, name):
    return all_cases(method)["figures"].get(name, {}).get("value")


def steps(method):
    return [figure(method, f"step_f1_at_{prior}") for prior in PRIORS]


def read(results, name):
    """Methods of a table, TELLER first, each once."""
    methods = {}
    for part in (f"{name}-teller", name):
        path = results / part / "scores.json"
        if path.exists():
            for method in json.loads(path.read_text())["methods"]: methods.setdefault(method["name"], method)
    if not methods:
        raise Missing(f"{results / name}: there are no scores")
    return list(methods.values())


def counts(method):
    whole = all_cases(method)
    stacks = ", ".join(f"{t['cases']} of {t['value']}" for t in method["tables"] if t["group"] == "stack")
    return (f"{whole['cases']} cases asked{f' ({stacks})' if stacks else ''}, {whole['faults']} of them faults; {whole['steps']} steps count, "
            f"{whole['abnormal_steps']} of them abnormal.")


def scores(results, name):
    methods = read(results, name)
    lines = [counts(methods[0]), "", *head(["method", *(c[0] if c else STEPS for c in SHARES)])]
    for method in methods:
        lines.append(row([method["name"], *(shown(figure(method, c[1])) if c else " / ".join(map(shown, steps(method))) for c in SHARES)]))
    return lines


def best(methods, name):
    values = [v for v in (figure(m, name) for m in methods) if v is not None]
    return (min if name == "false_alarms" else max)(values) if values else None


def measured(results, name):
    teller, *others = read(results, name)
    if teller["name"] != "teller":
        raise Missing(f"{results / name}: there are no scores of teller")
    lines = [counts(teller), "", *head(["", *(c[0] if c else STEPS for c in SHARES)])]
    lines.append(row(["TELLER", *(shown(figure(teller, c[1])) if c else " / ".join(map(shown, steps(teller))) for c in SHARES)]))
    if others:
        lines.append(row(["best baseline, each figure", *(shown(best(others, c[1])) if c else " / ".join(shown(best(others, f"step_f1_at_{p}")) for p in PRIORS) for c in SHARES)]))
    return lines


def ceiling(results, _):
    groups = document(results / "ceiling.json")["groups"]
    lines = head(["set", "effect", "faults asked", "visible", "clear", "TELLER finds", "step F1 at 1 %, told the place", "by single steps", "rank, told", "TELLER's", "(of)"])
    for g in groups:
        lines.append(row([g["source"], g["effect"], str(g["asked"]), *(shown(g[k]) for k in ("visible", "clear", "teller_found", "step_f1_at_1", "step_f1_at_1_alone", "rank", "teller_rank")),
                          str(g["ranks"])]))
    return lines


def leak(results, _):
    figures = document(results / "leak.json")
    rows = figures["rows"]
    above = [r for r in rows if r["above_chance"]]
    lines = [f"{figures['cases']} cases, `--split {figures['split']} --shuffles {figures['shuffles']}`: {len(rows)} figures, {len(above)} above chance.", ""]
    kept = [r for r in rows if r["method"] == "names-and-sizes" and r["part"].startswith("names-and-sizes")]
    for r in above:
        if r not in kept: lines.append(f"- above chance: {r['method']}, {r['source']}, {r['figure']}: {r['value']:.2f} ({r['interval'][0]:.2f} to {r['interval'][1]:.2f}), chance {r['chance']:.2f}, {r['cases']} cases")
    if lines[-1]: lines.append("")
    names = list(dict.fromkeys(r["figure"] for r in kept))
    lines += head(["share right with true lessons, less that after shuffled ones", *names])
    for source, faults in dict.fromkeys((r["source"], r["faults"]) for r in kept):
        cells = []
        for name in names:
            r = next((r for r in kept if (r["source"], r["faults"], r["figure"]) == (source, faults, name)), None)
            mark = " above" if r and r["above_chance"] else ""
            cells.append(f"{r['value']:.2f} ({r['interval'][0]:.2f} to {r['interval'][1]:.2f}, {r['cases']}){mark}" if r else "-")
        lines.append(row([f"{source}, {'faults of time alone' if faults != 'all' else 'all faults'}", *cells]))
    return lines


PARTS = {"scores": scores, "measured": measured, "ceiling": ceiling, "leak": leak}


def fill(text, results, missing=None):
    """The page with its parts written anew. `missing`: a list that gets what is not there; such parts stay as they are."""
    def part(match):
        try:
            lines = PARTS[match[2]](results, match[3])
        except Missing as error:
            if missing is None: raise
            missing.append(str(error))
            return match[0]
        return match[1] + "\n" + "\n".join(lines) + "\n\n" + match[4]
    return PART.sub(part, text)


def main(argv):
    missing = [] if argv[:1] == ["--present"] else None
    if missing is not None: argv = argv[1:]
    if len(argv) < 2:
        raise SystemExit(__doc__.strip().splitlines()[2])
    pages = {page: page.read_text() for page in map(pathlib.Path, argv[1:])}
    try:
        filled = {page: fill(text, pathlib.Path(argv[0]), missing) for page, text in pages.items()}
    except Missing as error:
        raise SystemExit(f"fill_results.py: {error}")
    for page, text in filled.items():
        page.write_text(text)
        print(f"{page}: {len(PART.findall(text))} parts{'' if text != pages[page] else ', as they were'}")
    for text in missing or []: print(f"left as it was: {text}")


if __name__ == "__main__":
    main(sys.argv[1:])
