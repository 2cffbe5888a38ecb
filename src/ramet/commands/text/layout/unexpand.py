"""unexpand: convert spaces to tabs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ramet.commands.framework.command import Command, flag, several
from ramet.commands.framework.inputs import filter_lines
from ramet.commands.framework.stdin_errors import StdinError
from ramet.commands.text.layout.tab_stops import Tabs, old_tabs
from ramet.core.proc import Proc


def _old_first_tabs(words: list[str]) -> list[str]:
    """Rewrite historical tab lists of unexpand, which convert leading blanks only."""
    new = old_tabs(words)
    if new == words or any(re.match(r"-[a-zA-Z]*[at]|--[at]", word) for word in words):
        return new
    return ["--first-only", *new]


@dataclass(frozen=True, slots=True)
class UnexpandOptions:
    all: bool = flag("-a", "--all", help="convert all blanks, instead of just initial blanks")
    first_only: bool = flag("--first-only", help="convert only leading sequences of blanks (overrides -a)")
    tabs: tuple[str, ...] = several("-t", "--tabs", metavar="LIST", help="tab stops; enables -a")


async def unexpand(proc: Proc, o: UnexpandOptions, operands: list[str]) -> int:
    tabs = Tabs(o.tabs)
    everything = (o.all or bool(o.tabs)) and not o.first_only
    return await filter_lines(
        proc, operands, lambda lines: [unexpanded(line, tabs, everything) for line in lines], complete=False
    )


def unexpanded(line: bytes, tabs: Tabs, everything: bool) -> bytes:
    blanks = everything and b"  " in line
    if b"\t" not in line and not blanks and not line.startswith(b" "):
        return line  # a lone blank stays what it is
    out = bytearray()
    column = 0
    pending = bytearray()
    # Whether the pending blanks begin with one that just reached a stop, and whether a blank came before.
    lone, after_blank = False, True
    for i, byte in enumerate(line):
        blank = byte in (32, 9)
        if blank:
            stop = tabs.next(column)
            if stop is None:
                return bytes(out + _settled(pending, lone) + line[i:])
            if byte == 9:
                column = stop
            else:
                column += 1
                if not (after_blank and column == stop):
                    lone = lone or column == stop
                    pending.append(32)
                    after_blank = True
                    continue
            # At a stop the pending blanks become a tab, except a lone blank that reached the stop before.
            pending[:] = b"\t" if lone else b""
            byte = 9
        elif byte == 8:
            column = max(0, column - 1)
        else:
            column += 1
        out += _settled(pending, lone)
        pending.clear()
        lone, after_blank = False, blank
        out.append(byte)
        if not everything and not blank:
            return bytes(out) + line[i + 1 :]
    return bytes(out + _settled(pending, lone))


def _settled(pending: bytearray, lone: bool) -> bytearray:
    """Write the blanks that no tab replaces; the first becomes a tab if it reached a stop and more follow."""
    return bytearray(b"\t") + pending[1:] if lone and len(pending) > 1 else pending


COMMANDS = [
    Command(
        "unexpand",
        unexpand,
        UnexpandOptions,
        summary="Convert blanks in each FILE to tabs.",
        rewrite=_old_first_tabs,
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("-: {}", "-: {}"),
    ),
]
