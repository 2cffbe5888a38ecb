"""Signal names as Linux numbers them; the position is the number, and 0 is the shell's own EXIT."""

from __future__ import annotations

from typing import Final, Self

NAMES: Final = [
    "EXIT",
    "HUP",
    "INT",
    "QUIT",
    "ILL",
    "TRAP",
    "ABRT",
    "BUS",
    "FPE",
    "KILL",
    "USR1",
    "SEGV",
    "USR2",
    "PIPE",
    "ALRM",
    "TERM",
    "STKFLT",
    "CHLD",
    "CONT",
    "STOP",
    "TSTP",
    "TTIN",
    "TTOU",
    "URG",
    "XCPU",
    "XFSZ",
    "VTALRM",
    "PROF",
    "WINCH",
    "IO",
    "PWR",
    "SYS",
]


class BySignal(int):
    """The exit status of a command that a signal ended: 128 plus the signal's number.

    A command that returns it as its own status (`env`, `timeout --foreground`) dies of the same signal.
    """

    def __new__(cls, number: int) -> Self:
        return super().__new__(cls, 128 + number)

    @property
    def number(self) -> int:
        return self - 128


class Died(Exception):
    """Raised when a signal ends a command; the caller gets the number, as from wait(2)."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
