"""`Credential`: a secret that is added to requests for one host, outside of the workspace.

Rules that this file keeps:
- A secret is added only to requests for its own host, after they were decided and recorded.
- A secret goes to the internet by HTTPS, unless its host was written with `http://`.
- Inside, a placeholder stands for it: `ramet-secret:NAME`. Towards any other host the placeholder stays as it is.
- What a server sends back of a secret is covered by asterisks, in each of the `forms` that servers write.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote

from ramet.core.errors import RametError
from ramet.core.paths import decode, encode
from ramet.network.failures import FailureKind, NetworkFailure
from ramet.network.rules import NetworkRule, NetworkVerdict, Outgoing

PLACEHOLDER: Final = "ramet-secret:"
SHORTEST: Final = 4
"""Characters of the shortest value that is covered in answers."""
SHORTEST_BASE64: Final = 8
"""Shorter ones stand in long files by chance."""
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
        """The secret; NetworkFailure when it cannot be had, without its content."""
        kind, _, place = self.source.partition(":")
        if kind == "value":
            return place
        if kind == "env":
            found = os.environ.get(place)
            if not found:
                raise self._missing(f"is not set: ${place} is empty outside")
        else:
            try:
                with open(os.path.expanduser(place), "rb") as file:
                    found = decode(file.read().strip())
            except OSError as error:
                raise self._missing(f"cannot be read: {error.strerror}") from None
        if re.search(r"[\r\n\0]", found):
            raise self._missing("has more than one line")
        return found

    def _missing(self, why: str) -> NetworkFailure:
        return NetworkFailure(FailureKind.REFUSED, f"the credential {self.name} {why}")


def credentials_of(given: Mapping[str, Any]) -> tuple[Credential, ...]:
    """Read `{host: {...}}`, or `{host: [{...}, {...}]}` for several secrets of one host."""
    found: list[Credential] = []
    for host, rows in given.items():
        for row in rows if isinstance(rows, list | tuple) else [rows]:
            one = Credential.parse(host, row)
            if isinstance(rows, list | tuple) and len(rows) > 1 and one.env is not None and "name" not in row:
                one = replace(one, name=f"{host}/{one.env}")
            found.append(_with_shared_name(found, one, host))
    return tuple(sorted(found, key=lambda one: -len(one.name)))  # a name may be the beginning of another


def _with_shared_name(others: Iterable[Credential], one: Credential, host: str) -> Credential:
    """The credential with the placeholder that its variable has already; no two secrets share one."""
    for other in others:
        if one.env is None or other.env is None:
            continue
        if one.source != other.source and (one.env == other.env or one.name == other.name):
            shared, part = (f"variable ${one.env}", "env") if one.env == other.env else (f"name {one.name!r}", "name")
            raise _misread(host, f"another secret has the {shared} too; give one of them another `{part}`")
        if one.env == other.env:
            one = replace(one, name=other.name)
    return one


@dataclass
class Signed:
    """A request with its secrets. `cover` hides them in what comes back."""

    request_line: str
    headers: Headers
    secrets: tuple[bytes, ...] = ()


def sign(
    credentials: Iterable[Credential], out: Outgoing, request_line: str, headers: Headers, *, exposed: bool = False
) -> Signed:
    """Add the secrets of the request's host, and put them in the place of their placeholders.

    `exposed` is a request that others on the way can read.
    """
    made = Signed(request_line, list(headers))
    values: list[str] = []
    for one in credentials:
        if not one.rule.matches(out) or (exposed and one.rule.scheme is None):
            continue
        value = one.value()
        values += forms(value)
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
            header, text = "Authorization", _basic(f"{one.basic}:{value}")
        if header is not None and not named:
            made.headers = [row for row in made.headers if row[0].lower() != header.lower()] + [(header, text)]
    tokens = [(text.partition(" ")[2], _basic_text(text) or "") for _, text in made.headers]
    values += [token for token, inner in tokens if any(value in inner for value in values)]
    made.secrets = tuple(map(encode, sorted(set(values), key=len, reverse=True)))
    if made.secrets:  # what comes back is read for them
        made.headers = [row for row in made.headers if row[0].lower() not in _COMPRESSING]
        made.headers.append(("Accept-Encoding", "identity"))
    return made


def forms(value: str) -> list[str]:
    """How servers write a secret: as it is, in a URL, in JSON, and within what is encoded in base64."""
    if len(value) < SHORTEST:
        return []
    in_json = json.dumps(value)[1:-1]
    found = [value, quote(value, safe=""), quote(value), in_json, in_json.replace("/", "\\/")]
    for before in range(3):  # bytes; the characters at both ends also depend on what is next to the secret
        plain = b"\0" * before + encode(value)
        inner = base64.b64encode(plain)[(0, 2, 3)[before] : len(plain) * 8 // 6].decode()
        found += [inner] if len(inner) >= SHORTEST_BASE64 else []
    return found


def _replaced(name: str, text: str, one: Credential, value: str) -> str:
    if name.lower() == "authorization" and (inner := _basic_text(text)) is not None and one.placeholder in inner:
        return _basic(inner.replace(one.placeholder, value))
    return text.replace(one.placeholder, value)


def _has_basic(headers: Headers, one: Credential) -> bool:
    found = (_basic_text(text) for name, text in headers if name.lower() == "authorization")
    return any(inner is not None and one.placeholder in inner for inner in found)


def _basic(text: str) -> str:
    return "Basic " + base64.b64encode(encode(text)).decode()


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
