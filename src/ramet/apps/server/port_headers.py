"""Headers between clients and programs that listen in a workspace: what passes, and what is made anew.

A program is not trusted. Rules that this file keeps:
- The credentials of this server never reach a program: its token, cookies of its host, the addresses of its pages.
- Below `/v1` a program answers under the origin of the API: it sets no cookies, its pages are sandboxed, and no header
  of it is about the origin as a whole (HSTS, service workers, `Clear-Site-Data`, `Alt-Svc`, CORS).
- A redirect stays below the prefix: a client that follows it with its token asks no other route of this server.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple
from urllib.parse import quote, urljoin, urlsplit

from ramet.network.conversation import HOP_BY_HOP

Headers = list[tuple[bytes, bytes]]

_MADE_ANEW: Final = frozenset((b"host", b"expect", b"forwarded", b"x-real-ip", b"origin", b"referer"))
_OF_WEBSOCKETS: Final = b"sec-websocket-"
_OWN: Final = frozenset((b"authorization", b"cookie", b"idempotency-key"))
"""What clients send to this server, below `/v1`."""
_OF_THE_ORIGIN: Final = frozenset((
    b"alt-svc", b"clear-site-data", b"nel", b"origin-agent-cluster", b"public-key-pins", b"report-to",
    b"reporting-endpoints", b"service-worker-allowed", b"set-cookie", b"set-cookie2", b"strict-transport-security",
    b"www-authenticate", b"sourcemap", b"x-sourcemap", b"refresh", b"cache-control", b"expires", b"pragma",
    b"x-content-type-options", b"cross-origin-resource-policy", b"cross-origin-opener-policy",
))  # fmt: skip
"""Headers of an answer that hold for more than it, or that are made anew below `/v1`."""
SANDBOX: Final = "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts"
"""Without `allow-same-origin`: a page of a program gets an opaque origin."""
CONFINED: Final[Headers] = [
    (b"content-security-policy", SANDBOX.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]
LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "::1", "0.0.0.0", "::"))
_DOT: Final = re.compile("%2e", re.IGNORECASE)
_DOMAIN: Final = re.compile(rb";\s*domain\s*=[^;]*", re.IGNORECASE)
_PRINTABLE: Final = "!#$%&'()*+,-./:;=?@[]_~"


class PortPlace(NamedTuple):
    """Where a client finds a program."""

    scheme: str
    host: str
    """The Host header of the client."""
    prefix: str
    """The path of the client before that of the program; empty at a separate origin."""
    port: int
    """The program's port in the workspace."""
    names: frozenset[str] = frozenset()
    """Other names of this server: a redirect to one of them stays with the program too."""
    cookie: bytes = b""
    """The cookie of this server at a separate origin."""

    @property
    def inside(self) -> str:
        """The program's own address of itself."""
        return f"localhost:{self.port}"


def named_in_connection(headers: Iterable[tuple[bytes, bytes]]) -> set[bytes]:
    """Return the headers that `Connection` names: they are for the next hop only."""
    return {
        word.strip().lower() for name, value in headers if name == b"connection" for word in value.split(b",")
    }  # fmt: skip


def to_program(headers: Headers, place: PortPlace) -> Headers:
    """Return the headers of a request for the program; names are in lower case."""
    dropped = HOP_BY_HOP | _MADE_ANEW | named_in_connection(headers) | (_OWN if place.prefix else frozenset())
    found = [(b"host", place.inside.encode())]
    own = f"{place.scheme}://{place.host}"
    for name, value in headers:
        if name == b"cookie" and not place.prefix:
            if kept := _without_cookie(value, place.cookie):
                found.append((name, kept))
        elif name == b"origin" and not place.prefix:
            found.append((name, f"http://{place.inside}".encode() if value == own.encode() else value))
        elif not (name in dropped or name.startswith((b"x-forwarded-", _OF_WEBSOCKETS)) or b"_" in name):
            found.append((name, value))
    found += [(b"x-forwarded-host", place.host.encode("latin-1")), (b"x-forwarded-proto", place.scheme.encode())]
    if place.prefix:
        found.append((b"x-forwarded-prefix", place.prefix.encode()))
    return found


