"""Internet addresses: which belong to the internet at large, and which text is one."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_WRAPPING: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")))
"""IPv6 networks whose last 32 bits are an IPv4 address: translated, compatible."""
_LOCAL: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b:1::/48", "fec0::/10", "5f00::/16", "3fff::/20")))
"""IPv6 networks that are not of the internet, which a Python may take for global."""
_PLATFORM: Final = frozenset({"168.63.129.16"})
"""Addresses of the internet at which a cloud serves its own machines."""
_NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")
_IPV4_PARTS: Final = 4


def is_public(address: str) -> bool:
    """Whether an address belongs to the internet at large, also when it is wrapped in an IPv6 one."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo and found.teredo[1])
        if inner:
            return is_public(str(inner))
        if any(found in network for network in _WRAPPING):
            return is_public(str(ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)))
        if any(found in network for network in _LOCAL):
            return False
    return found.is_global and not found.is_multicast and str(found) not in _PLATFORM


def plain_address(address: str) -> IPAddress:
    """The address itself; an IPv4 address that is mapped into IPv6 is the IPv4 address, which it reaches."""
    found = ipaddress.ip_address(address.partition("%")[0])
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found


def ipv4_of(host: str) -> str | None:
    """Read `127.1`, `0x7f000001`, `0177.0.0.1` and `2130706433` as the C library does; None for a name.

    A host whose last label is a number is an address or nothing: ValueError.
    """
    labels = host.split(".")
    if not _NUMBER.fullmatch(labels[-1]):
        return None
    if len(labels) > _IPV4_PARTS or not all(_NUMBER.fullmatch(label) for label in labels):
        raise ValueError(f"{host!r} is neither an address nor a name")
    *high, last = map(_number, labels)
    if any(part > 0xFF for part in high) or last >= 256 ** (_IPV4_PARTS - len(high)):
        raise ValueError(f"{host!r} is neither an address nor a name")
    value = last
    for at, part in enumerate(high):
        value |= part << (8 * (3 - at))
    return str(ipaddress.IPv4Address(value))


def _number(label: str) -> int:
    if label[:2] in ("0x", "0X"):
        return int(label[2:] or "0", 16)
    return int(label, 8 if len(label) > 1 and label[0] == "0" else 10)
