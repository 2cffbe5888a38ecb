"""`python -m bench [group ...]`: runs the groups and prints ratios; exits 1 when a mark is missed."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from bench.harness import Row, print_table, run_case, save

GROUPS = ("foundation", "shell", "commands", "workspace", "http")
MORE = ("agents", "backends", "console", "native", "native_programs", "store")
"""Groups that run only when they are asked for."""
PROBES = {
    "holds": "what keeps the event loop from others for too long",
    "cancel": "what takes too long to be cancelled",
}
"""What is listed, not compared: `bench.holds`; words behind it choose scripts by parts of their names."""


def main(words: list[str]) -> int:
    if words and words[0] in PROBES:
        return int(importlib.import_module("bench.holds").main(words[0], words[1:]))
    rows: list[Row] = []
    for name in _groups(words):
        for case in importlib.import_module(f"bench.{name}").cases():
            print(f"  {case.name} ...", end="\r", file=sys.stderr)
            rows.append(run_case(case))
    print_table(rows)
    save(rows, Path(__file__).parent / "results" / "latest.json")
    return int(not all(row.ok for row in rows))


def _groups(words: list[str]) -> list[str]:
    probes = "\n".join(f"  bench {name} [part of a name ...]   {what}" for name, what in PROBES.items())
    parser = argparse.ArgumentParser(
        prog="bench",
        description="Ours beside the real tools and the installed peers, as ratios in one run.",
        epilog=f"probes, which list what misses its bound:\n{probes}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    every = (*GROUPS, *MORE)
    parser.add_argument("group", nargs="*", help=f"{', '.join(every)} (without one: {', '.join(GROUPS)})")
    found: list[str] = parser.parse_args(words).group
    for name in found:
        if name not in every:
            parser.error(f"there is no group {name!r}; there are {', '.join((*every, *PROBES))}")
    return found or list(GROUPS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
