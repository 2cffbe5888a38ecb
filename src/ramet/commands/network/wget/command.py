"""wget: read the command line, download each URL."""

from __future__ import annotations

from ramet.commands.framework.command import Command, UsageError
from ramet.commands.network.session import REACH, door_of
from ramet.commands.network.wget.download import Download, Run, complain, parsed, pause_for
from ramet.commands.network.wget.options import GENERIC, NETWORK, PARSE, VERSION_TEXT, WgetError, WgetOptions
from ramet.commands.network.wget.site import download_site, place_of
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.network.door import OFF


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
    content = await _content(proc, o)
    posts = o.post_data is not None or o.post_file is not None
    run = Run(proc, o, door, content, o.method.upper() or ("POST" if posts else "HEAD" if o.spider else "GET"))
    if o.output:
        try:
            run.joined = proc.stdout if o.output == "-" else await proc.create(o.output, append=o.resume)
        except OSError as error:
            proc.stderr.write(encode(f"{o.output}: {reason(error)}\n"))
            return GENERIC
    status = 0
    if o.spider:
        run.say("Spider mode enabled. Check if remote file exists.\n")
    try:
        for at, url in enumerate(urls):
            if at and o.wait:
                await pause_for(o.wait)
            status = (await download_site(run, url) if o.recursive else await _file(run, url)) or status
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


async def _file(run: Run, url: str) -> int:
    try:
        target = parsed(url)
        name = place_of(target, run.o) if run.o.force_directories else None
        await Download(run, target, name).carry_out()
    except WgetError as error:
        return complain(run, error)
    return 0


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
            "--waitretry=",
            "-4 --inet4-only",
            "-6 --inet6-only",
            "--no-proxy",
            "-e= --execute=",
            "--no-cache",
            "--no-cookies",
        ),
        rewrite=_dashed,
        bad_usage=PARSE,
        version_line=f"GNU Wget {VERSION_TEXT} (ramet)",
        version_letters="V",
        help_letters="h",
    ),
]
