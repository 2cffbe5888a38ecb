"""hostname and hostid: the name and the number of the host."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from ramet.commands.framework.command import Command, flag
from ramet.core.paths import encode
from ramet.core.proc import Proc


async def hostid(proc: Proc, o: object, operands: list[str]) -> int:
    """Print a number that depends only on the host name."""
    await proc.emit(b"%08x\n" % zlib.crc32(encode(proc.user.host)))
    return 0


@dataclass(frozen=True, slots=True)
class HostnameOptions:
    short: bool = flag("-s", "--short", help="short host name")
    fqdn: bool = flag("-f", "--fqdn", "--long", help="long host name (FQDN)")
    domain: bool = flag("-d", "--domain", help="DNS domain name")
    ip: bool = flag("-i", "--ip-address", help="addresses for the host name")
    all_ip: bool = flag("-I", "--all-ip-addresses", help="all addresses for the host")


async def hostname(proc: Proc, o: HostnameOptions, operands: list[str]) -> int:
    if operands:
        proc.complain("you must be root to change the host name")
        return 1
    text = "" if o.domain else "127.0.0.1" if o.ip or o.all_ip else proc.user.host
    await proc.emit(encode(text + "\n"))
    return 0


COMMANDS = [
    Command(
        "hostname",
        hostname,
        HostnameOptions,
        summary="Show the host name.",
        usage="[OPTION]...",
        version_letters="V",
        help_letters="h",
    ),
    Command(
        "hostid",
        hostid,
        summary="Print the numeric identifier (in hexadecimal) for the current host.",
        usage="[OPTION]",
        max_operands=0,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
