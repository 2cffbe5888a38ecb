"""md5sum, the sha*sum family and b2sum: print and check digests."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.binary.checksum_lines import (
    TAGS,
    SumOptions,
    check_file,
    digest_bits,
    digest_of,
    line_of,
    refuse_checking,
)
from ramet.commands.framework.command import Command, UsageError, called, value
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class B2Options(SumOptions):
    length: str = value(
        "-l", "--length", metavar="BITS", default="0", help="digest length in bits; a multiple of 8 and at most 512"
    )


async def checksum(proc: Proc, o: SumOptions, operands: list[str]) -> int:
    kind = proc.argv[0].rpartition("/")[2].removesuffix("sum")
    bits = 0
    if isinstance(o, B2Options):
        bits = digest_bits(proc, o.length)
    if not o.check:
        refuse_checking(o)
        return await _print_all(proc, o, operands, kind, bits)
    if o.zero:
        raise UsageError("the --zero option is not supported when verifying checksums")
    if o.tag:
        raise UsageError("the --tag option is meaningless when verifying checksums")
    if any(name == "binary" for name, _ in o.order):
        raise UsageError("the --binary and --text options are meaningless when verifying checksums")
    status = 0
    for word in operands or ["-"]:
        status |= await check_file(proc, o, word, kind)
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


COMMANDS = [
    *(
        Command(
            f"{kind}sum",
            checksum,
            SumOptions,
            summary=f"Print or check {TAGS[kind]} checksums.",
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
]
