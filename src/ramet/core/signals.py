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
    """The status of a command that a signal has ended, as the shell counts: 128 and the number of the signal.

    A command that gives it back as its own status has become the other one, and dies of the signal as well.
    """

    def __new__(cls, number: int) -> Self:
        return super().__new__(cls, 128 + number)

    @property
    def number(self) -> int:
        return self - 128


class Died(Exception):
    """A command that a signal ends: its caller learns the number, as from a wait."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
