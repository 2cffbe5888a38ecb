"""nice: run a command with a niceness, which has no effect."""

from __future__ import annotations

import re
from contextvars import ContextVar
from dataclasses import dataclass

from ramet.commands.framework.command import (
    Command,
    UsageError,
    ordered,
    quote,
    value,
)
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class NiceOptions:
    adjustment: str = value(
        "-n", "--adjustment", metavar="N", default="10", digits=True, help="add integer N to the niceness"
    )
    order: tuple[tuple[str, object], ...] = ordered()


_niceness: ContextVar[int] = ContextVar("niceness", default=0)
"""The current niceness; it has no effect."""


async def nice(proc: Proc, o: NiceOptions, operands: list[str]) -> int:
    if not re.fullmatch(r"[+-]?\d+", o.adjustment):
        raise UsageError(f"invalid adjustment {quote(o.adjustment)}", status=125, hint=False)
    if not operands and o.order:
        raise UsageError("a command must be given with an adjustment", status=125)
    now = _niceness.get()
    if not operands:
        await proc.emit(b"%d\n" % now)
        return 0
    if int(o.adjustment) < 0 and proc.user.uid:
        proc.complain("cannot set niceness: Permission denied")
        return await proc.run(operands)
    before = _niceness.set(max(-20, min(19, now + int(o.adjustment))))
    try:
        return await proc.run(operands)
    finally:
        _niceness.reset(before)


COMMANDS = [
    Command(
        "nice",
        nice,
        NiceOptions,
        summary="Run COMMAND with an adjusted niceness, which has no effect here.",
        usage="[OPTION] [COMMAND [ARG]...]",
        operands_first=True,
        bad_usage=125,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
