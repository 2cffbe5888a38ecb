"""cksum: print and check checksums of any algorithm; CRC by default."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from ramet.commands.binary.checksum_lines import (
    SumOptions,
    check_file,
    digest_bits,
    digest_of,
    line_of,
    refuse_checking,
)
from ramet.commands.binary.sum import old_sum
from ramet.commands.framework.command import Command, UsageError, called, flag, value
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import Reader


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
    """Update the POSIX CRC, computed at C speed as zlib's CRC with mirrored bits."""
    mirrored = int(f"{crc:032b}"[::-1], 2)
    value_ = zlib.crc32(data.translate(_REVERSE), mirrored ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{value_:032b}"[::-1], 2)


async def cksum(proc: Proc, o: CksumOptions, operands: list[str]) -> int:
    if digest_bits(proc, o.length) and o.algorithm != "blake2b":
        raise UsageError("--length is only supported with --algorithm=blake2b", hint=False)
    if o.check:
        if o.algorithm in ("crc", "sysv", "bsd") and "-a" in " ".join(proc.argv):
            raise UsageError("--check is not supported with --algorithm={bsd,sysv,crc}", hint=False)
        status = 0
        for word in operands or ["-"]:
            status |= await check_file(proc, o, word, "auto" if o.algorithm == "crc" else o.algorithm)
        return status
    refuse_checking(o)
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
        return await old_sum(proc, reader, o.algorithm == "sysv", word if named else "", count) + end
    bits = int(o.length)
    value_ = await digest_of(proc, reader, o.algorithm, bits)
    last = next((name for name, _ in reversed(o.order) if name in ("tag", "untagged")), "tag")
    return line_of(word, value_, o.algorithm, bits, last == "tag", False, o.zero)


COMMANDS = [
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
]
