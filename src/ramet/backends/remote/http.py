"""`HTTPResource`: what a web server offers below one address, to be read.

Rules that this file keeps:
- A path is an address below the base, nothing else: no name leads out of it, and queries are never sent.
- HTTP has no directories. What a listing says comes from pages of links, from a list, or there is none.
- Only a strong ETag is a version; a read that breaks goes on only in the version that it began with.
"""

from __future__ import annotations

import errno
import json
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, fields
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Final
from urllib.parse import quote_from_bytes, unquote_to_bytes, urljoin, urlsplit

from ramet.backends.redacted_urls import secret_from
from ramet.backends.remote.http_client import HTTPClient
from ramet.backends.unwritable import Unwritable
from ramet.core.errors import RametError, fail, unavailable, wrong_type
from ramet.core.paths import ROOT, Path, decode, encode, parse
from ramet.core.resource import REDACTED, Cap, Description
from ramet.core.stat import Kind, Stat

if TYPE_CHECKING:
    import httpx2

LARGEST_INDEX: Final = 32 << 20
LINKS: Final = "links"
NONE: Final = "none"
SAFE: Final = "-._~!$&'()*+,;=:@"


@dataclass(frozen=True, kw_only=True)
class HTTPConfig:
    """A base URL, and the hosts that redirects may lead to."""

    base: str
    """The address that is the root, `https://example.org/data/`."""
    index: str = LINKS
    """How to list: `links` reads the pages that servers make for directories, `none` lists nothing; anything else is a
    file below the base that names the others, a path a line or as a JSON list."""
    files: tuple[str, ...] = ()
    """The paths that there are, when they are known beforehand; nothing else is then found."""
    allow: tuple[str, ...] = ()
    """Hosts that redirects may lead to, in addition to the base's."""
    private: bool = False
    """Whether hosts may have loopback or private addresses."""
    token_env: str | None = None
    """The environment variable that holds a bearer token."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent to the base's own host; never shown or saved."""
    timeout: float = 30.0
    """Seconds without a sign of life after which the server counts as unreachable."""
    ttl: float = 60.0
    """Seconds for which what was seen may be trusted."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.base)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise RametError(
                "invalid_config",
                "the base of an HTTP mount is an http or https address without a query",
                "give an address such as https://example.org/data/",
            )
        if parts.username or parts.password:
            raise RametError(
                "invalid_config",
                "the base of an HTTP mount carries a password",
                "put it into `headers` or name a variable in `token_env`",
            )

    def __repr__(self) -> str:
        shown = {**self._plain(), "headers": REDACTED if self.headers else None}
        return f"HTTPConfig({', '.join(f'{name}={value!r}' for name, value in shown.items() if value)})"

    def _plain(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def describe(self) -> Description:
        plain = {**self._plain(), "headers": dict.fromkeys(self.headers, REDACTED)}
        plain["files"], plain["allow"] = list(self.files), list(self.allow)
        return Description("http", plain, ("headers",) if self.headers else (), needs_override=True)


class HTTPResource(Unwritable):
    """`HTTPResource(HTTPConfig(base="https://example.org/data/"))`."""

    caps = Cap.RANGES

    def __init__(self, config: HTTPConfig) -> None:
        if not isinstance(config, HTTPConfig):
            raise wrong_type("the configuration of HTTPResource", config, "Pass a HTTPConfig.")
        self.config = config
        self._base = config.base if config.base.endswith("/") else config.base + "/"
        self._host = urlsplit(config.base).hostname or ""
        self._client = HTTPClient(
            (self._host, *config.allow),
            private=config.private, headers=config.headers, home=self._host, timeout=config.timeout,
        )  # fmt: skip
        self._table: dict[Path, Kind] | None = _kinds(config.files) if config.files else None

    def __repr__(self) -> str:
        return f"HTTPResource({self._base!r})"

    def describe(self) -> Description:
        return self.config.describe()

    def _request(
        self, method: str, url: str, *, path: Path, headers: Mapping[str, str] | None = None, also: Collection[int] = ()
    ) -> AbstractAsyncContextManager[httpx2.Response]:
        token = secret_from(self.config.token_env)
        if token is not None:
            self._client.headers["Authorization"] = f"Bearer {token}"
        return self._client.ask(method, url, path=path, headers=headers, also=also)

    def _url(self, path: Path) -> str:
        return self._base + quote_from_bytes(encode(path[1:]), safe=SAFE + "/")

    # ---------------------------------------------------------------------------------------------- looking

    async def stat(self, path: Path) -> Stat:
        if len(path) == 1:
            return self._directory()
        known = await self._listed_kind(path)
        if known is Kind.DIR:
            return self._directory()
        try:
            return await self._head(path, self._url(path))
        except FileNotFoundError:
            if known is not None or self.config.index != LINKS:
                raise
        return await self._head(path, self._url(path) + "/")

    async def _head(self, path: Path, url: str) -> Stat:
        async with self._request("HEAD", url, path=path, also=(405, 501)) as response:
            if response.status_code < 300:
                return self._stat_of(response)
        # A server that answers no HEAD tells the same with the first byte.
        async with self._request("GET", url, path=path, headers={"Range": "bytes=0-0"}, also=(416,)) as response:
            return self._stat_of(response)

    def _stat_of(self, response: httpx2.Response) -> Stat:
        if self._is_directory(response):
            return self._directory()
        return Stat(Kind.FILE, _size(response), _time(response), version_of(response), self.config.ttl)

    def _is_directory(self, response: httpx2.Response) -> bool:
        """Return whether the server redirected a directory to its name with a slash."""
        return self.config.index == LINKS and urlsplit(str(response.extensions["asked"])).path.endswith("/")

    def _directory(self) -> Stat:
        return Stat(Kind.DIR, ttl=self.config.ttl)

    async def _listed_kind(self, path: Path) -> Kind | None:
        """What the list says of a path; None without a list."""
        table = await self._listed()
        if table is None:
            return None
        found = table.get(path)
        if found is None:
            above = path.parent
            while len(above) > 1 and above not in table:
                above = above.parent
            raise fail(errno.ENOTDIR if table.get(above) is Kind.FILE else errno.ENOENT, path)
        return found

    async def _listed(self) -> dict[Path, Kind] | None:
        if self._table is None and self.config.index not in (LINKS, NONE):
            text = await self._whole(self._base + self.config.index, parse("/" + self.config.index))
            try:
                named = json.loads(text) if text.lstrip().startswith(b"[") else decode(text).splitlines()
                self._table = _kinds(tuple(str(name) for name in named if name))
            except ValueError:
                raise fail(errno.EIO, self.config.index, f"the index of {self._host} is not a list of paths") from None
        return self._table

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        table = await self._listed()
        if table is not None:
            if len(path) > 1 and await self._listed_kind(path) is Kind.FILE:
                raise fail(errno.ENOTDIR, path)
            for below, kind in table.items():
                if len(below) > 1 and below.parent == path:
                    yield below.name, Stat(kind, ttl=self.config.ttl)
            return
        if self.config.index == NONE:
            raise fail(errno.ENOTSUP, path, f"{self._host} gives no listing (see `index` of HTTPConfig)")
        url = self._url(path) + ("/" if len(path) > 1 else "")
        try:
            page = await self._whole(url, path)
        except FileNotFoundError:
            if len(path) > 1 and (await self.stat(path)).kind is Kind.FILE:
                raise fail(errno.ENOTDIR, path) from None
            raise
        for name, kind in links_in(page, url).items():
            yield name, Stat(kind, ttl=self.config.ttl)

    async def _whole(self, url: str, path: Path) -> bytes:
        parts: list[bytes] = []
        async with self._request("GET", url, path=path) as response:
            async for block in self._client.blocks(response, path):
                parts.append(block)
                if sum(map(len, parts)) > LARGEST_INDEX:
                    raise fail(errno.EFBIG, path, f"the listing is larger than {LARGEST_INDEX >> 20} MiB")
        return b"".join(parts)

    # ---------------------------------------------------------------------------------------------- reading

    def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        return self._read(path, None, start, stop)

    def read_version(self, path: Path, version: str, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        return self._read(path, version, start, stop)

    async def _read(self, path: Path, version: str | None, start: int, stop: int | None) -> AsyncIterator[bytes]:
        if len(path) == 1 or await self._listed_kind(path) is Kind.DIR:
            raise fail(errno.EISDIR, path)
        if stop is not None and stop <= start:
            return
        async with self._get(path, version, start, stop) as response:
            if self._is_directory(response):
                raise fail(errno.EISDIR, path)
            if response.status_code == 416:
                return  # begins beyond the end
            found = version_of(response)
            if version is not None and found != version:
                raise fail(errno.ESTALE, path)
            # A server without ranges sends everything; what was not asked for is passed over.
            at = start if response.status_code == 206 else 0
            if response.status_code == 206 and _first(response) != start:
                raise unavailable(path, f"{self._host} sent another range than it was asked for")
            async for block in self._client.blocks(response, path, found):
                begin, end = max(start - at, 0), len(block) if stop is None else min(len(block), stop - at)
                at += len(block)
                if begin < end:
                    yield block[begin:end]
                if stop is not None and at >= stop:
                    return

    def _get(
        self, path: Path, version: str | None, start: int, stop: int | None
    ) -> AbstractAsyncContextManager[httpx2.Response]:
        headers = {} if version is None else {"If-Match": f'"{version}"'}
        if start or stop is not None:
            headers["Range"] = f"bytes={start}-{'' if stop is None else stop - 1}"
        return self._request("GET", self._url(path), path=path, headers=headers, also=(416,))

    async def close(self) -> None:
        await self._client.close()


# ------------------------------------------------------------------------------------------- what an answer says


def version_of(response: httpx2.Response) -> str | None:
    """The strong ETag: a weak one promises a likeness, not the same bytes."""
    tag = response.headers.get("etag", "")
    return tag[1:-1] if len(tag) > 2 and tag[0] == tag[-1] == '"' else None


def _size(response: httpx2.Response) -> int | None:
    """The size of the whole content, when the answer tells it."""
    total = response.headers.get("content-range", "").rpartition("/")[2]
    if not total and "content-encoding" not in response.headers:
        total = response.headers.get("content-length", "")
    return int(total) if total.isascii() and total.isdigit() else None


def _first(response: httpx2.Response) -> int | None:
    """The offset at which a part begins."""
    begin = response.headers.get("content-range", "").removeprefix("bytes ").partition("-")[0]
    return int(begin) if begin.isascii() and begin.isdigit() else None


def _time(response: httpx2.Response) -> int | None:
    try:
        return round(parsedate_to_datetime(response.headers["last-modified"]).timestamp()) * 1_000_000_000
    except (KeyError, ValueError):
        return None


# ---------------------------------------------------------------------------------------------------- listings


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.targets += [value for name, value in attrs if name == "href" and value]


def links_in(page: bytes, url: str) -> dict[str, Kind]:
    """The entries right below `url` that its page links to; a directory's link ends in a slash."""
    anchors = _Anchors()
    anchors.feed(page.decode("utf-8", "replace"))
    here = urlsplit(url)
    found: dict[str, Kind] = {}
    for target in anchors.targets:
        try:
            there = urlsplit(urljoin(url, target))
        except ValueError:
            continue
        if (there.scheme, there.netloc) != (here.scheme, here.netloc) or not there.path.startswith(here.path):
            continue
        name, slash, rest = there.path[len(here.path) :].partition("/")
        plain = decode(unquote_to_bytes(name))
        if plain in ("", ".", "..") or rest or "/" in plain or "\0" in plain or (there.query and not slash):
            continue
        found[plain] = Kind.DIR if slash else found.get(plain, Kind.FILE)
    return found


def _kinds(files: tuple[str, ...]) -> dict[Path, Kind]:
    """The tree that a list of files makes."""
    table: dict[Path, Kind] = {ROOT: Kind.DIR}
    for name in files:
        path = parse("/" + name)
        table[path] = Kind.FILE
        above = path.parent
        while len(above) > 1:
            table[above] = Kind.DIR
            above = above.parent
    return table
