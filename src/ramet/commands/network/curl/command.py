"""curl: read the command line, transfer each URL, report."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote_from_bytes

from ramet.commands.framework.command import Command, UsageError
from ramet.commands.network.curl.cookies import Jar
from ramet.commands.network.curl.data import Payload, header_lines, posted, read_file, upload
from ramet.commands.network.curl.forms import form
from ramet.commands.network.curl.globs import expand, named
from ramet.commands.network.curl.options import FORMS, VERSION_TEXT, CurlError, CurlOptions, Status
from ramet.commands.network.curl.transfer import Shared, Transfer
from ramet.commands.network.curl.write_out import Report, written
from ramet.commands.network.session import REACH, door_of
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.streams import Writer
from ramet.network.door import OFF, SessionDoor

URLENCODED: Final = "application/x-www-form-urlencoded"


async def _curl(proc: Proc, o: CurlOptions, operands: list[str]) -> int:
    door = door_of(proc)
    if door is None:
        proc.complain(OFF)
        return int(Status.RESOLVE)
    if not operands and not o.urls:
        raise UsageError("no URL specified!", 2)
    if o.fail and o.fail_with_body:
        later = next(name for name, _ in reversed(o.order) if name in ("fail", "fail_with_body"))
        raise UsageError(f"option {'-f' if later == 'fail' else '--fail-with-body'}: is badly used here", 2)
    try:
        shared = await _shared(proc, o, door)
        transfers = await _transfers(proc, o, shared, operands)
    except CurlError as error:
        if error.always or not o.silent or o.show_error:
            proc.stderr.write(encode(f"curl: ({int(error.status)}) {error.text}\n"))
        return int(error.status)
    form_text = await _write_out_form(proc, o)
    status = await _run(proc, o, transfers, form_text)
    if shared.dump is not None:
        await proc.close(shared.dump)
    if o.cookie_jar and shared.jar is not None:
        await _save(proc, o.cookie_jar, shared.jar, quiet=o.silent)
    return status


async def _run(proc: Proc, o: CurlOptions, transfers: list[Transfer], form_text: str) -> int:
    status = 0

    async def one(transfer: Transfer) -> Report:
        report = await transfer.run()
        if form_text:
            out, err = written(form_text, report)
            proc.stderr.write(err)
            await proc.emit(out)
        return report

    if o.parallel and len(transfers) > 1:
        line = asyncio.Semaphore(max(1, min(o.parallel_max, 300)))

        async def within(transfer: Transfer) -> Report:
            async with line:
                return await one(transfer)

        tasks = [asyncio.ensure_future(within(transfer)) for transfer in transfers]
        try:
            reports = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return next((report.exitcode for report in reports if report.exitcode), 0)
    for transfer in transfers:
        report = await one(transfer)
        if report.exitcode:
            status = report.exitcode
            if o.fail_early:
                break
        else:
            status = 0
    return status


async def _transfers(proc: Proc, o: CurlOptions, shared: Shared, operands: list[str]) -> list[Transfer]:
    """One transfer for each URL; the nth `-o` or `-O`, and the nth `-T`, belong to the nth URL."""
    outputs: list[str | None] = []
    urls: list[str] = []
    for name, text in o.order or [("", word) for word in operands]:  # without options there is no order
        if name == "outputs":
            outputs.append(str(text))
        elif name == "remote_name":
            outputs.append(None)
        elif name in ("", "urls"):
            urls.append(str(text))
    made: list[Transfer] = []
    for at, url in enumerate(urls):
        output = outputs[at] if at < len(outputs) else None
        remote = o.remote_name_all if at >= len(outputs) else output is None
        for sent in _globbed(o, o.upload[at]) if at < len(o.upload) else [(None, ())]:
            payload = shared.payload if sent[0] is None else await upload(proc, sent[0], max(0, o.continue_at or 0))
            for whole, chosen in _globbed(o, url):
                asked = _with_query(whole, shared) if o.get else whole
                if sent[0] is not None:
                    asked = _upload_name(sent[0], asked)
                target = named(output, chosen) if output is not None else None
                transfer = Transfer(proc, o, shared, asked, target, remote, payload, uploads=sent[0] is not None)
                transfer.report.number = len(made)
                made.append(transfer)
    return made


def _globbed(o: CurlOptions, text: str) -> Iterable[tuple[str, tuple[str, ...]]]:
    return [(text, ())] if o.globoff else expand(text)


def _with_query(url: str, shared: Shared) -> str:
    data = shared.query
    if not data:
        return url
    head, mark, fragment = url.partition("#")
    return head + ("&" if "?" in head else "?") + data + mark + fragment


def _upload_name(word: str, url: str) -> str:
    if url.endswith("/") and word not in ("-", "."):
        return url + quote_from_bytes(encode(word.rpartition("/")[2]))
    return url


async def _shared(proc: Proc, o: CurlOptions, door: SessionDoor) -> Shared:
    headers = await header_lines(proc, o.headers, o.silent)
    payload, query = await _payload(proc, o, headers)
    shared = Shared(door, await _jar(proc, o), payload, headers, query=query)
    if o.cacert:
        try:
            shared.authorities = decode(b"".join([block async for block in read_file(proc, o.cacert)]))
        except OSError:
            raise CurlError(Status.AUTHORITIES, f"error setting certificate file: {o.cacert}") from None
    if o.dump_header:
        shared.dump = proc.stdout if o.dump_header == "-" else await _create(proc, o.dump_header)
    return shared


async def _create(proc: Proc, word: str) -> Writer:
    try:
        return await proc.create(word)
    except OSError as error:
        proc.stderr.write(encode(f"Warning: Failed to open {word}: {reason(error)}\n"))
        raise CurlError(Status.WRITE, "Failure writing output to destination") from None


async def _payload(proc: Proc, o: CurlOptions, headers: list[str]) -> tuple[Payload | None, str]:
    """What is POSTed, and what goes into the query instead (-G)."""
    data = await posted(proc, o)
    has_form = any(name in FORMS for name, _ in o.order)
    ways = sum((data is not None and not o.get, has_form, bool(o.upload), o.head))
    if ways > 1:
        if not o.silent:
            proc.stderr.write(b"Warning: You can only select one HTTP request method!\n")
        raise UsageError("", 2, hint=False)
    if has_form:
        return await form(proc, o), ""
    if data is None or o.get:
        return None, "" if data is None else decode(data)
    own = {line.partition(":")[0].strip().lower() for line in headers}
    kind = [] if "content-type" in own or o.json else [("Content-Type", URLENCODED)]
    return Payload(len(data), content=data, headers=kind), ""


async def _jar(proc: Proc, o: CurlOptions) -> Jar | None:
    if not o.cookies and not o.cookie_jar:
        return None
    jar = Jar()
    for word in o.cookies:
        if "=" in word:
            jar.literal.append(word)
            continue
        try:
            text = decode(b"".join([block async for block in read_file(proc, word)])) if word else ""
        except OSError:
            continue  # as curl: a file that is not there holds no cookies
        jar.load(text, junk_session=o.junk_session_cookies)
    return jar


async def _save(proc: Proc, word: str, jar: Jar, *, quiet: bool) -> None:
    if word == "-":
        await proc.emit(encode(jar.dump()))
        return
    try:
        writer = await proc.create(word)
        writer.write(encode(jar.dump()))
        await proc.close(writer)
    except OSError as error:
        if not quiet:
            proc.stderr.write(encode(f"WARNING: failed to save cookies in {word}: {reason(error)}\n"))


async def _write_out_form(proc: Proc, o: CurlOptions) -> str:
    if not o.write_out.startswith("@"):
        return o.write_out
    try:
        text = decode(b"".join([block async for block in read_file(proc, o.write_out[1:])]))
        return text.replace("\r", "").replace("\n", "")
    except OSError as error:
        raise UsageError(f"Failed to open {o.write_out[1:]}: {reason(error)}", 2) from None


_NO_PROXY: Final = "requests go through Ramet's own door, which no option leads around"
COMMANDS = [
    Command(
        "curl",
        _curl,
        CurlOptions,
        summary="Transfer URLs over HTTP and HTTPS, where the network policy allows it.",
        usage="[OPTION]... URL...",
        details=REACH,
        examples=(
            ("curl -fsSL https://api.example.org/v1/items | jq .", "fetch and filter"),
            ("curl -sS --json '{\"a\": 1}' https://api.example.org/v1/items", "send JSON"),
        ),
        refused={
            "-x= --proxy=": _NO_PROXY,
            "--preproxy=": _NO_PROXY,
            "--socks5=": _NO_PROXY,
            "--socks5-hostname=": _NO_PROXY,
            "--resolve=": _NO_PROXY,
            "--connect-to=": _NO_PROXY,
            "--unix-socket=": _NO_PROXY,
            "--interface=": _NO_PROXY,
            "--doh-url=": _NO_PROXY,
            "--dns-servers=": _NO_PROXY,
            "-K= --config=": "give the options on the command line",
            "-n --netrc": "credentials stay outside: see docs/network.md",
            "--netrc-file=": "use -u",
            "-E= --cert=": "client certificates are not supported",
            "--key=": "client certificates are not supported",
            "--digest": "only basic authentication is supported",
            "--ntlm": "only basic authentication is supported",
            "--limit-rate=": "the rate cannot be limited",
            "-: --next": "run curl once more",
            "-z= --time-cond=": "use -H 'If-Modified-Since: ...'",
        },
        ignored=(
            "-# --progress-bar",
            "--no-progress-meter",
            "-N --no-buffer",
            "--http1.1",
            "--http2",
            "--tlsv1.2",
            "--tlsv1.3",
            "-4 --ipv4",
            "-6 --ipv6",
            "-q --disable",
            "--no-keepalive",
            "--tcp-nodelay",
            "-R --remote-time",
            "--noproxy=",
            "--styled-output",
            "--no-styled-output",
            "--keepalive-time=",
            "--expect100-timeout=",
            "--anyauth",
            "-1 --tlsv1",
            "--ssl-reqd",
            "--parallel-immediate",
            "--ssl-no-revoke",
            "--tcp-fastopen",
        ),
        bad_usage=2,
        hint="'curl --help'",
        version_line=f"curl {VERSION_TEXT} (ramet)",
        version_letters="V",
        help_letters="h",
    ),
]
