"""uuidgen: random, time-based and name-based UUIDs."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, choose, flag, value
from ramet.core.paths import encode
from ramet.core.proc import Proc

_NAMESPACES = {
    "@dns": uuid.NAMESPACE_DNS,
    "@url": uuid.NAMESPACE_URL,
    "@oid": uuid.NAMESPACE_OID,
    "@x500": uuid.NAMESPACE_X500,
}


@dataclass(frozen=True, slots=True)
class UuidgenOptions:
    kind: str = choose(
        {"-r --random": "random", "-t --time": "time", "-m --md5": "md5", "-s --sha1": "sha1"},
        default="random",
        help="how it is made",
    )
    namespace: str | None = value("-n", "--namespace", metavar="NS", help="@dns, @url, @oid, @x500 or a UUID")
    name: str | None = value("-N", "--name", metavar="NAME", help="what a UUID is made from with -m or -s")
    hexadecimal: bool = flag("-x", "--hex", help="the name is hexadecimal")


async def uuidgen(proc: Proc, o: UuidgenOptions, operands: list[str]) -> int:
    if operands:
        raise UsageError("bad usage")
    if o.kind in ("md5", "sha1"):
        if o.namespace is None or o.name is None:
            raise UsageError("--namespace and --name are required for this kind")
        try:
            space = _NAMESPACES.get(o.namespace) or uuid.UUID(o.namespace)
            name = bytes.fromhex(o.name) if o.hexadecimal else encode(o.name)
        except ValueError:
            raise UsageError(f"invalid namespace or name: {o.namespace!r} {o.name!r}", hint=False) from None
        digest = hashlib.new(o.kind, space.bytes + name, usedforsecurity=False).digest()
        made = uuid.UUID(bytes=digest[:16], version=3 if o.kind == "md5" else 5)
    elif o.kind == "time":
        # The node is random: a real one would identify the machine.
        ticks = int(proc.now() * 10_000_000) + 0x01B21DD213814000
        low, middle, high = ticks & 0xFFFFFFFF, ticks >> 32 & 0xFFFF, ticks >> 48 & 0x0FFF
        node = secrets.randbits(48) | 1 << 40
        fields = (low, middle, high, secrets.randbits(6), secrets.randbits(8), node)
        made = uuid.UUID(fields=fields, version=1)
    else:
        made = uuid.uuid4()
    await proc.emit(f"{made}\n".encode())
    return 0


COMMANDS = [
    Command(
        "uuidgen",
        uuidgen,
        UuidgenOptions,
        summary="Create a new UUID.",
        usage="[OPTION]...",
        version_letters="V",
        help_letters="h",
    )
]
