"""`Transfer`: one URL of curl, with its redirects and retries."""

from __future__ import annotations

import asyncio
import errno
import posixpath
import time
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from ramet.commands.network.curl import verbose
from ramet.commands.network.curl.cookies import Jar
from ramet.commands.network.curl.data import Payload
from ramet.commands.network.curl.failures import error_of, problem_of
from ramet.commands.network.curl.options import VERSION_TEXT, CurlError, CurlOptions, Status, protocols
from ramet.commands.network.curl.write_out import Report
from ramet.commands.network.headers import FIXED, PERSONAL, attachment_name, basic, is_header, length_of
from ramet.core.errors import reason
from ramet.core.ops import make_dirs
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import Writer
from ramet.network.door import SessionDoor
from ramet.network.exchange import Exchange, Waits
from ramet.network.failures import NetworkFailure
from ramet.network.targets import BadScheme, BadURL, Target, parse_url

REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
PASSING: Final = frozenset((408, 429, 500, 502, 503, 504))
LONGEST_PAUSE: Final = 600.0
_AFTER_SENDING: Final = frozenset((Status.TIMEOUT, Status.EMPTY, Status.RECEIVE, Status.PARTIAL, Status.PROTOCOL))
"""What ends a request that was sent."""
TOO_LATE: Final = "The Retry-After: time would make this command line exceed the maximum allowed time for retries."


pause_for = asyncio.sleep
"""Waits between retries."""


def elapsed_since(began: float) -> float:
    return time.monotonic() - began


@dataclass
class Shared:
    """What all transfers of one command share."""

    door: SessionDoor
    jar: Jar | None
    payload: Payload | None
    """What is POSTed."""
    headers: list[str]
    authorities: str | None = None
    dump: Writer | None = None
    query: str = ""
    """The data of -G."""


