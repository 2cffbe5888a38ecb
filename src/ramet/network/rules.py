"""`NetworkRule`: one line of a network policy, such as `*.example.org:443` or `GET https://api.example.org/v1/`.

Rules that this file keeps:
- A rule says what it says: a port, a method or a path that it does not name is free.
- A name never stands for a private address: that takes the address itself, a network, or `private`.
- What a tunnel hides from Ramet, a rule about methods or paths does not allow.
"""

from __future__ import annotations

import enum
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from ramet.core.errors import RametError
from ramet.network.addresses import IPNetwork, is_public, plain_address
from ramet.network.targets import PORTS, BadURL, Target, parse_host, split_port

_METHODS: Final = re.compile(r"([A-Z]+(?:,[A-Z]+)*)\s+")
_NETWORK: Final = re.compile(r"(?P<net>[0-9.]+/[0-9]+|\[?[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*/[0-9]+\]?)(?::(?P<port>\d+))?")
_DOUBTFUL: Final = re.compile(r"%|\\|//|/\.\.?(/|$)|/ | (/|$)|[\x00-\x1f;]")
"""What servers read in different ways in a path: encoded twice, other separators, dots, spaces at the ends of names."""
FIELDS: Final = ("host", "port", "scheme", "methods", "path", "private", "session", "agent", "reason")
REMEDY: Final = (
    "write a host, *.suffix, host:port, an address, a network, or https://host/path, after GET,HEAD if you like"
)


class NetworkVerdict(enum.Enum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True)
class Outgoing:
    """A request that wants to leave."""

    method: str
    target: Target
    session_id: str = ""
    agent_id: str = ""
    tunnel: bool = False
    """A CONNECT: what goes through it, Ramet cannot see."""


@dataclass(frozen=True)
class NetworkRule:
    """One rule. `text` is how it is shown."""

    verdict: NetworkVerdict
    text: str
    host: str = "*"
    network: IPNetwork | None = None
    """The addresses that it names, instead of a host."""
    port: int | None = None
    scheme: str | None = None
    methods: frozenset[str] | None = None
    path: str = "/"
    private: bool = False
    """Whether the host may have a private address."""
    session: str | None = None
    agent: str | None = None
    reason: str = ""

    @classmethod
    def parse(cls, verdict: NetworkVerdict, row: str | Mapping[str, Any]) -> NetworkRule:
        """Read a rule as users write it: a line of text, or a mapping with the parts of one."""
        if isinstance(row, str):
            return _from_text(verdict, row)
        if not isinstance(row, Mapping):
            raise _misread(row, "it is neither text nor a mapping")
        unknown = set(row) - set(FIELDS)
        if unknown:
            raise RametError("invalid_config", f"network rule has an unknown part {min(unknown)!r}", f"use {FIELDS}")
        if not isinstance(row.get("host"), str):
            raise _misread(dict(row), "it names no host")
        base = _from_text(verdict, row["host"])
        port, scheme = row.get("port"), row.get("scheme")
        methods, path = row.get("methods"), row.get("path")
        if port is not None and (isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536):
            raise _misread(dict(row), f"{port!r} is not a port")
        if scheme not in (None, *PORTS):
            raise _misread(dict(row), f"{scheme!r} is not http or https")
        words = [methods] if isinstance(methods, str) else methods
        named = None if words is None else frozenset(str(word).upper() for word in words)
        rule = cls(
            verdict, "", base.host, base.network, port or base.port, scheme or base.scheme, named or base.methods,
            _path(path, row) if path is not None else base.path, bool(row.get("private", False)), row.get("session"),
            row.get("agent"), str(row.get("reason") or ""),
        )  # fmt: skip
        return cls(**{**rule.__dict__, "text": rule._line()})

    def _line(self) -> str:
        """The rule as a line of text."""
        host = self.host if self.network is None else _shown(self.network)
        host = f"[{host}]" if ":" in host and not host.startswith("[") else host
        port = "" if self.port is None or PORTS.get(self.scheme or "") == self.port else f":{self.port}"
        path = self.path if self.path != "/" else ""
        methods = f"{','.join(sorted(self.methods))} " if self.methods else ""
        return f"{methods}{self.scheme + '://' if self.scheme else ''}{host}{port}{path}"

    # ---------------------------------------------------------------------------------------------- matching

    def matches(self, out: Outgoing) -> bool:
        """Whether it is about this request, as far as its URL tells."""
        return self._names(out.target) and self._fits(out)

    def covers(self, out: Outgoing, address: str) -> bool:
        """Whether it names this address, which the host of the request has."""
        if self.network is None:
            loopback = self.host == "localhost" and plain_address(address).is_loopback
            return (self.private or loopback) and self.matches(out)
        return plain_address(address) in self.network and self._fits(out)

    def names(self, out: Outgoing) -> bool:
        """Whether it names the very host of a request, whatever it says of methods and paths."""
        return self.names_host(out.target) and self._fits_place(out)

    def names_host(self, target: Target) -> bool:
        """Whether it names this very host, or a network of its address."""
        return (self.network is not None or self.host == target.host) and self._names(target)

    def _names(self, target: Target) -> bool:
        if self.network is not None:
            return target.is_address and plain_address(target.host) in self.network
        if self.host == "*":
            return not target.is_address or is_public(target.host)
        if self.host.startswith("*."):
            return not target.is_address and target.host.endswith(self.host[1:])
        return target.host == self.host

    def _fits_place(self, out: Outgoing) -> bool:
        target = out.target
        if self.port is not None and self.port != target.port:
            return False
        if self.scheme is not None and self.scheme != target.scheme:
            return False
        for pattern, value in ((self.session, out.session_id), (self.agent, out.agent_id)):
            if pattern is not None and not _like(pattern, value):
                return False
        return True

    def _fits(self, out: Outgoing) -> bool:
        if not self._fits_place(out):
            return False
        permits = self.verdict is not NetworkVerdict.DENY
        if out.tunnel and (self.methods is not None or self.path != "/"):
            return not permits
        if self.methods is not None and out.method not in self.methods:
            return False
        return self.path == "/" or _below(self.path, out.target.path, doubt=not permits)


