#!/usr/bin/env python3
"""Fails when a source file breaks a layout rule of CONTRIBUTING.md.

usage: check_layout.py [ROOT]

Rules: `#pragma once` in headers; no notes to self in code; libraries below report print nothing; no file above 600 lines;
no tabs or trailing blanks.
"""
import pathlib
import re
import sys

MAX_LINES = 600
NOTE_TO_SELF = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
PRINTS = re.compile(r"\bstd::(cout|cerr|clog)\b|\b(printf|puts|putchar|fmt::print)\s*\(|\bfprintf\s*\(")
SILENT = ["base", "trace", "ml", "tpe", "ingest", "logs", "tree", "align", "slice", "locate", "engine", "report"]
# TELLER_CHECK must say where it aborts.
MAY_PRINT = {"src/base/status.cpp"}


def check_file(root, path):
    name = str(path.relative_to(root))
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    problems = []
    if path.suffix == ".hpp" and "#pragma once" not in text:
        problems.append(f"{name}: no #pragma once")
    if len(lines) > MAX_LINES:
        problems.append(f"{name}: {len(lines)} lines, more than {MAX_LINES}")
    module = path.relative_to(root / "src").parts[0] if name.startswith("src/") else ""
    silent = module in SILENT and name not in MAY_PRINT and not name.endswith("_test.cpp")
    for number, line in enumerate(lines, 1):
        if NOTE_TO_SELF.search(line):
            problems.append(f"{name}:{number}: note to self; do it or open an issue")
        if "\t" in line or line != line.rstrip():
            problems.append(f"{name}:{number}: tab or trailing blank")
        if silent and PRINTS.search(line):
            problems.append(f"{name}:{number}: {module} prints; return the text instead")
    return problems


def check(root):
    problems = []
    for folder in ("src", "bench", "fuzz"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".hpp", ".cpp"):
                problems += check_file(root, path)
    return problems


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    problems = check(root)
    for line in problems:
        print(line)
    print(f"check_layout: {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
