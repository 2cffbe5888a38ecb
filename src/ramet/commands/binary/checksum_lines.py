"""Checksum lines and files, as md5sum, cksum and b2sum print and check them."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Protocol

from ramet.commands.framework.command import UsageError, called, choose, flag, ordered, quote
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.streams import Reader

TAGS = {
    "md5": "MD5",
    "sha1": "SHA1",
    "sha224": "SHA224",
    "sha256": "SHA256",
    "sha384": "SHA384",
    "sha512": "SHA512",
    "b2": "BLAKE2b",
    "blake2b": "BLAKE2b",
    "sm3": "SM3",
}


class Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


def new_hash(kind: str, bits: int = 0) -> Hash:
    if kind in ("b2", "blake2b"):
        return hashlib.blake2b(digest_size=(bits or 512) // 8)
    return hashlib.new(kind, usedforsecurity=False)


@dataclass(frozen=True, slots=True)
class SumOptions:
    binary: bool = choose(
        {"-b --binary": True, "-t --text": False},
        default=False,
        help={"-b --binary": "read in binary mode", "-t --text": "read in text mode (default)"},
    )
    order: tuple[tuple[str, object], ...] = ordered()
    check: bool = flag("-c", "--check", help="read checksums from the FILEs and check them")
    tag: bool = flag("--tag", help="create a BSD-style checksum")
    zero: bool = flag("-z", "--zero", help="end each output line with NUL, not newline, and disable file name escaping")
    ignore_missing: bool = flag("--ignore-missing", help="don't fail or report status for missing files")
    quiet: bool = flag("--quiet", help="don't print OK for each successfully verified file")
    status: bool = flag("--status", help="don't output anything, status code shows success")
    strict: bool = flag("--strict", help="exit non-zero for improperly formatted checksum lines")
    warn: bool = flag("-w", "--warn", help="warn about improperly formatted checksum lines")


async def digest_of(proc: Proc, reader: Reader, kind: str, bits: int = 0) -> str:
    state = new_hash(kind, bits)
    while block := await reader.read(1 << 20):
        state.update(block)
        await proc.budget.yield_turn()
    return state.hexdigest()


def digest_bits(proc: Proc, text: str) -> int:
    """The length of a digest."""
    wrong = f"invalid length: {quote(text)}"
    if not text.isdigit():
        raise UsageError(wrong, hint=False)
    if int(text) % 8:
        raise UsageError(f"{wrong}\n{proc.argv[0]}: length is not a multiple of 8", hint=False)
    if int(text) > 512:
        raise UsageError(f"{wrong}\n{proc.argv[0]}: maximum digest length for 'BLAKE2b' is 512 bits", hint=False)
    return int(text)


def refuse_checking(o: SumOptions) -> None:
    for name in ("ignore_missing", "quiet", "status", "strict", "warn"):
        if getattr(o, name):
            raise UsageError(f"the --{name.replace('_', '-')} option is meaningful only when verifying checksums")


def line_of(word: str, value_: str, kind: str, bits: int, tag: bool, binary: bool, zero: bool) -> str:
    name, lead = word, ""
    if not zero and any(c in word for c in "\\\n\r"):
        name, lead = word.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r"), "\\"
    end = "\0" if zero else "\n"
    if tag:
        label = TAGS[kind] + (f"-{bits}" if bits and bits != 512 else "")
        return f"{lead}{label} ({name}) = {value_}{end}"
    return f"{lead}{value_} {'*' if binary else ' '}{name}{end}"


_GNU = re.compile(r"(\\?)([0-9a-fA-F]+)[ \t]([ *]?)(.+)", re.S)
_BSD = re.compile(r"(\\?)([A-Za-z0-9]+)(?:-(\d+))? ?\((.*)\) ?= ?([0-9a-fA-F]+)", re.S)


async def check_file(proc: Proc, o: SumOptions, word: str, kind: str) -> int:
    try:
        reader = await proc.open(word)
        text = decode(await reader.read_all())
        await proc.close(reader)
    except OSError as error:
        proc.complain(f"{called(word)}: {reason(error)}")
        return 1
    shown_word = quote("standard input") if word == "-" else called(word)
    bad_lines = bad_sums = unreadable = good = 0
    style = _LineStyle()
    size = len(new_hash(kind).hexdigest()) if kind != "auto" else 0
    for number, line in enumerate(text.split("\0" if o.zero else "\n"), 1):
        line = line.rstrip("\r")
        if not line or line.startswith("#"):
            continue
        parsed = _parse_line(line, kind, size, style)
        if parsed is None:
            bad_lines += 1
            if o.warn:
                proc.complain(f"{shown_word}: {number}: improperly formatted {TAGS.get(kind, 'file')} checksum line")
            continue
        algorithm, expected, name = parsed
        try:
            reader = await proc.open(name)
            actual = await digest_of(
                proc, reader, algorithm, len(expected) * 4 if algorithm in ("b2", "blake2b") else 0
            )
            await proc.close(reader)
        except OSError as error:
            if o.ignore_missing and error.errno == 2:
                continue
            proc.complain(f"{called(name)}: {reason(error)}")
            unreadable += 1
            if not o.status:
                await proc.emit(encode(f"{_escaped(name)}: FAILED open or read\n"))
            continue
        matched = actual == expected.lower()
        if matched:
            good += 1
        else:
            bad_sums += 1
        if not o.status and not (matched and o.quiet):
            await proc.emit(encode(f"{_escaped(name)}: {'OK' if matched else 'FAILED'}\n"))
    return _report(proc, o, shown_word, kind, bad_lines, bad_sums, unreadable, good)


def _escaped(name: str) -> str:
    """Escape a name in the report of a check, if it would break the line."""
    return "\\" + name.replace("\\", "\\\\").replace("\n", "\\n") if "\n" in name else name


@dataclass
class _LineStyle:
    """Whether names follow one blank, as BSD's -r writes them; None: unknown yet."""

    one_blank: bool | None = None


