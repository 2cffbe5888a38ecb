"""System calls for which Python has no function, by ctypes, and what several modules need to make them."""

from __future__ import annotations

import ctypes
import os

PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 22, 24, 36, 38

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> int:
    """Return the result of a call of the C library; raise what it failed with."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def call(number: int, *arguments: object) -> int:
    """Make a system call by its number."""
    result: int = libc.syscall(number, *arguments)
    if result < 0:
        failed = ctypes.get_errno()
        raise OSError(failed, os.strerror(failed))
    return result


class SeccompProgram(ctypes.Structure):
    """`struct sock_fprog`, of instructions of eight bytes each."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    def __init__(self, code: bytes) -> None:
        self.code = ctypes.create_string_buffer(code, len(code))
        super().__init__(len(code) // 8, ctypes.cast(self.code, ctypes.c_void_p))
