"""sum: print BSD or System V checksums."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.binary.sum_algorithms import bsd_total, sysv_total
from ramet.commands.framework.command import Command, called, choose
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import Reader


async def old_sum(proc: Proc, reader: Reader, sysv: bool, name: str, count: int) -> str:
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
            text = await old_sum(proc, reader, o.sysv, word if operands else "", len(operands))
            await proc.close(reader)
        except OSError as error:
            proc.complain(f"{called(word)}: {reason(error)}")
            status = 1
            continue
        await proc.emit(encode(text + "\n"))
    return status


COMMANDS = [
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
