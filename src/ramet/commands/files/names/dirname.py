"""dirname: the directory part of a name."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, flag
from ramet.core.paths import encode
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class DirnameOptions:
    zero: bool = flag("-z", "--zero", help="end each output line with NUL, not newline")


def dir_name(word: str) -> str:
    stripped = word.rstrip("/")
    if not stripped:
        return "/" if word else "."
    head = stripped.rpartition("/")[0]
    if "/" not in stripped:
        return "."
    return head.rstrip("/") or "/"


async def dirname(proc: Proc, o: DirnameOptions, operands: list[str]) -> int:
    end = "\0" if o.zero else "\n"
    for word in operands:
        await proc.emit(encode(dir_name(word) + end))
        await proc.budget.yield_turn()
    return 0


COMMANDS = [
    Command(
        "dirname",
        dirname,
        DirnameOptions,
        summary="Output each NAME with its last non-slash component removed.",
        usage="[OPTION] NAME...",
        min_operands=1,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
