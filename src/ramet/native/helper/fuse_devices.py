"""FUSE devices of a box: open them in its user namespace, mount them in its mount namespace."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Sequence

from .kernel import libc
from .mounts import NODEV, NOSUID, RDONLY


def open_devices(device: str, count: int) -> tuple[list[int], str]:
    """Open FUSE devices of the host as the user of a box; they mount in its namespace only."""
    try:
        return [os.open(device, os.O_RDWR | os.O_CLOEXEC) for _ in range(count)], ""
    except OSError as error:
        return [], f"cannot open {device}: {os.strerror(error.errno or errno.EIO)}"


def mount_devices(devices: list[int], remote: Sequence[tuple[str, bool]]) -> str:
    """Mount devices at paths of the box, without one that cannot be; returns why that is."""
    problem = ""
    for at, (path, writable) in enumerate(remote):
        options = f"fd={devices[at]},rootmode=40000,user_id={os.geteuid()},group_id={os.getegid()},allow_other"
        flags = NOSUID | NODEV | (0 if writable else RDONLY)
        if libc.mount(b"ramet", os.fsencode(path), b"fuse", flags, options.encode()) < 0:
            problem = f"cannot mount {path}: {os.strerror(ctypes.get_errno())}"
    return problem
