"""less, more, zless and zmore: without a terminal, files are passed through unpaged.

A file that cannot be shown is reported and does not change the exit status, as in the originals.
"""

from __future__ import annotations

from ramet.commands.framework.command import Command
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind
from ramet.core.streams import BLOCK


async def less(proc: Proc, o: object, operands: list[str]) -> int:
    for word in _files(operands) or ["-"]:
        if await _is_directory(proc, word):
            await proc.emit(encode(f"{word} is a directory\n"))
            continue
        try:
            await _pass_through(proc, word)
        except OSError as error:
            await proc.emit(encode(f"{word}: {reason(error)}\n"))
    return 0


async def more(proc: Proc, o: object, operands: list[str]) -> int:
    files = _files(operands)
    for word in files or ["-"]:
        if await _is_directory(proc, word):
            await proc.emit(encode(f"\n*** {word}: directory ***\n\n"))
            continue
        try:
            await _pass_through(proc, word, f"::::::::::::::\n{word}\n::::::::::::::\n" if files else "")
        except OSError as error:
            proc.complain(f"cannot open {word}: {reason(error)}")
    return 0


async def zless(proc: Proc, o: object, operands: list[str]) -> int:
    """zless and zmore: print the decompressed files."""
    return await proc.run(["gzip", "-cdfq", "--", *_files(operands)])


def _files(operands: list[str]) -> list[str]:
    """The operands that are files: others are commands, such as `+10` and `+/pattern`."""
    return [word for word in operands if not word.startswith("+")]


async def _is_directory(proc: Proc, word: str) -> bool:
    if word == "-" or proc.descriptor(word) is not None:
        return False
    try:
        return (await proc.fs.stat(proc.path(word), follow=True)).kind is Kind.DIR
    except OSError:
        return False  # opening it reports the reason


async def _pass_through(proc: Proc, word: str, head: str = "") -> None:
    reader = await proc.open(word)
    await proc.emit(encode(head))
    try:
        while block := await reader.read(BLOCK):
            await proc.emit(block)
    finally:
        await proc.close(reader)


_SWITCHES = (
    "-R --RAW-CONTROL-CHARS",
    "-r --raw-control-chars",
    "-S --chop-long-lines",
    "-F --quit-if-one-screen",
    "-X --no-init",
    "-i --ignore-case",
    "-I --IGNORE-CASE",
    "-e --quit-at-eof",
    "-E --QUIT-AT-EOF",
    "-M --LONG-PROMPT",
    "-m --long-prompt",
    "-N --LINE-NUMBERS",
    "-q --quiet",
    "-K --quit-on-intr",
    "-f --force",
    "-c",
    "-d",
    "-s --squeeze --squeeze-blank-lines",
    "-u",
)
_SUMMARY = "Show files; without a terminal they are passed through."
COMMANDS = [
    Command(
        "less",
        less,
        summary=_SUMMARY,
        usage="[OPTION]... [FILE]...",
        ignored=(
            *_SWITCHES, "-n --line-numbers", "-x= --tabs=", "-P= --prompt=", "-p= --pattern=", "-j= --jump-target=",
            "-b=", "-h=", "-y=", "-z= --window=", "-t= --tag=", "-T=", "-D=",
        ),
        version_letters="V",
    ),
    Command(
        "more",
        more,
        summary=_SUMMARY,
        usage="[OPTION]... [FILE]...",
        ignored=(*_SWITCHES, "-n= --lines=", "-l", "-p"),
        version_letters="V",
        help_letters="h",
    ),
    *(
        Command(name, zless, summary="Show possibly compressed files.", usage="[FILE]...", ignored=_SWITCHES)
        for name in ("zless", "zmore")
    ),
]  # fmt: skip
