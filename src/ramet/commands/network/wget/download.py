"""`Download`: one URL of wget, with its redirects and retries, each of which goes on where the one before it ended."""

from __future__ import annotations

import asyncio
import posixpath
import time
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from ramet.commands.network.headers import FIXED, PERSONAL, attachment_name, basic, is_header, length_of
from ramet.commands.network.wget.options import (
    AUTHENTICATION,
    FILE,
    GENERIC,
    NETWORK,
    PARSE,
    PROTOCOL,
    SERVER,
    TLS,
    WgetError,
    WgetOptions,
)
from ramet.core.errors import reason
from ramet.core.ops import make_dirs
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import Writer
from ramet.network.door import SessionDoor
from ramet.network.exchange import Exchange, Waits
from ramet.network.failures import FailureKind, NetworkFailure
from ramet.network.targets import BadScheme, BadURL, Target, parse_url

REDIRECTS: Final = frozenset((300, 301, 302, 303, 307, 308))
MOST_PAGE: Final = 32 << 20
"""Bytes of a page that is searched for links."""
LONGEST_PAUSE: Final = 10.0
_WHILE_WAITING: Final = (FailureKind.EMPTY, FailureKind.RESET, FailureKind.TIMEOUT)
"""What ends a request that was sent, before there is an answer."""
pause_for = asyncio.sleep
"""Waits between retries."""


@dataclass
class Run:
    """What the downloads of one command share."""

    proc: Proc
    o: WgetOptions
    door: SessionDoor
    content: bytes | None
    method: str
    joined: Writer | None = None
    """Where -O writes everything."""

    def say(self, text: str) -> None:
        if not self.o.quiet and not self.o.terse:
            self.proc.stderr.write(encode(text))

    def stamp(self) -> str:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(self.proc.now()))


