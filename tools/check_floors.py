#!/usr/bin/env python3
"""Fails when a module includes one that does not stand on a lower floor.

usage: check_floors.py [ROOT]

Every `#include "module/..."` below ROOT/src is compared with the table. Tests beside the sources obey the same rule.
"""
import pathlib
import re
import sys

# Lowest first. Modules on one floor are peers and never include each other.
FLOORS = [
    ["base"],
    ["trace", "ml", "tpe"],
    ["ingest", "logs", "tree"],
    ["align"],
    ["slice", "retime"],
    ["locate", "encode"],
    ["engine"],
    ["report", "inject"],
    ["score"],
    ["cli"],
    ["main.cpp"],
]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def check(root):
    """All violations as lines "file: text"."""
    floor_of = {module: floor for floor, modules in enumerate(FLOORS) for module in modules}
    src = root / "src"
    problems = []
    for path in sorted(p for p in src.rglob("*") if p.suffix in (".hpp", ".cpp", ".inc")):
        module = path.relative_to(src).parts[0]
        if module not in floor_of:
            problems.append(f"{path.relative_to(root)}: module \"{module}\" stands on no floor; add it to the table")
            continue
        for target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            other = target.split("/")[0]
            if other == module or "/" not in target and (path.parent / target).exists():
                continue
            if other not in floor_of:
                problems.append(f"{path.relative_to(root)}: \"{target}\" is no module of the table; use <> for libraries")
            elif floor_of[other] >= floor_of[module]:
                problems.append(f"{path.relative_to(root)}: {module} may not include {other} (\"{target}\")")
    return problems


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    problems = check(root)
    for line in problems:
        print(line)
    print(f"check_floors: {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
