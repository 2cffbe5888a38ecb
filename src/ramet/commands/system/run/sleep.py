"""sleep: wait for a duration."""

from __future__ import annotations

import asyncio
import re
from typing import Final

from ramet.commands.framework.command import (
    Command,
    UsageError,
    quote,
)
from ramet.core.proc import Proc

_DURATION = re.compile(
    r"\s*\+?((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:inf(?:inity)?)"
    r"|0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?\d+)?)([smhd]?)"
)


def duration(text: str, words: str = "invalid time interval") -> float:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise UsageError(f"{words} {quote(text)}")
    amount = float.fromhex(found[1]) if found[1][:2].lower() == "0x" else float(found[1])
    return amount * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]


_LOOK_AGAIN: Final = 86400.0
"""Most seconds of one sleep: the event loop rejects infinite ones."""


async def sleep(proc: Proc, o: object, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    total = 0.0
    bad: UsageError | None = None
    for word in operands:
        try:
            total += duration(word)
        except UsageError as error:
            if bad is not None:
                proc.complain(bad.message)
            bad = error
    if bad is not None:
        raise bad
    loop = asyncio.get_running_loop()
    end = loop.time() + total
    while (left := end - loop.time()) > 0:
        budget = proc.budget.left()
        await asyncio.sleep(min(left, _LOOK_AGAIN if budget is None else min(_LOOK_AGAIN, budget)))
        proc.budget.check()
    return 0


COMMANDS = [
    Command(
        "sleep",
        sleep,
        summary="Pause for NUMBER seconds (s, m, h, d).",
        usage="NUMBER[SUFFIX]...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
