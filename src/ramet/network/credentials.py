"""`Credential`: a secret that is added to requests for one host, outside of the workspace.

Rules that this file keeps:
- A secret is added only to requests for its own host, after they were decided and recorded.
- Inside, a placeholder stands for it: `ramet-secret:NAME`. Towards any other host the placeholder stays as it is.
- What a server sends back of a secret is covered by asterisks.
"""

from __future__ import annotations

import base64
import errno
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from ramet.core.errors import RametError, fail
from ramet.core.paths import decode, encode
from ramet.network.rules import NetworkRule, NetworkVerdict, Outgoing

PLACEHOLDER: Final = "ramet-secret:"
SHORTEST: Final = 4
"""Characters of the shortest value that is covered in answers."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FIELDS: Final = ("header", "prefix", "basic", "query", "from", "env", "name")
_COMPRESSING: Final = ("accept-encoding", "sec-websocket-extensions")
_REMEDY: Final = 'write {"header": "Authorization", "from": "env:NAME", "prefix": "Bearer "}'

Headers = list[tuple[str, str]]


@dataclass(frozen=True)
class Credential:
    """One secret of one host. Its value is read when it is used, so that it may change."""

    rule: NetworkRule
    source: str = field(repr=False)
    """`env:NAME`, `file:PATH`, or `value:TEXT`."""
    header: str | None = None
    prefix: str = ""
    basic: str | None = None
    """The user of basic authentication."""
    query: str | None = None
    """The parameter of the query."""
    env: str | None = None
    """The variable that holds the placeholder inside."""
    name: str = ""

    @classmethod
    def parse(cls, host: str, row: Mapping[str, Any]) -> Credential:
        if not isinstance(row, Mapping):
            raise _misread(host, "it is not a mapping")
        unknown = set(row) - set(_FIELDS)
        if unknown:
            raise _misread(host, f"unknown part {min(unknown)!r}")
        for key, value in row.items():
            if not isinstance(value, str):
                raise _misread(host, f"{key} is not text")
        source = row.get("from", "")
        kind, _, place = source.partition(":")
        if kind not in ("env", "file", "value") or not place:
            raise _misread(host, "`from` is not env:NAME or file:PATH")
        rule = NetworkRule.parse(NetworkVerdict.ALLOW, host)
        if rule.host == "*" and rule.network is None:
            raise _misread(host, "a credential belongs to a host")
        ways = [way for way in ("header", "basic", "query") if row.get(way)]
        if len(ways) > 1:
            raise _misread(host, f"{' and '.join(ways)} exclude each other")
        if row.get("header") and not _TOKEN.fullmatch(row["header"]):
            raise _misread(host, f"{row['header']!r} is not the name of a header")
        env = row.get("env", place if kind == "env" else None)
        if env is not None and not _NAME.fullmatch(env):
            raise _misread(host, f"{env!r} is not the name of a variable")
        if not ways and env is None:
            raise _misread(host, "nothing says how it is sent: header, basic, query, or env for a placeholder")
        return cls(
            rule, source, row.get("header"), row.get("prefix", ""), row.get("basic"), row.get("query"), env,
            row.get("name", host),
        )  # fmt: skip

    @property
    def placeholder(self) -> str:
        return PLACEHOLDER + self.name

    def value(self) -> str:
        """The secret; EACCES when it cannot be had, without its content."""
        kind, _, place = self.source.partition(":")
        if kind == "value":
            return place
        if kind == "env":
            found = os.environ.get(place)
            if not found:
                raise fail(errno.EACCES, None, f"the credential {self.name} is not set: ${place} is empty outside")
        else:
            try:
                with open(os.path.expanduser(place), "rb") as file:
                    found = decode(file.read().strip())
            except OSError as error:
                raise fail(errno.EACCES, None, f"the credential {self.name} cannot be read: {error.strerror}") from None
        if re.search(r"[\r\n\0]", found):
            raise fail(errno.EACCES, None, f"the credential {self.name} has more than one line")
        return found


def credentials_of(given: Mapping[str, Any]) -> tuple[Credential, ...]:
    """Read `{host: {...}}`, or `{host: [{...}, {...}]}` for several secrets of one host."""
    found: list[Credential] = []
    for host, rows in given.items():
        found.extend(Credential.parse(host, row) for row in (rows if isinstance(rows, list | tuple) else [rows]))
    return tuple(found)


@dataclass
class Signed:
    """A request with its secrets. `cover` hides them in what comes back."""

    request_line: str
    headers: Headers
    secrets: tuple[bytes, ...] = ()


def sign(credentials: Iterable[Credential], out: Outgoing, request_line: str, headers: Headers) -> Signed:
    """Add the secrets of the request's host, and put them in the place of their placeholders."""
    made = Signed(request_line, list(headers))
    values: list[str] = []
    for one in credentials:
        if not one.rule.matches(out):
            continue
        value = one.value()
        values += [value, quote(value, safe="")]
        named = any(one.placeholder in text for _, text in made.headers) or _has_basic(made.headers, one)
        made.headers = [(name, _replaced(name, text, one, value)) for name, text in made.headers]
        path, mark, query = made.request_line.partition("?")
        for written in (one.placeholder, quote(one.placeholder, safe="")):
            if written in query:
                named, query = True, query.replace(written, quote(value, safe=""))
        if one.query is not None and not named:
            kept = [part for part in query.split("&") if part and part.partition("=")[0] != one.query]
            query, mark = "&".join([*kept, f"{one.query}={quote(value, safe='')}"]), "?"
        made.request_line = path + mark + query
        header, text = one.header, one.prefix + value
        if one.basic is not None:
            token = base64.b64encode(encode(f"{one.basic}:{value}")).decode()
            header, text = "Authorization", f"Basic {token}"
            values.append(token)
        if header is not None and not named:
            made.headers = [row for row in made.headers if row[0].lower() != header.lower()] + [(header, text)]
    made.secrets = tuple(
        encode(value) for value in sorted(set(values), key=len, reverse=True) if len(value) >= SHORTEST
    )
    if made.secrets:  # what comes back is read for them
        made.headers = [row for row in made.headers if row[0].lower() not in _COMPRESSING]
        made.headers.append(("Accept-Encoding", "identity"))
    return made