def _parse_line(line: str, kind: str, size: int, style: _LineStyle) -> tuple[str, str, str] | None:
    line = line.lstrip(" \t")
    found = _BSD.fullmatch(line)
    if found is not None:
        algorithm = {v.lower(): k for k, v in TAGS.items()}.get(found[2].lower())
        if algorithm is None or (kind != "auto" and TAGS[algorithm] != TAGS[kind]):
            return None
        if algorithm != "b2" and not (kind == "auto" and algorithm == "blake2b"):
            size = len(new_hash(algorithm).hexdigest())
            if len(found[5]) != size:
                return None
        return algorithm, found[5], _unescaped(found[4]) if found[1] else found[4]
    found = _GNU.fullmatch(line)
    if found is None or kind == "auto":
        return None
    if len(found[2]) != size and not (kind == "b2" and len(found[2]) <= 128 and len(found[2]) % 2 == 0):
        return None
    marker, name = found[3], found[4]
    if not marker and style.one_blank is False:
        return None  # a list has one style
    style.one_blank = style.one_blank or not marker
    if style.one_blank:
        name = marker + name
    return kind, found[2], _unescaped(name) if found[1] else name


def _unescaped(name: str) -> str:
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "r": "\r"}.get(m[1], m[1]), name)


def _report(
    proc: Proc, o: SumOptions, word: str, kind: str, bad_lines: int, bad_sums: int, unreadable: int, good: int
) -> int:
    total = bad_sums + unreadable + good
    if total == 0 and not (o.ignore_missing and not bad_lines):
        proc.complain(f"{word}: no properly formatted checksum lines found")
        return 1
    if not o.status:
        if bad_lines:
            proc.complain(f"WARNING: {bad_lines} line{' is' if bad_lines == 1 else 's are'} improperly formatted")
        if unreadable:
            proc.complain(f"WARNING: {unreadable} listed file{'' if unreadable == 1 else 's'} could not be read")
        if bad_sums:
            proc.complain(f"WARNING: {bad_sums} computed checksum{'' if bad_sums == 1 else 's'} did NOT match")
        if o.ignore_missing and total == 0:
            proc.complain(f"{word}: no file was verified")
    return 1 if bad_sums or unreadable or (bad_lines and o.strict) or (o.ignore_missing and good == 0) else 0
