"""wget: download files, also a site's pages recursively."""

from __future__ import annotations

import asyncio
import posixpath
import time
from collections import deque
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Final
from urllib.parse import unquote

from ramet.commands.framework.command import Command, UsageError, flag, several, value
from ramet.commands.network.headers import FIXED, PERSONAL, attachment_name, basic, is_header, length_of
from ramet.commands.network.session import REACH, door_of
from ramet.core.errors import reason
from ramet.core.ops import make_dirs
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.streams import Writer
from ramet.network.door import OFF, SessionDoor
from ramet.network.exchange import Exchange, Waits
from ramet.network.failures import FailureKind, NetworkFailure
from ramet.network.targets import BadScheme, BadURL, Target, parse_url

VERSION_TEXT: Final = "1.21.3"
GENERIC, PARSE, FILE, NETWORK, TLS, AUTHENTICATION, PROTOCOL, SERVER = 1, 2, 3, 4, 5, 6, 7, 8
REDIRECTS: Final = frozenset((300, 301, 302, 303, 307, 308))
MOST_PAGE: Final = 32 << 20
"""Bytes of a page that is searched for links."""
LONGEST_PAUSE: Final = 10.0


def _seconds(text: str) -> float:
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    try:
        found = float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < 1e9:
        raise UsageError(f"invalid time period {text[:40]!r}", PARSE)
    return found


def _tries(text: str) -> int:
    if text == "inf":
        return 0
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise UsageError(f"invalid number {text[:40]!r}", PARSE)
    return int(text)


@dataclass(frozen=True, slots=True)
class WgetOptions:
    quiet: bool = flag("-q", "--quiet", help="print nothing, except refusals of the network policy")
    terse: bool = flag("--no-verbose", help="print a line for each file")
    output: str = value(
        "-O", "--output-document", metavar="FILE", default="", help="write everything to FILE; - is stdout"
    )
    prefix: str = value("-P", "--directory-prefix", metavar="DIR", default="", help="directory to save in")
    resume: bool = flag("-c", "--continue", help="go on where a file ends")
    no_clobber: bool = flag("--no-clobber", help="leave files that exist")
    headers: tuple[str, ...] = several("--header", metavar="HEADER", help="send a header")
    post_data: str = value("--post-data", metavar="DATA", default=None, help="POST this")
    post_file: str = value("--post-file", metavar="FILE", default=None, help="POST a file")
    method: str = value("--method", metavar="METHOD", default="", help="the method to send")
    body_data: str = value("--body-data", metavar="DATA", default=None, help="the body to send")
    body_file: str = value("--body-file", metavar="FILE", default=None, help="the file to send")
    timeout: float = value(
        "-T", "--timeout", metavar="SECONDS", default=900.0, convert=_seconds, help="without a byte (900)"
    )
    tries: int = value("-t", "--tries", metavar="NUM", default=20, convert=_tries, help="attempts (20); 0 has no end")
    wait: float = value("-w", "--wait", metavar="SECONDS", default=0.0, convert=_seconds, help="between downloads")
    agent: str = value(
        "-U", "--user-agent", metavar="NAME", default=f"Wget/{VERSION_TEXT}", help="the User-Agent header"
    )
    referer: str = value("--referer", metavar="URL", default="", help="the Referer header")
    user: str = value("--user", "--http-user", metavar="USER", default="", help="basic authentication")
    password: str = value("--password", "--http-password", metavar="WORD", default="", help="its password")
    insecure: bool = flag("--no-check-certificate", help="do not verify certificates")
    server_response: bool = flag("-S", "--server-response", help="print the headers of answers")
    spider: bool = flag("--spider", help="only look whether it is there")
    input_file: str = value("-i", "--input-file", metavar="FILE", default="", help="read URLs of FILE")
    max_redirect: int = value(
        "--max-redirect", metavar="NUM", default=20, convert=_tries, help="redirects to follow (20)"
    )
    content_disposition: bool = flag("--content-disposition", help="take the name of Content-Disposition")
    content_on_error: bool = flag("--content-on-error", help="save what comes with an error")
    recursive: bool = flag("-r", "--recursive", help="follow the links of pages, on the same host")
    level: int = value("-l", "--level", metavar="NUM", default=5, convert=_tries, help="depth of -r (5); 0 has no end")
    no_parent: bool = flag("--no-parent", help="with -r, stay below the first directory")
    no_directories: bool = flag("--no-directories", help="with -r, create no directories")
    no_host_directories: bool = flag("--no-host-directories", help="with -r, create no directory of the host")
    retry_connrefused: bool = flag("--retry-connrefused", help="retry refused connections too")


