"""Descriptors at the numbers that a program asks for; those of the helper above them."""

from __future__ import annotations

import fcntl
import os

OWN_DESCRIPTORS = 512
"""Descriptors of the helper are moved here, above those that a program may ask for."""


def high(fd: int) -> int:
    """Move a descriptor above those that a program may ask for."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, OWN_DESCRIPTORS)
    os.close(fd)
    return moved


def place_descriptors(wanted: dict[int, int]) -> None:
    """Give each descriptor its number; exec closes all others, or a pipe would never end."""
    moved = {number: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, OWN_DESCRIPTORS) for number, fd in wanted.items()}
    for fd in wanted.values():
        os.close(fd)
    for number, fd in moved.items():
        os.dup2(fd, number, inheritable=True)
        os.close(fd)
    for number in {0, 1, 2} - moved.keys():
        null = os.open("/dev/null", os.O_RDWR)
        if null != number:
            os.dup2(null, number)
            os.close(null)
        os.set_inheritable(number, True)
