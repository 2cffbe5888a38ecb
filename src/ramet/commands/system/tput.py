"""tput: control sequences of a terminal."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, value
from ramet.core.paths import encode
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class TputOptions:
    terminal: str | None = value("-T", metavar="TERM", help="use this TERM instead of $TERM")


_TPUT = {
    "bold": "\x1b[1m",
    "dim": "\x1b[2m",
    "smul": "\x1b[4m",
    "rmul": "\x1b[24m",
    "rev": "\x1b[7m",
    "smso": "\x1b[7m",
    "rmso": "\x1b[27m",
    "sgr0": "\x1b(B\x1b[m",
    "clear": "\x1b[H\x1b[2J",
    "el": "\x1b[K",
    "ed": "\x1b[J",
    "civis": "\x1b[?25l",
    "cnorm": "\x1b[?25h",
    "home": "\x1b[H",
    "bel": "\a",
    "cr": "\r",
    "sc": "\x1b7",
    "rc": "\x1b8",
    "op": "\x1b[39;49m",
    "smcup": "\x1b[?1049h",
    "rmcup": "\x1b[?1049l",
    "blink": "\x1b[5m",
    "sitm": "\x1b[3m",
    "ritm": "\x1b[23m",
    "reset": "\x1bc",
    "init": "",
}


async def tput(proc: Proc, o: TputOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("usage: tput [-T term] capname [parameters]", hint=False, status=2)
    terminal = o.terminal or proc.env.get("TERM")
    if not terminal:
        proc.complain("No value for $TERM and no -T specified")
        return 2
    status, rest = 0, operands
    while rest and not status:
        name, *rest = rest
        status, rest = await _capability(proc, terminal, name, rest)
    return status


async def _capability(proc: Proc, terminal: str, name: str, rest: list[str]) -> tuple[int, list[str]]:
    """Return the status of one capability, and the words behind it and its parameters."""
    count = {"setaf": 1, "setab": 1, "cup": 2}.get(name, 0)
    args = [int(word) for word in rest[:count] if word.isdigit()]
    rest = rest[count:]
    if name in ("cols", "lines", "colors"):
        sizes = {
            "cols": proc.env.get("COLUMNS") or "80",
            "lines": proc.env.get("LINES") or "24",
            "colors": "256" if "256" in terminal else "-1" if terminal == "dumb" else "8",
        }
        await proc.emit(encode(sizes[name] + "\n"))
    elif name == "longname":
        await proc.emit(b"a terminal that is not there")
    elif name not in _TPUT and not count:
        proc.complain(f"unknown terminfo capability '{name}'")
        return 4, rest
    elif terminal == "dumb" or len(args) < count:
        return 1, rest
    elif name == "cup":
        await proc.emit(f"\x1b[{args[0] + 1};{args[1] + 1}H".encode())
    elif count:
        await proc.emit(_colour(args[0], 30 if name == "setaf" else 40))
    else:
        await proc.emit(_TPUT[name].encode())
    return 0, rest


def _colour(color: int, base: int) -> bytes:
    if color < 8:
        return b"\x1b[%dm" % (base + color)
    return b"\x1b[%dm" % (base + 52 + color) if color < 16 else b"\x1b[%d;5;%dm" % (base + 8, color)


COMMANDS = [
    Command(
        "tput",
        tput,
        TputOptions,
        summary="Print terminal control sequences.",
        usage="[-T TERM] CAPNAME [PARAMETER]...",
        version_letters="V",
    ),
]