class Transfer:
    def __init__(
        self, proc: Proc, o: CurlOptions, shared: Shared, url: str, output: str | None, remote_name: bool,
        payload: Payload | None, *, uploads: bool,
    ) -> None:  # fmt: skip
        self._proc, self._o, self._shared = proc, o, shared
        self._url, self._output, self._remote_name = url, output, remote_name
        self._payload, self._uploads = payload, uploads
        """What is sent, and whether by PUT."""
        self._place: Target | None = None
        """Where the last request went."""
        self.report = Report(url, url_effective=url)
        self._started = 0.0
        self._length: int | None = None
        self._unshown: list[str] | None = None
        """The head of a request that has no answer yet."""
        self._writer: Writer | None = None
        self._wrote = 0

    async def run(self) -> Report:
        """Transfer with retries; the report has the exit status and the error."""
        o, began = self._o, time.monotonic()
        delay = o.retry_delay or 1.0
        for left in range(o.retry, -1, -1):
            error = await self._attempt()
            if error is None:
                break
            if error.status is not Status.OK and (error.always or not o.silent or o.show_error):
                self._proc.stderr.write(encode(f"curl: ({int(error.status)}) {error.text}\n"))
            spent, asked = elapsed_since(began), self._retry_after()
            if not left or not self._passes(error) or (o.retry_max_time and spent >= o.retry_max_time):
                break
            if o.retry_max_time and asked and spent + asked > o.retry_max_time:
                if not o.silent:
                    self._proc.stderr.write(encode(f"Warning: {TOO_LATE}\n"))
                break
            wait = asked or delay
            if not o.silent:
                text = f"Warning: Problem{problem_of(error)}. Will retry in {wait:g} seconds. {left} retries left.\n"
                self._proc.stderr.write(encode(text))
            await pause_for(wait)
            delay = delay if o.retry_delay else min(delay * 2, LONGEST_PAUSE)
            self.report = Report(self._url, self.report.number, self._url)
        if error is not None and error.status is not Status.OK:
            self.report.exitcode, self.report.error = int(error.status), error.text
            if o.remove_on_error and self._writer is not None and self.report.filename:
                await self._proc.fs.remove(self._proc.path(self.report.filename))
        return self.report

    def _passes(self, error: CurlError) -> bool:
        o = self._o
        refused = error.status is Status.CONNECT and o.retry_connrefused
        return not error.always and (error.transient or refused or o.retry_all_errors)

    def _retry_after(self) -> float:
        said = next((text for name, text in self.report.headers if name.lower() == "retry-after"), "")
        return min(float(said), LONGEST_PAUSE) if said.isascii() and said.isdecimal() else 0.0

    async def _attempt(self) -> CurlError | None:
        """One try. A status that is worth a retry is an error of status OK, if it is the last one."""
        o, self._started = self._o, time.monotonic()
        self._wrote, self._writer, self._unshown = 0, None, None
        error: CurlError | None = None
        try:
            async with asyncio.timeout(o.max_time or None) as bound:
                await self._follow()
        except CurlError as found:
            error = found
        except NetworkFailure as failure:
            error = error_of(failure, self._place, self._started, self._missing())
        except TimeoutError:
            if not bound.expired():
                raise
            error = self._timed_out()
        finally:
            self.report.time_total = time.monotonic() - self._started
            if self._writer is not None and self._writer is not self._proc.stdout:
                await self._proc.close(self._writer)
        if error is not None:
            if self._unshown is not None and error.status in _AFTER_SENDING:
                self._tell(verbose.sent(self._unshown))
            if not error.always:
                self._tell(verbose.failed(error.text))
            return error
        if self.report.status in PASSING and o.retry:
            return CurlError(Status.OK, "", transient=True)
        return None

    def _missing(self) -> int | None:
        """Bytes of the body that did not come; None where the server did not say its length."""
        return None if self._length is None else self._length - self._wrote

    def _tell(self, *lines: bytes) -> None:
        """Show something with -v."""
        if self._o.verbose:
            self._proc.stderr.write(b"".join(lines))

    def _timed_out(self) -> CurlError:
        took = round((time.monotonic() - self._started) * 1000)
        size = f"{self._wrote} bytes" if self._length is None else f"{self._wrote} out of {self._length} bytes"
        return CurlError(Status.TIMEOUT, f"Operation timed out after {took} milliseconds with {size} received", True)

    # ---------------------------------------------------------------------------------------------- following

    async def _follow(self) -> None:
        o, report = self._o, self.report
        at = first = _parse(self._url, o.proto_default)
        self._place = at
        usable = protocols(o.proto)
        if at.scheme not in usable:
            raise CurlError(Status.PROTOCOL, f'Protocol "{at.scheme}" not supported or disabled in libcurl')
        if not o.remote_header_name:
            self._name(None)  # a URL without a name is an error before it is asked for
        method, payload = self._method(), self._payload
        posts = payload is not None and not self._uploads
        resume = 0 if self._uploads else await self._resume_at()
        user = o.user or ("" if at.user is None else f"{at.user}:{at.password or ''}")
        referer, auto = o.referer.removesuffix(";auto"), o.referer.endswith(";auto")
        for count in range(o.max_redirs + 1):
            trusted = o.location_trusted or at.origin == first.origin
            report.referer = referer or None
            caller = self._shared.door.caller("curl")
            inside = self._shared.door.door.stays_inside(caller, at)
            headers = self._headers(at, payload, user if trusted else "", trusted, inside, resume)
            body = payload.body() if payload is not None else None
            report.url_effective, report.method, report.scheme = at.url, method, at.scheme
            self._place = at
            head = [f"{method} {at.request_line} HTTP/1.1", *(f"{name}: {text}" for name, text in headers), ""]
            report.size_request += sum(len(encode(line)) + 2 for line in head)
            self._unshown = head
            waits = Waits(o.connect_timeout or None, None, not o.insecure, self._shared.authorities)
            async with self._shared.door.door.open(caller, method, at, headers, body, waits=waits) as exchange:
                self._tell(verbose.connected(at, exchange.address), verbose.sent(head), verbose.received(exchange))
                self._unshown = None
                following = await self._received(exchange, at, method, payload, resume)
            self._tell(verbose.left(at))
            if following is None:
                return
            self._tell(verbose.redirected(following))
            if following.scheme not in protocols(o.proto_redir) & usable:
                text = f'Protocol "{following.scheme}" not supported or disabled in libcurl'
                raise CurlError(Status.PROTOCOL, text)
            report.redirects = count + 1
            report.time_redirect = time.monotonic() - self._started
            status = report.status
            drops = (status == 301 and not o.post301) or (status == 302 and not o.post302)
            if (drops and posts) or (status == 303 and not o.post303):
                if not o.request and method != "HEAD":
                    method = "GET"
                payload, posts = None, False
            if auto:
                referer = at.url
            at = following
        raise CurlError(Status.REDIRECTS, f"Maximum ({o.max_redirs}) redirects followed")

    def _method(self) -> str:
        o = self._o
        if o.request:
            return o.request
        if o.head:
            return "HEAD"
        if self._payload is None:
            return "GET"
        return "PUT" if self._uploads else "POST"

    def _headers(
        self, at: Target, payload: Payload | None, user: str, trusted: bool, inside: bool, resume: int
    ) -> list[tuple[str, str]]:
        """The headers of a request, in the order of curl; `-H` replaces, removes and adds."""
        o = self._o
        found: list[tuple[str, str]] = [("Host", at.authority), *(() if payload is None else payload.first)]
        if user:
            name, _, word = user.partition(":")
            found.append(("Authorization", basic(name, word)))
        elif o.bearer and trusted:
            found.append(("Authorization", f"Bearer {o.bearer}"))
        if o.range:
            found.append(("Range", f"bytes={o.range}"))
        elif resume:
            found.append(("Range", f"bytes={resume}-"))
        if o.agent != "":
            found.append(("User-Agent", o.agent or f"curl/{VERSION_TEXT}"))
        own = [] if not o.json else ["Content-Type: application/json", "Accept: application/json"]
        if not o.json:
            found.append(("Accept", "*/*"))
        if o.compressed:
            found.append(("Accept-Encoding", "deflate, gzip"))
        if self.report.referer:
            found.append(("Referer", self.report.referer))
        cookie = None if self._shared.jar is None else self._shared.jar.header(at, first_host=trusted)
        if cookie:
            found.append(("Cookie", cookie))
        last: list[tuple[str, str]] = []
        if payload is not None:
            size = payload.size
            last = [("Transfer-Encoding", "chunked") if size is None else ("Content-Length", str(size))]
            last += payload.headers
        given = {line.partition(":")[0].strip().lower() for line in self._shared.headers}
        own = [line for line in own if line.partition(":")[0].lower() not in given]
        return self._own_headers([*own, *self._shared.headers], found, last, trusted, inside)

    def _own_headers(
        self,
        lines: list[str],
        found: list[tuple[str, str]],
        last: list[tuple[str, str]],
        trusted: bool,
        inside: bool,
    ) -> list[tuple[str, str]]:
        """Let `-H` replace, remove and add; what describes the body comes last, and Host is for programs of the box."""
        added: list[tuple[str, str]] = []
        for line in lines:
            name, mark, text = line.partition(":")
            if not mark and line.endswith(";"):
                name, text, mark = line[:-1], "", ";"
            name, text = name.strip(), text.strip()
            if not mark or not is_header(name, text):
                continue
            if name.lower() == "host" and inside and text:
                found[0] = ("Host", text)
            if name.lower() in FIXED:
                continue
            if name.lower() in PERSONAL and not trusted:
                continue
            found = [row for row in found if row[0].lower() != name.lower()]
            last = [row for row in last if row[0].lower() != name.lower()]
            if text or mark == ";":
                added.append((name, text))
        return [*found, *added, *last]

    # ---------------------------------------------------------------------------------------------- receiving

    async def _received(
        self, exchange: Exchange, at: Target, method: str, payload: Payload | None, resume: int
    ) -> Target | None:
        """Take an answer; returns where it redirects to, if that is followed."""
        o, report = self._o, self.report
        self._fill_in(exchange, at, payload)
        if self._shared.jar is not None:
            self._shared.jar.take(at, exchange.headers)
        head = verbose.head_of(exchange)
        report.size_header += len(head)
        if self._shared.dump is not None:
            self._shared.dump.write(head)
        location = exchange.header("location") if exchange.status in REDIRECTS else None
        following, report.redirect_url = None, ""
        if location is not None:
            try:
                following = at.join(location)
                report.redirect_url = following.url
            except BadURL as error:
                report.redirect_url = location
                if o.location or o.location_trusted:
                    scheme = isinstance(error, BadScheme)
                    why = "Unsupported URL scheme" if scheme else "Malformed input to a URL function"
                    text = f"The redirect target URL could not be parsed: {why}"
                    raise CurlError(Status.PROTOCOL if scheme else Status.URL, text) from None
        failed = exchange.status >= 400 and (o.fail or o.fail_with_body)
        if failed and not o.fail_with_body:
            if o.include or o.head:
                await self._open_output(exchange, append=False)
                await self._write(head)
            raise self._http_error(exchange.status)
        follows = following is not None and (o.location or o.location_trusted)
        self._length = length_of(exchange) if method != "HEAD" else 0
        if follows:
            if o.include or o.head:
                await self._write(head)
            return following
        if resume and (exchange.status == 416 or (exchange.status == 200 and self._length == resume)):
            return None  # all of it is there
        if resume and exchange.status == 200 and method == "GET":
            text = "HTTP server doesn't seem to support byte ranges. Cannot resume."
            raise CurlError(Status.RANGE, text)
        if o.max_filesize and (self._length or 0) > o.max_filesize:
            raise CurlError(Status.SIZE, "Maximum file size exceeded")
        await self._open_output(exchange, append=bool(resume) and exchange.status == 206)
        if o.include or o.head:
            await self._write(head)
        if not o.head:
            await self._write_body(exchange)
        if failed:
            raise self._http_error(exchange.status)
        return None

    async def _write_body(self, exchange: Exchange) -> None:
        o, report = self._o, self.report
        async for block in self._body(exchange):
            report.size_download += len(block)
            if o.max_filesize and report.size_download > o.max_filesize:
                raise CurlError(Status.SIZE, "Maximum file size exceeded")
            await self._write(block)

    def _fill_in(self, exchange: Exchange, at: Target, payload: Payload | None) -> None:
        report, marks = self.report, exchange.marks
        began = time.monotonic() - self._started - marks.began
        report.status, report.headers = exchange.status, exchange.headers
        report.version = exchange.version.removeprefix("HTTP/").removesuffix(".0") if "2" in exchange.version else (
            exchange.version.removeprefix("HTTP/")
        )  # fmt: skip
        report.content_type = exchange.header("content-type")
        report.remote_ip, report.remote_port = exchange.address, at.port
        report.connects += 1 if marks.connected else 0
        report.size_upload = payload.size or 0 if payload is not None else 0
        report.time_connect = report.time_namelookup = began + marks.connected
        report.time_appconnect = began + marks.secured if marks.secured else 0.0
        report.time_pretransfer = report.time_appconnect or report.time_connect
        report.time_starttransfer = began + marks.began

    def _http_error(self, status: int) -> CurlError:
        text = f"The requested URL returned error: {status}"
        return CurlError(Status.HTTP, text, transient=status in PASSING)

    async def _body(self, exchange: Exchange) -> AsyncIterator[bytes]:
        packed = (exchange.header("content-encoding") or "identity").lower()
        if not self._o.compressed or packed in ("identity", ""):
            async for block in exchange.blocks:
                yield block
            return
        if packed not in ("gzip", "x-gzip", "deflate"):
            raise CurlError(
                Status.ENCODING,
                "Unrecognized content encoding type. libcurl understands deflate, gzip content encodings.",
            )
        inflater = zlib.decompressobj(47)
        most = self._shared.door.door.limits.body_bytes
        size = 0
        try:
            async for block in exchange.blocks:
                while block:
                    piece = inflater.decompress(block, 1 << 20)
                    block = inflater.unconsumed_tail
                    size += len(piece)
                    if size > most:
                        raise CurlError(
                            Status.SIZE, f"the network policy allows {most} bytes for one body", always=True
                        )
                    if piece:
                        yield piece
        except zlib.error as error:
            why = str(error).rpartition(": ")[2]
            raise CurlError(Status.ENCODING, f"Error while processing content unencoding: {why}") from None

    # ---------------------------------------------------------------------------------------------- writing

    async def _resume_at(self) -> int:
        o = self._o
        if o.continue_at is not None:
            return max(0, o.continue_at)
        name = self._name(None)
        if name is None:
            return 0
        try:
            return (await self._proc.stat(name, follow=True)).size or 0
        except FileNotFoundError:
            return 0

    def _name(self, exchange: Exchange | None) -> str | None:
        """The file to write; None for stdout."""
        o = self._o
        name = self._output
        if name is None and self._remote_name:
            said = attachment_name(exchange) if exchange is not None and o.remote_header_name else ""
            path = _parse(self._url).path if not said else ""
            name = said or unquote(path.rpartition("/")[2], errors="surrogateescape").replace("/", "_")
            if not name or name in (".", ".."):
                raise CurlError(Status.WRITE, "Failed writing received data to disk/application")
        if name is None or name == "-":
            return None
        return posixpath.join(o.output_dir, name) if o.output_dir else name

    async def _open_output(self, exchange: Exchange, *, append: bool) -> None:
        name = self._name(exchange)
        if name is None:
            self._writer = self._proc.stdout
            return
        self.report.filename = name
        try:
            if self._o.create_dirs:
                await make_dirs(self._proc.fs, self._proc.path(posixpath.dirname(name) or "."))
            self._writer = await self._proc.create(name, append=append)
        except OSError as error:
            if not self._o.silent:
                self._proc.stderr.write(encode(f"Warning: Failed to open the file {name}: {reason(error)}\n"))
            raise CurlError(Status.WRITE, "Failure writing output to destination") from None

    async def _write(self, data: bytes) -> None:
        writer = self._writer or self._proc.stdout
        try:
            writer.write(data)
            if writer.full:
                await writer.drain()
        except OSError as error:
            if error.errno == errno.EPIPE and writer is self._proc.stdout:
                raise
            raise CurlError(Status.WRITE, "Failure writing output to destination") from None
        self._wrote += len(data)
        await self._proc.budget.yield_turn()


def _parse(url: str, scheme: str = "http") -> Target:
    try:
        return parse_url(url, scheme=scheme)
    except BadURL as error:
        raise _bad(error) from None


def _bad(error: BadURL) -> CurlError:
    if isinstance(error, BadScheme):
        return CurlError(Status.PROTOCOL, f'Protocol "{error.scheme}" not supported or disabled in libcurl')
    return CurlError(Status.URL, "URL using bad/illegal format or missing URL")