class Download:
    """One URL. `name` is the file to write; by default the last name of the URL."""

    def __init__(
        self, run: Run, target: Target, name: str | None = None, *, page: bool = False, referer: str = ""
    ) -> None:
        self._run, self._first, self._page = run, target, page
        self._referer = run.o.referer or referer
        self._name, self._named = name or name_of(target, run.o), name is not None
        self._have = 0
        """Bytes of it that its file has."""
        self._signs = run.o.unasked
        """Whether user and password are sent: the server has asked for them."""

    async def carry_out(self) -> tuple[Target, bytes]:
        """Download, with retries; returns where it was, and what a page has."""
        run, o, count = self._run, self._run.o, 0
        if not run.joined:
            size = await _size(run.proc, self._name)
            if o.no_clobber and size is not None:
                run.say(f"File ‘{self._name}’ already there; not retrieving.\n\n")
                return self._first, b""
            if size is not None and not o.resume and not self._page:
                self._name = await _free_name(run.proc, self._name)
        if o.resume and not o.spider and o.output != "-":
            self._have = await _size(run.proc, o.output or self._name) or 0
        while True:
            count += 1
            again = f"(try:{count:2})  " if count > 1 else ""
            run.say(f"--{run.stamp()}--  {again}{self._first.url}\n")
            try:
                return await self._attempt()
            except WgetError as error:
                if not error.transient:
                    raise
                if count == o.tries:
                    raise WgetError(error.status, f"{error.text}Giving up.\n") from None
                run.say(f"{error.text}Retrying.\n\n")
                await pause_for(min(float(count), LONGEST_PAUSE))

    async def _attempt(self) -> tuple[Target, bytes]:
        run, o, target = self._run, self._run.o, self._first
        method, content, hops = run.method, run.content, 0
        while hops <= o.max_redirect:
            caller = run.door.caller("wget")
            waits = Waits(o.timeout or None, o.timeout or None, not o.insecure)
            headers, answered = self._headers(target, content), False
            try:
                async with run.door.door.open(caller, method, target, headers, content, waits=waits) as exchange:
                    answered = True
                    self._show(exchange, target)
                    if self._asks(exchange, target):
                        self._signs = True
                        continue
                    location = exchange.header("location") if exchange.status in REDIRECTS else None
                    if location is None:
                        return target, await self._take(exchange, target)
            except NetworkFailure as failure:
                if not answered and failure.kind in _WHILE_WAITING:
                    run.say(_sent_to(target))
                raise self._failed(failure, target) from None
            run.say(f"Location: {location} [following]\n")
            try:
                target = target.join(location)
            except BadURL as error:
                raise WgetError(GENERIC, f"{location}: {error}.") from None
            if exchange.status not in (307, 308) and method == "POST":
                method, content = "GET", None
            hops += 1
            if hops <= o.max_redirect:
                run.say(f"--{run.stamp()}--  {target.url}\n")
        raise WgetError(SERVER, f"{o.max_redirect} redirections exceeded.")

    def _show(self, exchange: Exchange, target: Target) -> None:
        run = self._run
        run.say(_sent_to(target))
        run.say("\n" if run.o.server_response else f"{exchange.status} {exchange.reason}\n")
        if run.o.server_response:
            lines = [f"{exchange.version} {exchange.status} {exchange.reason}"]
            lines += [f"{key}: {text}" for key, text in exchange.headers]
            run.proc.stderr.write(encode("".join(f"  {line}\n" for line in lines)))

    def _user(self, target: Target) -> str | None:
        """The user for a request; None where it is for another host than the first."""
        return (self._run.o.user or self._first.user) if target.origin == self._first.origin else None

    def _asks(self, exchange: Exchange, target: Target) -> bool:
        """Whether a server asks for the user and the password, which it was not sent yet."""
        said = (exchange.header("www-authenticate") or "").lower()
        return exchange.status == 401 and not self._signs and bool(self._user(target)) and said.startswith("basic")

    def _headers(self, target: Target, content: bytes | None) -> list[tuple[str, str]]:
        o, trusted = self._run.o, target.origin == self._first.origin
        found = [
            ("User-Agent", o.agent), ("Accept", "*/*"), ("Accept-Encoding", "identity"), ("Connection", "Keep-Alive"),
        ]  # fmt: skip
        if self._have:
            found.insert(0, ("Range", f"bytes={self._have}-"))
        if self._referer:
            found.append(("Referer", self._referer))
        user = self._user(target)
        if user and self._signs:
            found.append(("Authorization", basic(user, o.password or self._first.password or "")))
        if content is not None:
            found += [("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", str(len(content)))]
        for line in o.headers:
            key, mark, text = line.partition(":")
            key, text = key.strip(), text.strip()
            if not mark or not is_header(key, text):
                raise WgetError(PARSE, f"wget: --header: Invalid header ‘{line[:60]}’.")
            lowered = key.lower()
            if lowered in FIXED or (not trusted and lowered in PERSONAL):
                continue
            found = [*(row for row in found if row[0].lower() != lowered), (key, text)]
        return found

    async def _take(self, exchange: Exchange, target: Target) -> bytes:
        """Save an answer; returns the text of a page."""
        run, o = self._run, self._run.o
        if exchange.status == 416 and self._have:
            run.say("\n    The file is already fully retrieved; nothing to do.\n\n")
            return b""
        refused: WgetError | None = None
        if exchange.status >= 400 or exchange.status < 200:
            text = f"{run.stamp()} ERROR {exchange.status}: {exchange.reason or 'Unknown'}."
            if o.spider and exchange.status == 404:
                text = "Remote file does not exist -- broken link!!!"
            text = f"{target.url}:\n{text}" if o.terse else f"{text}\n"
            refused = WgetError(AUTHENTICATION if exchange.status == 401 else SERVER, text)
            if not o.content_on_error:
                raise refused
        before = self._have if exchange.status == 206 else 0
        length = length_of(exchange)
        kind = (exchange.header("content-type") or "").partition(";")[0]
        shown = "unspecified" if length is None else _bytes(before + length)
        left = f", {_bytes(length)} remaining" if before and length is not None else ""
        run.say(f"Length: {shown}{left}{f' [{kind}]' if kind else ''}\n")
        if o.spider:
            run.say("Remote file exists.\n\n")
            if o.terse and not o.quiet:
                line = f"{run.stamp()} URL: {target.url} {exchange.status} {exchange.reason}\n"
                run.proc.stderr.write(encode(line))
            return b""
        if o.content_disposition and not self._named and not self._have and (said := attachment_name(exchange)):
            self._name = posixpath.join(o.prefix, said) if o.prefix else said
        shown = "STDOUT" if o.output == "-" else o.output or self._name
        run.say(f"Saving to: ‘{shown}’\n\n")
        keep = self._page and kind in ("text/html", "application/xhtml+xml")
        size, kept = await self._write(exchange, keep)
        parts = f"[{before + size}{'' if length is None else f'/{before + length}'}]"
        run.say(f"{run.stamp()} - {'written to stdout' if o.output == '-' else f'‘{shown}’ saved'} {parts}\n\n")
        if o.terse and not o.quiet:
            named = "-" if o.output == "-" else shown
            run.proc.stderr.write(encode(f'{run.stamp()} URL:{target.url} {parts} -> "{named}" [1]\n'))
        if refused is not None:
            raise refused
        return kept

    def _failed(self, failure: NetworkFailure, target: Target) -> WgetError:
        """The message and the status of wget; one that is transient goes on with `Retrying.` or `Giving up.`"""
        kind, place = failure.kind, f"{target.host}:{target.port}"
        if kind in (FailureKind.REFUSED, FailureKind.OFF, FailureKind.LIMIT):
            return WgetError(NETWORK, f"wget: {failure.text}", always=True)
        if kind is FailureKind.RESOLVE:
            return WgetError(NETWORK, f"wget: unable to resolve host address ‘{target.host}’")
        if kind is FailureKind.CONNECT:
            return WgetError(NETWORK, f"Connecting to {place}... failed: Connection refused.")
        if kind is FailureKind.CERTIFICATE:
            text = f"ERROR: cannot verify {target.host}'s certificate: {failure.text}.\n"
            return WgetError(TLS, f"{text}To connect to {target.host} insecurely, use `--no-check-certificate'.")
        if kind is FailureKind.TLS:
            return WgetError(NETWORK, "Unable to establish SSL connection.")
        if kind is FailureKind.PROTOCOL:
            return WgetError(PROTOCOL, f"{place}: {failure.text}.")
        if kind is FailureKind.PARTIAL:
            text = f"{self._run.stamp()} - Connection closed at byte {self._have}. "
        else:
            text = "No data received.\n" if kind is FailureKind.EMPTY else f"Read error ({failure.text}) in headers.\n"
        return WgetError(NETWORK, text, transient=True)

    async def _write(self, exchange: Exchange, keep: bool) -> tuple[int, bytes]:
        """Write what the file does not have yet; returns the size of the answer, and what it says if it is kept."""
        run, size = self._run, 0
        known = 0 if exchange.status == 206 else self._have
        """Bytes at the beginning of the answer that the file has: the server sends all again."""
        kept: list[bytes] = []
        writer = run.joined or await self._create(append=self._have > 0)
        try:
            async for block in exchange.blocks:
                size += len(block)
                if keep and size <= MOST_PAGE:
                    kept.append(block)
                block, known = block[known:], max(0, known - len(block))
                self._have += len(block)
                writer.write(block)
                if writer.full:
                    await writer.drain()
                await run.proc.budget.yield_turn()
        finally:
            if writer is not run.joined:
                await run.proc.close(writer)
        return size, b"".join(kept)

    async def _create(self, *, append: bool) -> Writer:
        proc, name = self._run.proc, self._name
        try:
            await make_dirs(proc.fs, proc.path(posixpath.dirname(name) or "."))
            return await proc.create(name, append=append)
        except OSError as error:
            why = f"{name}: {reason(error)}\n\nCannot write to ‘{name}’ ({reason(error)})."
            raise WgetError(FILE, why) from None