def from_program(headers: Iterable[tuple[bytes, bytes]], place: PortPlace, path: str) -> Headers:
    """Return the headers of an answer for the client; `path` is what the program was asked for."""
    listed = [(name.lower(), value) for name, value in headers]
    dropped = HOP_BY_HOP | named_in_connection(listed) | (_OF_THE_ORIGIN if place.prefix else frozenset())
    found: Headers = []
    for name, value in listed:
        if name in dropped or (place.prefix and name.startswith(b"access-control-")):
            continue
        if name in (b"location", b"content-location"):
            value = moved(value.decode("latin-1"), place, path).encode("latin-1")
        elif name == b"set-cookie":
            if _cookie_name(value) == place.cookie:
                continue
            value = _DOMAIN.sub(b"", value)
        found.append((name, value))
    return found + CONFINED if place.prefix else found


def moved(location: str, place: PortPlace, path: str) -> str:
    """Return where a redirect of a program leads the client; `path` is what the program was asked for."""
    text = "".join(char for char in location if char > " ")  # as browsers read it
    before, mark, rest = _split(text)
    text = quote(before.replace("\\", "/") + mark + rest, safe=_PRINTABLE, encoding="latin-1")
    try:
        found = urlsplit(text)
        host, port = (found.hostname or "").lower(), found.port or (443 if found.scheme == "https" else 80)
    except ValueError:
        return f"{place.prefix}/"
    if found.scheme not in ("", "http", "https"):
        return f"{place.prefix}/"
    prefix = place.prefix
    if found.netloc and found.netloc.lower() != place.host.lower():
        if host in LOOPBACK and port != place.port and prefix:
            prefix = f"{prefix.rpartition('/')[0]}/{port}"  # another program of the workspace
        elif host not in LOOPBACK | place.names or (port != place.port and not prefix):
            return text
    elif not found.netloc and not found.path:
        return _joined(prefix, place, path) + text.removeprefix(f"{found.scheme}:")
    whole = _plain_dots(found.path)
    if found.netloc or whole.startswith("/"):
        whole = "/" + whole.lstrip("/")
    whole = urlsplit(urljoin(f"http://x{path}", whole)).path
    return _joined(prefix, place, whole) + (f"?{found.query}" if found.query else "") + (
        f"#{found.fragment}" if found.fragment else ""
    )  # fmt: skip


def _joined(prefix: str, place: PortPlace, path: str) -> str:
    """Return a path of a program as the client asks for it; some programs know their prefix."""
    if place.prefix and f"{path}/".startswith(f"{place.prefix}/"):
        path = path.removeprefix(place.prefix)
    return f"{prefix}/{path.lstrip('/')}"


def _split(text: str) -> tuple[str, str, str]:
    """Split a path from its query and fragment."""
    at = min((found for found in (text.find("?"), text.find("#")) if found >= 0), default=len(text))
    return text[:at], text[at : at + 1], text[at + 1 :]


def _plain_dots(path: str) -> str:
    """Write `%2e` as browsers read it, where it makes `.` or `..` of a segment."""
    plain = [(one, _DOT.sub(".", one)) for one in path.split("/")]
    return "/".join(dots if dots in (".", "..") else one for one, dots in plain)


def _cookie_name(cookie: bytes) -> bytes:
    return cookie.partition(b"=")[0].strip()


def _without_cookie(header: bytes, name: bytes) -> bytes:
    return b"; ".join(one.strip() for one in header.split(b";") if _cookie_name(one) != name)


def offered_to_program(subprotocols: Collection[str]) -> list[str]:
    """Return the subprotocols of a WebSocket that are not this server's."""
    return [one for one in subprotocols if not one.startswith("ramet.")]
