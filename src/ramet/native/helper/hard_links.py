"""Hard links in the box: `git` gets EXDEV, as between two file systems, and copies; every other program links.

An overlay that is mounted without privileges gives a file another inode number when it is first linked or changed.
`git clone` of a local repository looks at the number before and after, and refuses: "hardlink different from source".
So the kernel asks the worker of a program about each hard link that its processes make (seccomp user notification).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct

from .kernel import SeccompProgram, libc

NUMBERS = {"x86_64": (317, 86), "aarch64": (277, 37)}
"""The numbers of seccomp, and of the call by which the C library's `link` links."""
SET_MODE_FILTER, NEW_LISTENER = 1, 8
RECEIVE, SEND = 0xC0502100, 0xC0182101
"""ioctl SECCOMP_IOCTL_NOTIF_RECV and SECCOMP_IOCTL_NOTIF_SEND."""
NOTICE, ANSWER = struct.Struct("=QI68x"), struct.Struct("=QqiI")
"""`struct seccomp_notif`, of which only id and process matter, and `struct seccomp_notif_resp`."""
CONTINUE = 1


def listen() -> int:
    """Have the kernel ask about hard links of this process and of what it starts; returns -1 where it cannot."""
    if os.uname().machine not in NUMBERS:
        return -1
    seccomp, link = NUMBERS[os.uname().machine]
    # Load the number of the call; ask if it is `link`; allow every other.
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, link), (0x06, 0, 0, 0x7FC00000), (0x06, 0, 0, 0x7FFF0000)]
    program = SeccompProgram(b"".join(struct.pack("=HBBI", *instruction) for instruction in code))
    return int(libc.syscall(seccomp, SET_MODE_FILTER, NEW_LISTENER, ctypes.byref(program)))


def answer(listener: int) -> None:
    """Answer one question of the kernel."""
    notice = bytearray(NOTICE.size)
    try:
        fcntl.ioctl(listener, RECEIVE, notice)
        number, pid = NOTICE.unpack(notice)
        copies = name_of(pid) == b"git\n"
        reply = ANSWER.pack(number, 0, -errno.EXDEV, 0) if copies else ANSWER.pack(number, 0, 0, CONTINUE)
        fcntl.ioctl(listener, SEND, reply)
    except OSError:
        return  # the process ended meanwhile


def name_of(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return file.read()
    except OSError:
        return b""  # it ended meanwhile
