"""What a zygote gives up before the first program: being looked into, capabilities, setuid, system calls."""

from __future__ import annotations

import ctypes

from .kernel import PR_CAPBSET_DROP, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SeccompProgram, check, libc

CAPABILITIES = 64
CAPABILITY_VERSION = 0x20080522
SECCOMP_MODE_FILTER = 2


def give_up_privileges(seccomp: bytes) -> None:
    """Keep what a program of the box may have; `seccomp` is the filter of system calls, or nothing."""
    check(libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl")  # programs of the box cannot look into it
    drop_capabilities()
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    if seccomp:
        program = SeccompProgram(seccomp)
        check(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0), "seccomp")


def drop_capabilities() -> None:
    """Empty every capability set of this process; its bounding set too, so that no exec brings one back."""
    for number in range(CAPABILITIES):
        libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    check(libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")
