"""basename: a name without its directory and suffix."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, flag, quote, value
from ramet.core.paths import encode
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class BasenameOptions:
    multiple: bool = flag("-a", "--multiple", help="support multiple arguments and treat each as a NAME")
    suffix: str | None = value("-s", "--suffix", metavar="SUFFIX", help="remove a trailing SUFFIX; implies -a")
    zero: bool = flag("-z", "--zero", help="end each output line with NUL, not newline")


def base_name(word: str) -> str:
    if not word:
        return ""
    return word.rstrip("/").rpartition("/")[2] or "/"


async def basename(proc: Proc, o: BasenameOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    suffix = o.suffix or ""
    names = operands
    if not o.multiple and o.suffix is None:
        if len(operands) > 2:
            raise UsageError(f"extra operand {quote(operands[2])}")
        names, suffix = operands[:1], operands[1] if len(operands) > 1 else ""
    end = "\0" if o.zero else "\n"
    for name in names:
        base = base_name(name)
        if suffix and base != suffix and base.endswith(suffix) and base != "/":
            base = base[: -len(suffix)]
        await proc.emit(encode(base + end))
        await proc.budget.yield_turn()
    return 0


COMMANDS = [
    Command(
        "basename",
        basename,
        BasenameOptions,
        summary="Print NAME with any leading directory components removed.",
        operands_first=True,
        usage="NAME [SUFFIX]",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