class WgetError(Exception):
    """A download that ended; `text` is printed."""

    def __init__(self, status: int, text: str, transient: bool = False, always: bool = False) -> None:
        super().__init__(text)
        self.status, self.text, self.transient, self.always = status, text, transient, always


@dataclass
class _Run:
    """What the downloads of one command share."""

    proc: Proc
    o: WgetOptions
    door: SessionDoor
    joined: Writer | None = None
    """Where -O writes everything."""
    content: bytes | None = None
    method: str = "GET"

    def say(self, text: str) -> None:
        if not self.o.quiet and not self.o.terse:
            self.proc.stderr.write(encode(text))

    def stamp(self) -> str:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(self.proc.now()))


async def _wget(proc: Proc, o: WgetOptions, operands: list[str]) -> int:
    door = door_of(proc)
    if door is None:
        proc.complain(OFF)
        return NETWORK
    urls = list(operands)
    if o.input_file:
        urls += [line for line in decode(await _read(proc, o.input_file)).split() if line]
    if not urls:
        raise UsageError("missing URL", GENERIC)
    run = _Run(proc, o, door)
    run.content = await _content(proc, o)
    posts = o.post_data is not None or o.post_file is not None
    run.method = o.method.upper() or ("POST" if posts else "HEAD" if o.spider else "GET")
    if o.output:
        try:
            run.joined = proc.stdout if o.output == "-" else await proc.create(o.output, append=o.resume)
        except OSError as error:
            proc.stderr.write(encode(f"{o.output}: {reason(error)}\n"))
            return FILE
    status = 0
    try:
        for at, url in enumerate(urls):
            if at and o.wait:
                await asyncio.sleep(o.wait)
            status = (await _site(run, url) if o.recursive else await _file(run, url)) or status
    finally:
        if run.joined is not None:
            await proc.close(run.joined)
    return status


async def _content(proc: Proc, o: WgetOptions) -> bytes | None:
    text = o.post_data if o.post_data is not None else o.body_data
    word = o.post_file if o.post_file is not None else o.body_file
    if text is not None:
        return encode(text)
    return None if word is None else await _read(proc, word)


async def _read(proc: Proc, word: str) -> bytes:
    reader = await proc.open(word)
    try:
        return await reader.read_all(proc.budget.limits.whole)
    finally:
        await proc.close(reader)


async def _file(run: _Run, url: str) -> int:
    try:
        await _download(run, _target(url), None)
    except WgetError as error:
        return _told(run, error)
    return 0


def _told(run: _Run, error: WgetError) -> int:
    if error.text and (error.always or not run.o.quiet):
        run.proc.stderr.write(encode(f"{error.text}\n"))
    return error.status


def _target(url: str) -> Target:
    try:
        return parse_url(url)
    except BadScheme as error:
        raise WgetError(GENERIC, f"{url}: Unsupported scheme ‘{error.scheme}’.") from None
    except BadURL as error:
        raise WgetError(GENERIC, f"{url}: Invalid URL: {error}.") from None


# ------------------------------------------------------------------------------------------------------- a file


async def _download(run: _Run, target: Target, name: str | None, *, page: bool = False) -> tuple[Target, bytes]:
    """Download one URL, with retries; returns where it was, and what a page has."""
    o, count = run.o, 0
    while True:
        count += 1
        again = f"(try:{count:2})  " if count > 1 else ""
        run.say(f"--{run.stamp()}--  {again}{target.url}\n")
        try:
            return await _attempt(run, target, name, page)
        except WgetError as error:
            if not error.transient or count == o.tries:
                raise
            run.say(f"{error.text}\nRetrying.\n\n")
            await asyncio.sleep(min(float(count), LONGEST_PAUSE))


