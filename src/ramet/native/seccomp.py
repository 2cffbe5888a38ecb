"""The seccomp filter of native programs, as BPF: system calls that reach beyond the box fail.

- Denied calls answer EPERM; `clone3` and `openat2` answer ENOSYS: programs then use calls whose flags a filter can see.
- No file can get the setuid bit: in a host directory that a box may write, it would lend out Ramet's user.
"""

from __future__ import annotations

import errno
import os
import struct
from dataclasses import dataclass
from typing import Final

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL, _AT_LEAST, _ANY_BIT = 0x15, 0x35, 0x45
_RETURN: Final = 0x06
_ALLOW: Final = 0x7FFF0000
_ERROR: Final = 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
"""Offsets in `struct seccomp_data`; arguments by their low halves, which come first on little-endian machines."""
_ARGUMENT: Final = 8
"""Bytes from one argument to the next."""
_MAKES_FILE: Final = 0o20000100
"""O_CREAT and the bit of O_TMPFILE: without them `open` has no mode."""
_SETUID: Final = 0o4000
_NEW_NAMESPACES: Final = 0x7E020080
"""CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET,TIME}."""
_TERMINAL_INPUT: Final = (0x5412, 0x541C)
"""ioctl TIOCSTI and TIOCLINUX: type into the terminal of another process."""
_FAMILIES: Final = (0, 1, 2, 10, 16)
"""Socket families that programs use: unspecified, unix, IPv4, IPv6, netlink."""
_X32: Final = 0x40000000


@dataclass(frozen=True)
class _Machine:
    audit: int
    """AUDIT_ARCH_*: calls of another architecture are refused, or they would pass under other numbers."""
    denied: tuple[int, ...]
    clone: int
    socket: int
    ioctl: int
    modes: tuple[tuple[int, int], ...]
    """Calls that give a file its mode, and which argument that is."""
    opens: tuple[tuple[int, int], ...]
    """Calls that open or make a file, and which argument has the flags; the mode comes next."""


_COMMON: Final = (
    425, 426, 427,  # io_uring
    428, 429, 430, 431, 432, 433, 442,  # open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr
    438,  # pidfd_getfd
    440, 448,  # process_madvise, process_mrelease
    467, 457, 458,  # open_tree_attr, statmount, listmount
)  # fmt: skip

_MACHINES: Final = {
    "x86_64": _Machine(
        0xC000003E,
        (
            *_COMMON,
            101, 310, 311, 312,  # ptrace, process_vm_readv, process_vm_writev, kcmp
            165, 166, 155, 161,  # mount, umount2, pivot_root, chroot
            272, 308,  # unshare, setns
            248, 249, 250,  # add_key, request_key, keyctl
            321, 298, 323,  # bpf, perf_event_open, userfaultfd
            303, 304, 212,  # name_to_handle_at, open_by_handle_at, lookup_dcookie
            175, 313, 176, 246, 320,  # init_module, finit_module, delete_module, kexec_load, kexec_file_load
            169, 167, 168, 163, 179, 443,  # reboot, swapon, swapoff, acct, quotactl, quotactl_fd
            164, 227, 159, 305,  # settimeofday, clock_settime, adjtimex, clock_adjtime
            103, 172, 173, 153, 300,  # syslog, iopl, ioperm, vhangup, fanotify_init
            170, 171, 237, 238, 239, 256, 279,  # sethostname, setdomainname, mbind and its family
        ),
        56, 41, 16,
        ((90, 1), (91, 1), (268, 2), (452, 2), (133, 1), (259, 2), (85, 1)),  # chmod and its family, mknod, creat
        ((2, 1), (257, 2)),
    ),
    "aarch64": _Machine(
        0xC00000B7,
        (
            *_COMMON,
            117, 270, 271, 272,  # ptrace, process_vm_readv, process_vm_writev, kcmp
            40, 39, 41, 51,  # mount, umount2, pivot_root, chroot
            97, 268,  # unshare, setns
            217, 218, 219,  # add_key, request_key, keyctl
            280, 241, 282,  # bpf, perf_event_open, userfaultfd
            264, 265, 18,  # name_to_handle_at, open_by_handle_at, lookup_dcookie
            105, 273, 106, 104, 294,  # init_module, finit_module, delete_module, kexec_load, kexec_file_load
            142, 224, 225, 89, 60, 443,  # reboot, swapon, swapoff, acct, quotactl, quotactl_fd
            170, 112, 171, 266,  # settimeofday, clock_settime, adjtimex, clock_adjtime
            116, 58, 262,  # syslog, vhangup, fanotify_init
            161, 162, 235, 236, 237, 238, 239,  # sethostname, setdomainname, mbind and its family
        ),
        220, 198, 29,
        ((52, 1), (53, 2), (452, 2), (33, 2)),  # fchmod and its family, mknodat
        ((56, 2),),
    ),
}  # fmt: skip
_UNSEEN: Final = (435, 437)
"""clone3 and openat2: a filter cannot see what their structures hold."""


def machine_is_known(machine: str | None = None) -> bool:
    return (machine or os.uname().machine) in _MACHINES


def build_filter(machine: str | None = None) -> bytes:
    """Return the filter as an array of `struct sock_filter`; empty for a machine whose numbers are not listed."""
    known = _MACHINES.get(machine or os.uname().machine)
    if known is None:
        return b""
    deny, missing, family = (_ERROR | number for number in (errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT))
    code: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, known.audit),
        (_RETURN, 0, 0, missing),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, missing),
    ]
    for number in _UNSEEN:
        code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, missing)]
    for number in known.denied:
        code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, deny)]
    code += [
        (_EQUAL, 0, 3, known.clone),
        (_LOAD, 0, 0, _FIRST),
        (_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, deny),
    ]
    code += [(_LOAD, 0, 0, _NUMBER)]
    for number, at in known.modes:
        mode = [(_LOAD, 0, 0, _FIRST + _ARGUMENT * at), (_ANY_BIT, 0, 1, _SETUID), (_RETURN, 0, 0, deny)]
        code += [(_EQUAL, 0, 4, number), *mode, (_LOAD, 0, 0, _NUMBER)]
    for number, at in known.opens:
        flags = [(_LOAD, 0, 0, _FIRST + _ARGUMENT * at), (_ANY_BIT, 0, 3, _MAKES_FILE)]
        mode = [(_LOAD, 0, 0, _FIRST + _ARGUMENT * (at + 1)), (_ANY_BIT, 0, 1, _SETUID), (_RETURN, 0, 0, deny)]
        code += [(_EQUAL, 0, 6, number), *flags, *mode, (_LOAD, 0, 0, _NUMBER)]
    code += [(_EQUAL, 0, 2 + 2 * len(_TERMINAL_INPUT), known.ioctl), (_LOAD, 0, 0, _SECOND)]
    for request in _TERMINAL_INPUT:
        code += [(_EQUAL, 0, 1, request), (_RETURN, 0, 0, deny)]
    code += [(_LOAD, 0, 0, _NUMBER)]
    count = len(_FAMILIES)
    code += [(_EQUAL, 0, 2 + count, known.socket), (_LOAD, 0, 0, _FIRST)]
    code += [(_EQUAL, count - at, 0, number) for at, number in enumerate(_FAMILIES)]
    code += [(_RETURN, 0, 0, family), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
