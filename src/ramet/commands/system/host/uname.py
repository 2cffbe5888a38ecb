"""uname and arch: the name of the system."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, flag
from ramet.core.paths import encode
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class UnameOptions:
    all: bool = flag("-a", "--all", help="print all information")
    kernel: bool = flag("-s", "--kernel-name", help="print the kernel name")
    node: bool = flag("-n", "--nodename", help="print the network node hostname")
    release: bool = flag("-r", "--kernel-release", help="print the kernel release")
    version: bool = flag("-v", "--kernel-version", help="print the kernel version")
    machine: bool = flag("-m", "--machine", help="print the machine hardware name")
    processor: bool = flag("-p", "--processor", help="print the processor type")
    platform: bool = flag("-i", "--hardware-platform", help="print the hardware platform")
    system: bool = flag("-o", "--operating-system", help="print the operating system")


MACHINE = "x86_64"


RELEASE = "6.1.0-ramet"


async def uname(proc: Proc, o: UnameOptions, operands: list[str]) -> int:
    parts = [
        ("kernel", "Linux"),
        ("node", proc.user.host),
        ("release", RELEASE),
        ("version", "#1 SMP ramet"),
        ("machine", MACHINE),
        ("processor", "unknown"),
        ("platform", "unknown"),
        ("system", "GNU/Linux"),
    ]
    if o.all:
        chosen = [text for name, text in parts if text != "unknown"]
    else:
        chosen = [text for name, text in parts if getattr(o, name)] or ["Linux"]
    await proc.emit(encode(" ".join(chosen) + "\n"))
    return 0


async def arch(proc: Proc, o: object, operands: list[str]) -> int:
    await proc.emit(f"{MACHINE}\n".encode())
    return 0


COMMANDS = [
    Command(
        "uname",
        uname,
        UnameOptions,
        summary="Print certain system information.",
        usage="[OPTION]...",
        max_operands=0,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "arch",
        arch,
        summary="Print machine architecture.",
        usage="",
        max_operands=0,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
