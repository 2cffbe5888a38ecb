"""Signal names and numbers as Linux has them."""

from __future__ import annotations

from typing import Final

from ramet.core.signals import NAMES as NAMES

NUMBERS: Final = {name: number for number, name in enumerate(NAMES)}
PSEUDO: Final = ("DEBUG", "ERR", "RETURN")
IGNORED_BY_DEFAULT: Final = frozenset((17, 18, 23, 28))
"""CHLD, CONT, URG, WINCH do nothing to a process that has no trap for them."""

DESCRIPTIONS: Final = {
    1: "Hangup",
    2: "Interrupt",
    3: "Quit",
    6: "Aborted",
    9: "Killed",
    10: "User defined signal 1",
    12: "User defined signal 2",
    13: "Broken pipe",
    14: "Alarm clock",
    15: "Terminated",
}


def number_of(text: str) -> int | None:
    """`TERM`, `SIGTERM`, `sigterm` or `15` as a number."""
    if text.isdigit():
        return int(text) if int(text) <= 64 else None
    name = text.upper()
    return NUMBERS.get(name.removeprefix("SIG"))


def trap_name(text: str) -> str | None:
    """How the trap table names a condition: `EXIT`, `ERR`, `INT`, ..."""
    name = text.upper().removeprefix("SIG")
    if name in PSEUDO:
        return name
    number = number_of(text)
    return NAMES[number] if number is not None and number < len(NAMES) else None
