"""`python -m bench [group ...]`: runs the groups and prints ratios; exits 1 when a mark is missed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from bench.harness import Row, print_table, run_case, save

GROUPS = ("foundation", "shell", "commands", "workspace", "http")


PROBES = ("holds", "cancel")
"""What is listed, not compared: `bench.holds`."""


def main(names: list[str]) -> int:
    if names and names[0] in PROBES:
        return int(importlib.import_module("bench.holds").main(names[0], names[1:]))
    rows: list[Row] = []
    for name in names or GROUPS:
        for case in importlib.import_module(f"bench.{name}").cases():
            print(f"  {case.name} ...", end="\r", file=sys.stderr)
            rows.append(run_case(case))
    print_table(rows)
    save(rows, Path(__file__).parent / "results" / "latest.json")
    return int(not all(row.ok for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
