"""Signal names and numbers as Linux has them."""

from __future__ import annotations

from typing import Final

from ramet.core.signals import NAMES as ORDINARY

NAMES: Final = [
    *ORDINARY,
    "",
    "",
    "RTMIN",
    *(f"RTMIN+{number}" for number in range(1, 16)),
    *(f"RTMAX-{number}" for number in range(14, 0, -1)),
    "RTMAX",
]
"""By number; two of them have no name."""
NUMBERS: Final = {name: number for number, name in enumerate(NAMES) if name}
CHLD: Final = NUMBERS["CHLD"]
CONT: Final = NUMBERS["CONT"]
KILL: Final = NUMBERS["KILL"]
STOP: Final = NUMBERS["STOP"]
STOPPING: Final = frozenset((STOP, 20, 21, 22))
"""STOP, TSTP, TTIN and TTOU: a process that has no trap for them is stopped."""
PSEUDO: Final = ("DEBUG", "ERR", "RETURN")
IGNORED_BY_DEFAULT: Final = frozenset((17, 18, 23, 28))
"""CHLD, CONT, URG, WINCH do nothing to a process that has no trap for them."""
TERMINATING: Final = frozenset((1, 2, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 24, 25, 26, 31))
"""What a shell does not die of before it has run its EXIT trap."""

DESCRIPTIONS: Final = {
    1: "Hangup",
    2: "Interrupt",
    3: "Quit",
    4: "Illegal instruction",
    5: "Trace/breakpoint trap",
    6: "Aborted",
    7: "Bus error",
    8: "Floating point exception",
    9: "Killed",
    10: "User defined signal 1",
    11: "Segmentation fault",
    12: "User defined signal 2",
    13: "Broken pipe",
    14: "Alarm clock",
    15: "Terminated",
    16: "Stack fault",
    24: "CPU time limit exceeded",
    25: "File size limit exceeded",
    26: "Virtual timer expired",
    27: "Profiling timer expired",
    29: "I/O possible",
    30: "Power failure",
    31: "Bad system call",
}


UNREPORTED: Final = frozenset((2, 13))
"""INT and PIPE: a death by them is not reported."""


def number_of(text: str) -> int | None:
    """`TERM`, `SIGTERM`, `sigterm` or `15` as a number."""
    if len(text) > _LONGEST:
        return None
    digits = text.strip()
    if digits.isdigit():
        return int(digits) if int(digits) < len(NAMES) else None
    name = text.upper()
    return NUMBERS.get(name.removeprefix("SIG"))


_LONGEST: Final = 80
"""Characters of anything that names a signal, with some blanks."""


def trap_name(text: str) -> str | None:
    """How the trap table names a condition: `EXIT`, `ERR`, `INT`, ..."""
    name = text[: _LONGEST + 1].upper().removeprefix("SIG")
    if name in PSEUDO:
        return name
    number = number_of(text)
    return NAMES[number] or None if number is not None else None