def _replaced(name: str, text: str, one: Credential, value: str) -> str:
    if name.lower() == "authorization" and (inner := _basic_text(text)) is not None and one.placeholder in inner:
        return "Basic " + base64.b64encode(encode(inner.replace(one.placeholder, value))).decode()
    return text.replace(one.placeholder, value)


def _has_basic(headers: Headers, one: Credential) -> bool:
    found = (_basic_text(text) for name, text in headers if name.lower() == "authorization")
    return any(inner is not None and one.placeholder in inner for inner in found)


def _basic_text(text: str) -> str | None:
    scheme, _, token = text.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return decode(base64.b64decode(token, validate=True))
    except ValueError:
        return None


class Cover:
    """Replaces secrets in a stream by asterisks of the same length, also across blocks."""

    def __init__(self, secrets: Iterable[bytes]) -> None:
        self._secrets = tuple(secrets)
        self._longest = max(map(len, self._secrets), default=0)
        self._held = b""

    def feed(self, block: bytes) -> bytes:
        if not self._secrets:
            return block
        text = self._covered(self._held + block)
        keep = self._tail(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def rest(self) -> bytes:
        """What was held back at the end of the stream."""
        text, self._held = self._held, b""
        return text

    def text(self, value: str) -> str:
        return decode(self.whole(encode(value)))

    def whole(self, block: bytes) -> bytes:
        """Cover what a block has, and hold nothing back."""
        return self._covered(block)

    def _covered(self, text: bytes) -> bytes:
        for secret in self._secrets:
            text = text.replace(secret, b"*" * len(secret))
        return text

    def _tail(self, text: bytes) -> int:
        """How many bytes at the end may be the beginning of a secret."""
        for size in range(min(self._longest - 1, len(text)), 0, -1):
            if any(secret.startswith(text[-size:]) for secret in self._secrets):
                return size
        return 0


def _misread(host: str, why: str) -> RametError:
    return RametError("invalid_config", f"cannot read the credential of {host!r}: {why}", _REMEDY)
