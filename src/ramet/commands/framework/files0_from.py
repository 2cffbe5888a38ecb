"""`--files0-from`: NUL-separated file names as operands of wc, du and sort."""

from __future__ import annotations

from typing import NamedTuple

from ramet.commands.framework.command import UsageError, called, quote
from ramet.commands.framework.inputs import slurp
from ramet.core.paths import decode
from ramet.core.proc import Proc


class Listed(NamedTuple):
    """One name of the list, or the problem with it."""

    name: str
    problem: str = ""


async def listed(proc: Proc, source: str, operands: list[str]) -> list[Listed]:
    """Read the names in `source`; OSError when it cannot be read."""
    if operands:
        raise UsageError(f"extra operand {quote(operands[0])}\nfile operands cannot be combined with --files0-from")
    data = await slurp(proc, source)
    if not data:
        return []
    found: list[Listed] = []
    for number, raw in enumerate(data.removesuffix(b"\0").split(b"\0"), 1):
        name, problem = decode(raw), ""
        if not name:
            problem = f"{called(source)}:{number}: invalid zero-length file name"
        elif name == source == "-":
            problem = "when reading file names from stdin, no file name of '-' allowed"
        found.append(Listed(name, problem))
    return found
