"""The namespaces of a running box: join them, with or without the rights to change its mounts."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence

from .fuse_devices import mount_devices, open_devices
from .kernel import check, libc
from .mounts import attach_at, clone_path

NS_GET_USERNS = 0xB701
CLONE_NEWNS, CLONE_NEWPID = 0x20000, 0x20000000
NAMESPACES = ("mnt", "pid", "net", "ipc", "uts", "cgroup")


class Namespaces:
    """Descriptors of the namespaces of a running box."""

    def __init__(self, pid: int) -> None:
        self.namespaces = [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in NAMESPACES]
        # `--disable-userns` nests a second user namespace: the outer one owns the others.
        self.outer = owner_of(self.namespaces[0])
        self.inner = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)
        self.nested = os.fstat(self.outer).st_ino != os.fstat(self.inner).st_ino

    def enter(
        self,
        trees: Sequence[str] = (),
        system: Sequence[str] = (),
        mounts: Sequence[tuple[str, int]] = (),
        remote: Sequence[tuple[str, bool]] = (),
        device: str = "",
    ) -> tuple[list[int], list[str], list[int], str]:
        """Join the box, attach detached mounts, and mount what Ramet serves at `remote` (path, writable) by `device`.

        Returns detached copies of the mounts at `trees`, without what is mounted below them, and of the directories at
        `system`, with it; those of `system` that are there; the devices of remote mounts; and why there are none.
        """
        check(libc.setns(self.outer, 0), "setns user")
        devices, problem = open_devices(device, len(remote))
        self._join_rest()
        for path, fd in mounts:
            attach_at(fd, path)
        seen = [path for path in system if os.path.isdir(path)]
        found = [clone_path(path) for path in trees] + [clone_path(path, recursive=True) for path in seen]
        if devices:
            problem = mount_devices(devices, remote)
        self.leave_rights()
        return found, seen, devices, problem

    def join(self) -> None:
        """Join the box with the rights to change its mounts."""
        check(libc.setns(self.outer, 0), "setns user")
        self._join_rest()

    def _join_rest(self) -> None:
        for fd in self.namespaces:
            check(libc.setns(fd, 0), "setns")

    def leave_rights(self) -> None:
        """Go to the user namespace of programs, which owns nothing of the box."""
        if self.nested:
            check(libc.setns(self.inner, 0), "setns user")

    def close(self) -> None:
        for fd in (*self.namespaces, self.outer, self.inner):
            os.close(fd)


def owner_of(namespace: int) -> int:
    """Return the user namespace that owns another namespace."""
    return fcntl.ioctl(namespace, NS_GET_USERNS)
