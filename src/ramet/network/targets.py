"""`Target`: where a request goes, read from a URL in one strict way, so that no two readers differ about the host."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote_from_bytes, unquote, urljoin

from ramet.core.paths import encode
from ramet.network.addresses import ipv4_of, plain_address

PORTS: Final = {"http": 80, "https": 443}
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_ILLEGAL: Final = re.compile(r"[\x00-\x20\x7f\\]")
_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_TWO_READINGS: Final = re.compile("[\u00df\u03c2\u200c\u200d]")
"""Letters that are one name to some programs and another to others (IDNA 2003 and 2008)."""
_PORT: Final = re.compile(r"[0-9]{1,5}")
_LONGEST_NAME: Final = 253
_VERBATIM: Final = "".join(map(chr, range(0x21, 0x7F)))
"""What a request line carries as it is."""


class BadURL(ValueError):
    """A URL that cannot be read without doubt."""


class BadScheme(BadURL):
    """A URL of another protocol than http and https; `scheme` names it."""

    def __init__(self, scheme: str) -> None:
        self.scheme = scheme
        super().__init__(f"the protocol {scheme!r} is not supported")


@dataclass(frozen=True)
class Target:
    """One parsed URL. `host` is lower case without a last dot, or an address in its usual spelling."""

    scheme: str
    host: str
    port: int
    path: str = "/"
    query: str | None = None
    user: str | None = None
    password: str | None = None

    @property
    def is_address(self) -> bool:
        return ":" in self.host or self.host.rpartition(".")[2].isdecimal()

    @property
    def authority(self) -> str:
        """`host`, or `host:port` where the port is not the scheme's: the Host header."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return shown if PORTS.get(self.scheme) == self.port else f"{shown}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def request_line(self) -> str:
        return self.path if self.query is None else f"{self.path}?{self.query}"

    @property
    def url(self) -> str:
        """The URL without user and password."""
        return self.origin + self.request_line

    @property
    def shown(self) -> str:
        """The URL for messages and records: without user, password and query."""
        return self.origin + self.path

    def join(self, reference: str) -> Target:
        """Where a `Location` leads, seen from here. User and password stay behind."""
        reference = reference.strip()
        if _SCHEME.match(reference):
            return parse_url(reference)
        if reference.startswith("//"):
            return parse_url(f"{self.scheme}:{reference}")
        return parse_url(urljoin(self.url, reference.replace(" ", "%20")))

    def bare(self) -> Target:
        """The target without user and password."""
        return replace(self, user=None, password=None)


def parse_url(text: str, *, scheme: str = "http") -> Target:
    """Read a URL; without a scheme it is of `scheme`. Raises BadURL, or BadScheme."""
    if not text or _ILLEGAL.search(text):
        raise BadURL("it is empty, or has a space, a control character or a backslash")
    found = _SCHEME.match(text)
    if found is not None:
        scheme, text = found[1].lower(), text[found.end() :]
    if scheme not in PORTS:
        raise BadScheme(scheme)
    cut = re.search(r"[/?#]", text)
    authority, rest = (text, "") if cut is None else (text[: cut.start()], text[cut.start() :])
    userinfo, at, place = authority.rpartition("@")
    user: str | None = None
    password: str | None = None
    if at:
        if "@" in userinfo:
            raise BadURL("its user and password have an @, which must be written %40")
        name, colon, word = userinfo.partition(":")
        user, password = unquote(name), unquote(word) if colon else None
    host, port = split_port(place)
    path, mark, query = rest.partition("#")[0].partition("?")
    path = quote_from_bytes(encode(path), safe=_VERBATIM) or "/"
    return Target(
        scheme, parse_host(host), PORTS[scheme] if port is None else port, remove_dots(path),
        quote_from_bytes(encode(query), safe=_VERBATIM) if mark else None, user, password,
    )  # fmt: skip


def split_port(place: str) -> tuple[str, int | None]:
    """Split `host:port`; the port is None where none is given."""
    if place.startswith("["):
        host, bracket, rest = place.partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise BadURL(f"the brackets of {place!r} are damaged")
        host, text = host + bracket, rest[1:]
    else:
        host, _, text = place.partition(":")
    if not text:
        return host, None
    if not _PORT.fullmatch(text) or not 0 < int(text) < 65536:
        raise BadURL(f"{text!r} is not a port")
    return host, int(text)


def parse_host(text: str) -> str:
    """Read a host as it stands in a URL: a name, an IPv4 address in any spelling, or an IPv6 one in brackets."""
    if text.startswith("["):
        try:
            if "%" in text:
                raise ValueError
            return str(plain_address(str(ipaddress.IPv6Address(text[1:-1]))))
        except ValueError:
            raise BadURL(f"{text!r} is not an IPv6 address") from None
    host = text.lower()
    if not host.isascii():
        if _TWO_READINGS.search(host):
            raise BadURL(f"{text!r} is two names: write the one that is meant as xn--...")
        try:
            host = host.encode("idna").decode("ascii").lower()
        except UnicodeError:
            raise BadURL(f"{text!r} is not a host name") from None
    host = host.removesuffix(".")
    if not host or len(host) > _LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise BadURL(f"{text!r} is not a host name")
    try:
        return ipv4_of(host) or host
    except ValueError:
        raise BadURL(f"{text!r} is neither an address nor a name") from None


def remove_dots(path: str) -> str:
    """A path without `.` and `..`, as every client sends it (RFC 3986, 5.2.4); also where the dots are escaped."""
    out: list[str] = []
    parts = path.split("/")
    for at, part in enumerate(parts):
        name = part.replace("%2e", ".").replace("%2E", ".")
        last = at == len(parts) - 1
        if name == "..":
            if len(out) > 1:
                out.pop()
            if last:
                out.append("")
        elif name == ".":
            if last:
                out.append("")
        else:
            out.append(part)
    made = "/".join(out)
    return made if made.startswith("/") else "/" + made
