"""stat: the attributes of files, by a format."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from dataclasses import dataclass

from ramet.commands.framework import file_modes as modes
from ramet.commands.framework.command import (
    Command,
    UsageError,
    flag,
    mixed,
    quote,
    value,
)
from ramet.core.errors import fail, reason
from ramet.core.paths import Path, decode, encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind, Stat
from ramet.core.streams import FileStream
from ramet.text.strftime import NANO, shown_at, zone_of
from ramet.text.width import number_of


@dataclass(frozen=True, slots=True)
class StatOptions:
    follow: bool = flag("-L", "--dereference", help="follow links")
    system: bool = flag("-f", "--file-system", help="display file system status instead of file status")
    format: tuple[str, str] | None = mixed(
        value(
            "-c",
            "--format",
            metavar="FORMAT",
            convert=lambda t: ("c", t),
            help="use the specified FORMAT; a newline after each use",
        ),
        value(
            "--printf",
            metavar="FORMAT",
            convert=lambda t: ("p", t),
            help="like --format, but interpret backslash escapes, and no newline",
        ),
        default=None,
    )
    terse: bool = flag("-t", "--terse", help="print the information in terse form")
    cached: str | None = value("--cached", metavar="MODE", help="how to use cached attributes")


_KIND_WORDS = {
    Kind.FILE: "regular file",
    Kind.DIR: "directory",
    Kind.LINK: "symbolic link",
    Kind.FIFO: "fifo",
    Kind.SOCKET: "socket",
    Kind.DEVICE: "character special file",
}


async def stat_(proc: Proc, o: StatOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    status = 0
    for word in operands:
        if word == "-" and o.system:
            proc.complain("using '-' to denote standard input does not work in file system mode")
            status = 1
            continue
        try:
            path = proc.path(word)
            if word == "-":
                info = await proc.stdin.stat() if isinstance(proc.stdin, FileStream) else Stat(Kind.FIFO)
            else:
                slash = word.endswith("/")
                info = await proc.fs.stat(path, follow=o.follow or slash)
                if slash and info.kind is not Kind.DIR:
                    raise fail(errno.ENOTDIR, word)
        except OSError as error:
            what = "cannot read file system information for" if o.system else "cannot statx"
            proc.complain(f"{what} {quote(word)}: {reason(error)}")
            status = 1
            continue
        if o.system:
            text = _system(proc, o, word, path)
        elif o.format is not None:
            kind, pattern = o.format
            text = _render(proc, pattern, word, path, info, kind == "p") + ("\n" if kind == "c" else "")
        elif o.terse:
            text = _render(proc, "%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %W %o", word, path, info, False) + "\n"
        else:
            text = _long(proc, word, path, info)
        await proc.emit(encode(text))
    return status


def _long(proc: Proc, word: str, path: Path, info: Stat) -> str:
    lines = [
        "  File: " + (f"{word} -> {info.target}" if info.kind is Kind.LINK else word),
        _render(proc, "  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F", word, path, info, False),
        _render(proc, "Device: %Hd,%Ld\tInode: %-10i  Links: %h", word, path, info, False),
        _render(proc, "Access: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)", word, path, info, False),
        _render(proc, "Access: %x\nModify: %y\nChange: %z\n Birth: %w", word, path, info, False),
    ]
    return "\n".join(lines) + "\n"


_DIRECTIVE = re.compile(r"%([-+ #0']*)(\d*)(?:\.(\d*))?([HL]?[a-zA-Z%]|\Z)|\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.?)", re.S)


DEVICE_NUMBERS = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
"""Major and minor numbers of the devices, as on Linux."""


_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    '"': '"',
    "\\": "\\",
}


def _render(proc: Proc, pattern: str, word: str, path: Path, info: Stat, escapes: bool) -> str:
    tz = zone_of(proc)
    moments = {"X": info.accessed_ns or 0, "Y": info.mtime_ns or 0, "Z": info.mtime_ns or 0}
    human = "%Y-%m-%d %H:%M:%S.%N %z"
    user = proc.user
    mode = modes.mode_of(info)
    kind = "regular empty file" if info.kind is Kind.FILE and not info.size else _KIND_WORDS[info.kind]

    major, minor = DEVICE_NUMBERS.get(path.name, (0, 0)) if info.kind is Kind.DEVICE else (0, 0)

    def seconds(letter: str, precision: str | None) -> str:
        whole, nanos = divmod(moments[letter], NANO)
        digits = 0 if precision is None else number_of(precision or "9")
        return f"{whole}.{f'{nanos:09d}'[:digits].ljust(digits, '0')}" if digits else str(whole)

    table: dict[str, Callable[[], str]] = {
        "a": lambda: f"{mode:o}",
        "A": lambda: modes.mode_string(info.kind, mode),
        "b": lambda: str(modes.allocated(info) // 512),
        "B": lambda: "512",
        "C": lambda: "?",
        "d": lambda: "1",
        "D": lambda: "1",
        "Hd": lambda: "0",
        "Ld": lambda: "1",
        "f": lambda: f"{modes.TYPE_BITS[info.kind] | mode:x}",
        "F": lambda: kind,
        "g": lambda: str(user.gid),
        "G": lambda: user.group,
        "h": lambda: str(modes.nlink_of(info)),
        "i": lambda: str(info.inode or 0),
        "m": lambda: str(proc.fs.mount_of(path)),
        "n": lambda: word,
        "N": lambda: quote(word) + (f" -> {quote(info.target or '')}" if info.kind is Kind.LINK else ""),
        "o": lambda: "4096",
        "r": lambda: str(major << 8 | minor),
        "R": lambda: f"{major << 8 | minor:x}",
        "Hr": lambda: str(major),
        "Lr": lambda: str(minor),
        "s": lambda: str(modes.size_of(info)),
        "t": lambda: f"{major:x}",
        "T": lambda: f"{minor:x}",
        "u": lambda: str(user.uid),
        "U": lambda: user.name,
        "w": lambda: "-",
        "W": lambda: "0",
        "x": lambda: shown_at(human, moments["X"], tz),
        "y": lambda: shown_at(human, moments["Y"], tz),
        "z": lambda: shown_at(human, moments["Z"], tz),
    }

    def expand(found: re.Match[str]) -> str:
        flags, width, precision, letter, escape = found.groups()
        if escape is not None:
            if not escapes:
                return found[0]
            if not escape:
                proc.complain("warning: backslash at end of format")
                return "\\"
            if escape[0] in "01234567":
                return decode(bytes([int(escape, 8) & 255]))
            if escape[0] == "x" and len(escape) > 1:
                return decode(bytes([int(escape[1:], 16)]))
            if escape not in _ESCAPES:
                proc.complain(f"warning: unrecognized escape '\\{escape}'")
            return _ESCAPES.get(escape, escape)
        if letter in ("%", "") and len(found[0]) > 1 + len(letter):
            raise UsageError(f"{quote(found[0])}: invalid directive", hint=False)
        if letter in ("%", ""):
            return "%"
        if letter in "XYZ":
            text = seconds(letter, precision)
        elif letter in table:
            text = table[letter]()
            if precision is not None:
                text = text[: int(precision or 0)]
        else:
            return "?"
        if "#" in flags:
            text = {"a": "0" + text, "f": "0x" + text}.get(letter, text)
        wide = number_of(width)
        if "+" in flags and letter in "sXYZWi" and text[:1].isdigit():
            text = "+" + text
        if "-" in flags:
            return text.ljust(wide)
        return text.rjust(wide, "0") if "0" in flags else text.rjust(wide)

    return _DIRECTIVE.sub(expand, pattern)


def _system(proc: Proc, o: StatOptions, word: str, path: Path) -> str:
    blocks = 64 * 1024**3 // 4096
    table = {
        "n": word,
        "i": "0",
        "l": "255",
        "s": "4096",
        "S": "4096",
        "t": "0",
        "T": "ramet",
        "b": str(blocks),
        "f": str(blocks),
        "a": str(blocks),
        "c": "0",
        "d": "0",
        "%": "%",
    }
    if o.format is not None:
        return re.sub(r"%(.)", lambda m: table.get(m[1], "?"), o.format[1]) + ("\n" if o.format[0] == "c" else "")
    return (
        f'  File: "{word}"\n    ID: 0        Namelen: 255     Type: ramet\n'
        "Block size: 4096       Fundamental block size: 4096\n"
        f"Blocks: Total: {blocks:<10d} Free: {blocks:<10d} Available: {blocks}\nInodes: Total: {0:<10d} Free: 0\n"
    )


COMMANDS = [
    Command(
        "stat",
        stat_,
        StatOptions,
        summary="Display file or file system status.",
        usage="[OPTION]... FILE...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