def _below(prefix: str, path: str, doubt: bool) -> bool:
    """Whether a path is at or below a prefix; `doubt` where servers may read it in different ways."""
    plain = unquote(path)
    if _DOUBTFUL.search(plain) or "%2f" in path.lower():
        return doubt
    return plain == prefix or plain.startswith(prefix if prefix.endswith("/") else prefix + "/")


def _like(pattern: str, text: str) -> bool:
    parts = re.split(r"([*?])", pattern)
    made = "".join(".*" if part == "*" else "." if part == "?" else re.escape(part) for part in parts)
    return re.fullmatch(made, text, re.DOTALL) is not None


def _from_text(verdict: NetworkVerdict, row: str) -> NetworkRule:
    text = row.strip()
    found = _METHODS.match(text)
    methods = frozenset(found[1].split(",")) if found else None
    rest = text[found.end() :] if found else text
    network = _NETWORK.fullmatch(rest)
    try:
        if network is not None:
            named: IPNetwork = ipaddress.ip_network(network["net"].strip("[]"))
            port = int(network["port"]) if network["port"] else None
            return NetworkRule(verdict, text, network=named, port=port, methods=methods)
        scheme, mark, rest = rest.rpartition("://")
        if mark and scheme not in PORTS:
            raise BadURL(f"{scheme!r} is not http or https")
        place, slash, path = rest.partition("/")
        if place.count(":") > 1 and not place.startswith("["):
            place = f"[{place}]"  # an IPv6 address without a port
        host, port = split_port(place.removesuffix(":*"))
        if mark and port is None and not place.endswith(":*"):
            port = PORTS[scheme]
        kept = _path(slash + path, row) if slash else "/"
        more: dict[str, Any] = {"port": port, "scheme": scheme or None, "methods": methods, "path": kept}
        if host == "*":
            return NetworkRule(verdict, text, **more)
        if host.startswith("*."):
            return NetworkRule(verdict, text, host="*." + parse_host(host[2:]), **more)
        plain = parse_host(host)
        if ":" not in host and plain != host.removesuffix(".") and plain.rpartition(".")[2].isdecimal():
            raise BadURL(f"{host} is {plain} in an unusual spelling")
    except ValueError as error:
        raise _misread(row, str(error)) from None
    address = Target("http", plain, 80).is_address
    return NetworkRule(verdict, text, plain, ipaddress.ip_network(plain) if address else None, **more)


def _path(text: object, row: object) -> str:
    if not isinstance(text, str) or not text.startswith("/") or re.search(r"[*?#%\\\s]|//|/\.\.?(/|$)", text):
        raise _misread(row, f"{text!r} is not the beginning of a path, such as /v1/")
    return text


def _shown(network: IPNetwork) -> str:
    return str(network.network_address) if network.num_addresses == 1 else str(network)


def _misread(row: object, why: str) -> RametError:
    return RametError("invalid_config", f"cannot read the network rule {row!r}: {why}", REMEDY)