async def _attempt(run: _Run, target: Target, name: str | None, page: bool) -> tuple[Target, bytes]:
    o, method, content = run.o, run.method, run.content
    first = target
    saved = name if name is not None else _name_of(target, o)
    if o.no_clobber and not run.joined and await _size(run.proc, saved) is not None:
        run.say(f"File ‘{saved}’ already there; not retrieving.\n\n")
        return target, b""
    start = (await _size(run.proc, saved) or 0) if o.resume and not run.joined and not o.spider else 0
    for _ in range(o.max_redirect + 1):
        caller = run.door.caller("wget")
        waits = Waits(o.timeout or None, o.timeout or None, not o.insecure)
        headers = _headers(run, target, first, content, start)
        try:
            async with run.door.door.open(caller, method, target, headers, content, waits=waits) as exchange:
                run.say(f"Connecting to {target.host}:{target.port}... connected.\n")
                run.say(f"HTTP request sent, awaiting response... {exchange.status} {exchange.reason}\n")
                if o.server_response:
                    lines = [f"{exchange.version} {exchange.status} {exchange.reason}"]
                    lines += [f"{key}: {text}" for key, text in exchange.headers]
                    run.proc.stderr.write(encode("".join(f"  {line}\n" for line in lines)))
                location = exchange.header("location") if exchange.status in REDIRECTS else None
                if location is None:
                    return target, await _take(run, exchange, target, saved, name, start, page)
        except NetworkFailure as failure:
            raise _failed(failure, target) from None
        run.say(f"Location: {location} [following]\n")
        try:
            target = target.join(location)
        except BadURL as error:
            raise WgetError(GENERIC, f"{location}: {error}.") from None
        if exchange.status not in (307, 308) and method == "POST":
            method, content = "GET", None
        run.say(f"--{run.stamp()}--  {target.url}\n")
    raise WgetError(SERVER, f"{o.max_redirect} redirections exceeded.")


def _headers(run: _Run, target: Target, first: Target, content: bytes | None, start: int) -> list[tuple[str, str]]:
    o, trusted = run.o, target.origin == first.origin
    found = [("User-Agent", o.agent), ("Accept", "*/*"), ("Accept-Encoding", "identity"), ("Connection", "Keep-Alive")]
    if start:
        found.insert(0, ("Range", f"bytes={start}-"))
    if o.referer:
        found.append(("Referer", o.referer))
    user = o.user or first.user
    if user and trusted:
        found.append(("Authorization", basic(user, o.password or first.password or "")))
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
        found = [row for row in found if row[0].lower() != lowered] + ([(key, text)] if text else [])
    return found


async def _take(
    run: _Run, exchange: Exchange, target: Target, saved: str, name: str | None, start: int, page: bool
) -> bytes:
    """Save an answer; returns the text of a page."""
    o = run.o
    if exchange.status == 416 and start:
        run.say("\n    The file is already fully retrieved; nothing to do.\n\n")
        return b""
    if exchange.status >= 400 or exchange.status < 200:
        text = f"{run.stamp()} ERROR {exchange.status}: {exchange.reason or 'Unknown'}."
        if o.spider and exchange.status == 404:
            text = "Remote file does not exist -- broken link!!!"
        if not o.content_on_error:
            raise WgetError(AUTHENTICATION if exchange.status == 401 else SERVER, text)
    total = length_of(exchange)
    kind = (exchange.header("content-type") or "").partition(";")[0]
    run.say(f"Length: {'unspecified' if total is None else total}{f' [{kind}]' if kind else ''}\n")
    if o.spider:
        run.say("Remote file exists.\n\n")
        return b""
    append = start > 0 and exchange.status == 206
    if o.content_disposition and name is None and (said := attachment_name(exchange)):
        saved = posixpath.join(o.prefix, said) if o.prefix else said
    shown = "STDOUT" if o.output == "-" else o.output or saved
    run.say(f"Saving to: ‘{shown}’\n\n")
    writer = run.joined or await _create(run, saved, append)
    keep = page and kind in ("text/html", "application/xhtml+xml")
    kept: list[bytes] = []
    size = 0
    try:
        async for block in exchange.blocks:
            size += len(block)
            writer.write(block)
            if writer.full:
                await writer.drain()
            if keep and size <= MOST_PAGE:
                kept.append(block)
            await run.proc.budget.yield_turn()
    finally:
        if writer is not run.joined:
            await run.proc.close(writer)
    run.say(f"{run.stamp()} - ‘{shown}’ saved [{size}{'' if total is None else f'/{total}'}]\n\n")
    if o.terse and not o.quiet:
        run.proc.stderr.write(encode(f'{run.stamp()} URL:{target.url} [{size}] -> "{shown}" [1]\n'))
    return b"".join(kept)


async def _create(run: _Run, name: str, append: bool) -> Writer:
    try:
        await make_dirs(run.proc.fs, run.proc.path(posixpath.dirname(name) or "."))
        return await run.proc.create(name, append=append)
    except OSError as error:
        raise WgetError(FILE, f"{name}: {reason(error)}\n\nCannot write to ‘{name}’ ({reason(error)}).") from None