def _sent_to(target: Target) -> str:
    return f"Connecting to {target.host}:{target.port}... connected.\nHTTP request sent, awaiting response... "


def _bytes(size: int) -> str:
    """A size as wget shows it: `10240 (10K)`."""
    if size < 1024:
        return str(size)
    power = min((size.bit_length() - 1) // 10, 4)
    value = size / 1024**power
    return f"{size} ({value:.{1 if value < 10 else 0}f}{' KMGT'[power]})"


def parsed(url: str) -> Target:
    try:
        return parse_url(url.replace(" ", "%20"))
    except BadScheme as error:
        raise WgetError(GENERIC, f"{url}: Unsupported scheme ‘{error.scheme}’.") from None
    except BadURL as error:
        raise WgetError(GENERIC, f"{url}: Invalid URL: {error}.") from None


def complain(run: Run, error: WgetError) -> int:
    if error.text and (error.always or not run.o.quiet):
        run.proc.stderr.write(encode(f"{error.text}\n"))
    return error.status


async def _size(proc: Proc, name: str) -> int | None:
    try:
        return (await proc.stat(name, follow=True)).size
    except (FileNotFoundError, NotADirectoryError):
        return None


async def _free_name(proc: Proc, name: str) -> str:
    """`NAME.1`, or the next number whose file does not exist."""
    number = 1
    while await _size(proc, f"{name}.{number}") is not None:
        number += 1
    return f"{name}.{number}"


def name_of(target: Target, o: WgetOptions) -> str:
    """The file of a URL: its last name, with its query, as wget has it."""
    name = unquote(target.path.rpartition("/")[2], errors="surrogateescape").replace("/", "%2F") or "index.html"
    name = "index.html" if name in (".", "..") else name
    if target.query is not None:
        name += "?" + target.query.replace("/", "%2F")
    return posixpath.join(o.prefix, name) if o.prefix else name
