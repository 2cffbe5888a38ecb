"""free: the memory that the limits of the workspace allow."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, choose, flag
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class FreeOptions:
    unit: int = choose(
        {"-b --bytes": 1, "-k --kibi": 1024, "-m --mebi": 1024**2, "-g --gibi": 1024**3},
        default=1024,
        help="show output in that unit",
    )
    human: bool = flag("-h", "--human", help="show human-readable output")
    total: bool = flag("-t", "--total", help="show total for RAM + swap")
    wide: bool = flag("-w", "--wide", help="wide output")


async def free(proc: Proc, o: FreeOptions, operands: list[str]) -> int:
    from ramet.commands.framework.human_sizes import human

    limit = proc.budget.limits.string_bytes * 4

    def show(size: int) -> str:
        if o.human:
            return human(size) + "i" if size >= 1024 else f"{size}B"
        return str(size // o.unit)

    names = ["total", "used", "free", "shared", "buff/cache", "available"]
    rows = [("Mem:", [limit, 0, limit, 0, 0, limit]), ("Swap:", [0, 0, 0])]
    if o.total:
        rows.append(("Total:", [limit, 0, limit]))
    out = " " * 7 + "".join(n.rjust(13 if i == 0 else 12) for i, n in enumerate(names)) + "\n"
    for name, numbers in rows:
        out += name.ljust(7) + "".join(show(n).rjust(13 if i == 0 else 12) for i, n in enumerate(numbers)) + "\n"
    await proc.emit(out.encode())
    return 0


COMMANDS = [
    Command(
        "free",
        free,
        FreeOptions,
        summary="Display the memory that the limits of the workspace allow.",
        usage="[OPTION]...",
        version_letters="Vv",
    ),
]
