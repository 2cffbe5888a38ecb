"""SOCKS 5 (RFC 1928, RFC 1929) as programs in a box speak it: user and password, CONNECT, and nothing else."""

from __future__ import annotations

import ipaddress
from typing import Final

from ramet.core.paths import decode
from ramet.network.failures import FailureKind, NetworkFailure
from ramet.network.relay import Connection
from ramet.network.targets import BadURL, Target, parse_host

VERSION: Final = 5
SUCCEEDED: Final = 0
FAILED: Final = 1
REFUSED: Final = 2
UNREACHABLE: Final = 4
NOT_CONNECTED: Final = 5
EXPIRED: Final = 6
NO_COMMAND: Final = 7
NO_ADDRESS: Final = 8
_PASSWORD: Final = 2
_NO_METHOD: Final = 0xFF
_CONNECT: Final = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_CODES: Final = {
    FailureKind.REFUSED: REFUSED, FailureKind.OFF: REFUSED, FailureKind.LIMIT: REFUSED,
    FailureKind.RESOLVE: UNREACHABLE, FailureKind.CONNECT: NOT_CONNECTED, FailureKind.TIMEOUT: EXPIRED,
}  # fmt: skip


class SocksError(Exception):
    """A client that asks for what there is not; it has its answer."""


async def password_of(client: Connection) -> tuple[str, str]:
    """Read the greeting, whose version was read already, and the user and password."""
    reader, writer = client
    methods = await reader.readexactly((await reader.readexactly(1))[0])
    if _PASSWORD not in methods:
        writer.write(bytes((VERSION, _NO_METHOD)))
        raise SocksError("it does not offer user and password")
    writer.write(bytes((VERSION, _PASSWORD)))
    if await reader.readexactly(1) != b"\x01":
        raise SocksError("its user and password cannot be read")
    user = await reader.readexactly((await reader.readexactly(1))[0])
    word = await reader.readexactly((await reader.readexactly(1))[0])
    return decode(user), decode(word)


def tell_admitted(client: Connection, *, admitted: bool) -> None:
    client.writer.write(bytes((1, 0 if admitted else 1)))


async def target_of(client: Connection) -> Target:
    """Read what to connect to."""
    reader, _ = client
    version, command, _, kind = await reader.readexactly(4)
    if version != VERSION:
        raise SocksError("its request cannot be read")
    if kind == _NAME:
        text = decode(await reader.readexactly((await reader.readexactly(1))[0]))
    elif kind in (_IPV4, _IPV6):
        packed = await reader.readexactly(4 if kind == _IPV4 else 16)
        text = str(ipaddress.IPv4Address(packed)) if kind == _IPV4 else f"[{ipaddress.IPv6Address(packed)}]"
    else:
        client.writer.write(answer(NO_ADDRESS))
        raise SocksError("its address is of an unknown kind")
    port = int.from_bytes(await reader.readexactly(2))
    if command != _CONNECT:
        client.writer.write(answer(NO_COMMAND))
        raise SocksError("it asks for more than to connect")
    try:
        if not port:
            raise BadURL("it names no port")
        return Target("https", parse_host(f"[{text}]" if ":" in text and kind == _NAME else text), port)
    except BadURL as error:
        client.writer.write(answer(UNREACHABLE))
        raise SocksError(str(error)) from None


def answer(code: int) -> bytes:
    """What answers a request; it does not tell the address of the connection."""
    return bytes((VERSION, code, 0, _IPV4, 0, 0, 0, 0, 0, 0))


def code_of(failure: NetworkFailure) -> int:
    return _CODES.get(failure.kind, FAILED)