async def _size(proc: Proc, name: str) -> int | None:
    try:
        return (await proc.stat(name, follow=True)).size
    except (FileNotFoundError, NotADirectoryError):
        return None


def _name_of(target: Target, o: WgetOptions) -> str:
    """The file of a URL: its last name, with its query, as wget has it."""
    name = unquote(target.path.rpartition("/")[2], errors="surrogateescape").replace("/", "%2F") or "index.html"
    name = "index.html" if name in (".", "..") else name
    if target.query is not None:
        name += "?" + target.query.replace("/", "%2F")
    return posixpath.join(o.prefix, name) if o.prefix else name


def _failed(failure: NetworkFailure, target: Target) -> WgetError:
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
    return WgetError(NETWORK, f"{place}: {failure.text}.", transient=True)


# ------------------------------------------------------------------------------------------------------- a site


class _Links(HTMLParser):
    """The addresses that a page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, text in attrs:
            if text and ((name == "href" and tag in ("a", "area", "link")) or (name == "src")):
                self.found.append(text)


async def _site(run: _Run, url: str) -> int:
    """Download a page and what it links to, breadth first, each once."""
    o, status = run.o, 0
    try:
        first = _target(url)
    except WgetError as error:
        return _told(run, error)
    top = first.path.rpartition("/")[0] + "/"
    waiting: deque[tuple[Target, int]] = deque([(first.bare(), 0)])
    seen = {first.bare()}
    while waiting:
        target, depth = waiting.popleft()
        try:
            at, text = await _download(run, target, _place(target, o), page=True)
        except WgetError as error:
            status = _told(run, error)
            continue
        if not text or (o.level and depth >= o.level):
            continue
        for link in _links(text):
            try:
                following = at.join(link.partition("#")[0])
            except BadURL:
                continue
            beyond = o.no_parent and not following.path.startswith(top)
            if following.origin != first.origin or beyond or following in seen:
                continue
            seen.add(following)
            waiting.append((following, depth + 1))
            if o.wait:
                await asyncio.sleep(o.wait)
        await run.proc.budget.yield_turn()
    return status


def _links(text: bytes) -> list[str]:
    parser = _Links()
    parser.feed(text.decode(errors="replace"))
    return parser.found


def _place(target: Target, o: WgetOptions) -> str:
    """Where a page of a site is saved: below a directory of its host."""
    name = _name_of(target, o)
    if o.no_directories:
        return name
    folders = [unquote(part, errors="surrogateescape").replace("/", "%2F") for part in target.path.split("/")[1:-1]]
    host = [] if o.no_host_directories else [target.authority]
    kept = [part for part in folders if part not in ("", ".", "..")]
    return posixpath.join(o.prefix, *host, *kept, posixpath.basename(name)) if o.prefix else "/".join(
        [*host, *kept, name]
    )  # fmt: skip


def _dashed(words: list[str]) -> list[str]:
    """`-nv`, `-nc`, `-np`, `-nd` and `-nH` are one option each."""
    long = {
        "-nv": "--no-verbose", "-nc": "--no-clobber", "-np": "--no-parent", "-nd": "--no-directories",
        "-nH": "--no-host-directories",
    }  # fmt: skip
    return [long.get(word, word) for word in words]


COMMANDS = [
    Command(
        "wget",
        _wget,
        WgetOptions,
        summary="Download files, where the network policy allows it.",
        usage="[OPTION]... [URL]...",
        details=REACH,
        examples=(
            ("wget -q -O - https://example.org/", "print a page"),
            ("wget -r -np https://example.org/docs/", "download a directory"),
        ),
        refused={
            "-k --convert-links": "links stay as they are",
            "-m --mirror": "use -r -l 0",
            "-b --background": "use &",
        },
        ignored=(
            "-v --verbose",
            "--show-progress",
            "--progress=",
            "--no-hsts",
            "-4 --inet4-only",
            "-6 --inet6-only",
            "--no-proxy",
            "-e= --execute=",
            "--no-cache",
            "--no-cookies",
            "--auth-no-challenge",
        ),
        rewrite=_dashed,
        bad_usage=PARSE,
        version_line=f"GNU Wget {VERSION_TEXT} (ramet)",
        version_letters="V",
        help_letters="h",
    ),
]
