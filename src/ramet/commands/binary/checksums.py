"""Checksums: md5sum, sha*sum, b2sum, cksum and sum, on big blocks; and checking lists of them with -c."""

from __future__ import annotations

import hashlib
import re
import zlib
from dataclasses import dataclass
from typing import Protocol

from ramet.commands.binary.sum import bsd_total, sysv_total
from ramet.commands.framework.command import Command, UsageError, called, choose, flag, ordered, quote, value
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.streams import Reader

_TAGS = {
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


@dataclass(frozen=True, slots=True)
class B2Options(SumOptions):
    length: str = value(
        "-l", "--length", metavar="BITS", default="0", help="digest length in bits; a multiple of 8 and at most 512"
    )


async def digest_of(proc: Proc, reader: Reader, kind: str, bits: int = 0) -> str:
    state = new_hash(kind, bits)
    while block := await reader.read(1 << 20):
        state.update(block)
        await proc.budget.yield_turn()
    return state.hexdigest()


def _bits(proc: Proc, text: str) -> int:
    """The length of a digest."""
    wrong = f"invalid length: {quote(text)}"
    if not text.isdigit():
        raise UsageError(wrong, hint=False)
    if int(text) % 8:
        raise UsageError(f"{wrong}\n{proc.argv[0]}: length is not a multiple of 8", hint=False)
    if int(text) > 512:
        raise UsageError(f"{wrong}\n{proc.argv[0]}: maximum digest length for 'BLAKE2b' is 512 bits", hint=False)
    return int(text)


def _refuse_checking(o: SumOptions | CksumOptions) -> None:
    for name in ("ignore_missing", "quiet", "status", "strict", "warn"):
        if getattr(o, name):
            raise UsageError(f"the --{name.replace('_', '-')} option is meaningful only when verifying checksums")


async def checksum(proc: Proc, o: SumOptions, operands: list[str]) -> int:
    kind = proc.argv[0].rpartition("/")[2].removesuffix("sum")
    bits = 0
    if isinstance(o, B2Options):
        bits = _bits(proc, o.length)
    if not o.check:
        _refuse_checking(o)
        return await _print_all(proc, o, operands, kind, bits)
    if o.zero:
        raise UsageError("the --zero option is not supported when verifying checksums")
    if o.tag:
        raise UsageError("the --tag option is meaningless when verifying checksums")
    if any(name == "binary" for name, _ in o.order):
        raise UsageError("the --binary and --text options are meaningless when verifying checksums")
    status = 0
    for word in operands or ["-"]:
        status |= await _check_file(proc, o, word, kind)
    return status


async def _print_all(proc: Proc, o: SumOptions, operands: list[str], kind: str, bits: int) -> int:
    status = 0
    for word in operands or ["-"]:
        try:
            reader = await proc.open(word)
            value_ = await digest_of(proc, reader, kind, bits)
            await proc.close(reader)
        except OSError as error:
            if error.errno == 32:
                raise
            proc.complain(f"{called(word)}: {reason(error)}")
            status = 1
            continue
        await proc.emit(encode(line_of(word, value_, kind, bits, o.tag, o.binary, o.zero)))
    return status


def line_of(word: str, value_: str, kind: str, bits: int, tag: bool, binary: bool, zero: bool) -> str:
    name, lead = word, ""
    if not zero and any(c in word for c in "\\\n\r"):
        name, lead = word.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r"), "\\"
    end = "\0" if zero else "\n"
    if tag:
        label = _TAGS[kind] + (f"-{bits}" if bits and bits != 512 else "")
        return f"{lead}{label} ({name}) = {value_}{end}"
    return f"{lead}{value_} {'*' if binary else ' '}{name}{end}"


_GNU = re.compile(r"(\\?)([0-9a-fA-F]+)[ \t]([ *]?)(.+)", re.S)
_BSD = re.compile(r"(\\?)([A-Za-z0-9]+)(?:-(\d+))? ?\((.*)\) ?= ?([0-9a-fA-F]+)", re.S)


async def _check_file(proc: Proc, o: SumOptions, word: str, kind: str) -> int:
    try:
        reader = await proc.open(word)
        text = decode(await reader.read_all())
        await proc.close(reader)
    except OSError as error:
        proc.complain(f"{called(word)}: {reason(error)}")
        return 1
    shown_word = quote("standard input") if word == "-" else called(word)
    bad_lines = bad_sums = unreadable = good = 0
    style = _Style()
    size = len(new_hash(kind).hexdigest()) if kind != "auto" else 0
    for number, line in enumerate(text.split("\0" if o.zero else "\n"), 1):
        line = line.rstrip("\r")
        if not line or line.startswith("#"):
            continue
        parsed = _parse_line(line, kind, size, style)
        if parsed is None:
            bad_lines += 1
            if o.warn:
                proc.complain(f"{shown_word}: {number}: improperly formatted {_TAGS.get(kind, 'file')} checksum line")
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
    """A name in the report of a check: escaped only where it would break the line."""
    return "\\" + name.replace("\\", "\\\\").replace("\n", "\\n") if "\n" in name else name


@dataclass
class _Style:
    """Whether one blank stands before the names of a list, as BSD's -r writes it; None before the first of them."""

    one_blank: bool | None = None


def _parse_line(line: str, kind: str, size: int, style: _Style) -> tuple[str, str, str] | None:
    line = line.lstrip(" \t")
    found = _BSD.fullmatch(line)
    if found is not None:
        algorithm = {v.lower(): k for k, v in _TAGS.items()}.get(found[2].lower())
        if algorithm is None or (kind != "auto" and _TAGS[algorithm] != _TAGS[kind]):
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


# ------------------------------------------------------------------------------------------------- cksum and sum


@dataclass(frozen=True, slots=True)
class CksumOptions(SumOptions):
    algorithm: str = value(
        "-a",
        "--algorithm",
        metavar="TYPE",
        default="crc",
        help="select the digest type to use",
        choices=("bsd", "sysv", "crc", "md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "sm3"),
    )
    length: str = value("-l", "--length", metavar="BITS", default="0", help="digest length in bits; for blake2b only")
    untagged: bool = flag("--untagged", help="create a reversed style checksum, without digest type")


_REVERSE = bytes(int(f"{i:08b}"[::-1], 2) for i in range(256))


def posix_crc(data: bytes, crc: int = 0) -> int:
    """POSIX's CRC of more data. It is zlib's with every bit mirrored, so the bulk runs at C speed."""
    mirrored = int(f"{crc:032b}"[::-1], 2)
    value_ = zlib.crc32(data.translate(_REVERSE), mirrored ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{value_:032b}"[::-1], 2)


async def cksum(proc: Proc, o: CksumOptions, operands: list[str]) -> int:
    if _bits(proc, o.length) and o.algorithm != "blake2b":
        raise UsageError("--length is only supported with --algorithm=blake2b", hint=False)
    if o.check:
        if o.algorithm in ("crc", "sysv", "bsd") and "-a" in " ".join(proc.argv):
            raise UsageError("--check is not supported with --algorithm={bsd,sysv,crc}", hint=False)
        status = 0
        for word in operands or ["-"]:
            status |= await _check_file(proc, o, word, "auto" if o.algorithm == "crc" else o.algorithm)
        return status
    _refuse_checking(o)
    status = 0
    for word in operands or ["-"]:
        try:
            reader = await proc.open(word)
            text = await _cksum_line(proc, o, reader, word, bool(operands), len(operands))
            await proc.close(reader)
        except OSError as error:
            if error.errno == 32:
                raise
            proc.complain(f"{called(word)}: {reason(error)}")
            status = 1
            continue
        await proc.emit(encode(text))
    return status


async def _cksum_line(proc: Proc, o: CksumOptions, reader: Reader, word: str, named: bool, count: int) -> str:
    end = "\0" if o.zero else "\n"
    name = f" {word}" if named else ""
    if o.algorithm == "crc":
        crc = size = 0
        while block := await reader.read(1 << 20):
            crc = posix_crc(block, crc)
            size += len(block)
            await proc.budget.yield_turn()
        length = size
        tail = bytearray()
        while length:
            tail.append(length & 255)
            length >>= 8
        crc = posix_crc(bytes(tail), crc) ^ 0xFFFFFFFF
        return f"{crc} {size}{name}{end}"
    if o.algorithm in ("sysv", "bsd"):
        return await _old_sum(proc, reader, o.algorithm == "sysv", word if named else "", count) + end
    bits = int(o.length)
    value_ = await digest_of(proc, reader, o.algorithm, bits)
    last = next((name for name, _ in reversed(o.order) if name in ("tag", "untagged")), "tag")
    return line_of(word, value_, o.algorithm, bits, last == "tag", False, o.zero)


async def _old_sum(proc: Proc, reader: Reader, sysv: bool, name: str, count: int) -> str:
    total = size = 0
    while block := await reader.read(1 << 16):
        size += len(block)
        total = total + sysv_total(block) if sysv else bsd_total(total, block)
        await proc.budget.yield_turn()
    if sysv:
        folded = (total & 0xFFFF) + ((total & 0xFFFFFFFF) >> 16)
        folded = (folded & 0xFFFF) + (folded >> 16)
        return f"{folded} {-(-size // 512)}" + (f" {name}" if name else "")
    return f"{total:05d} {-(-size // 1024):5d}" + (f" {name}" if name and (count > 1 or count == 1) else "")


@dataclass(frozen=True, slots=True)
class OldSumOptions:
    sysv: bool = choose(
        {"-r": False, "-s --sysv": True},
        default=False,
        help={
            "-r": "use BSD sum algorithm, use 1K blocks",
            "-s --sysv": "use System V sum algorithm, use 512 bytes blocks",
        },
    )


async def sum_(proc: Proc, o: OldSumOptions, operands: list[str]) -> int:
    status = 0
    for word in operands or ["-"]:
        try:
            reader = await proc.open(word)
            text = await _old_sum(proc, reader, o.sysv, word if operands else "", len(operands))
            await proc.close(reader)
        except OSError as error:
            proc.complain(f"{called(word)}: {reason(error)}")
            status = 1
            continue
        await proc.emit(encode(text + "\n"))
    return status


COMMANDS = [
    *(
        Command(
            f"{kind}sum",
            checksum,
            SumOptions,
            summary=f"Print or check {_TAGS[kind]} checksums.",
            original="GNU coreutils 9.1",
            curly_quotes=True,
            stdin_error=StdinError(closing="standard input: {}"),
        )
        for kind in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")
    ),
    Command(
        "b2sum",
        checksum,
        B2Options,
        summary="Print or check BLAKE2b checksums.",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError(closing="standard input: {}"),
    ),
    Command(
        "cksum",
        cksum,
        CksumOptions,
        summary="Print or verify checksums; by default the 32 bit CRC and byte counts.",
        ignored=("--debug",),
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError(closing="standard input: {}"),
    ),
    Command(
        "sum",
        sum_,
        OldSumOptions,
        summary="Print or check BSD (16-bit) checksums.",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError(closing="standard input: {}"),
    ),
]
