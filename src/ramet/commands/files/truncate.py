"""truncate: set the size of files."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass

from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import Command, UsageError, flag, quote, value
from ramet.commands.framework.inputs import size_suffix
from ramet.core.errors import reason
from ramet.core.proc import Proc
from ramet.core.stat import Attrs


@dataclass(frozen=True, slots=True)
class TruncateOptions:
    no_create: bool = flag("-c", "--no-create", help="do not create any files")
    blocks: bool = flag("-o", "--io-blocks", help="treat SIZE as number of IO blocks instead of bytes")
    reference: str | None = value("-r", "--reference", metavar="RFILE", help="base size on RFILE")
    size: str | None = value("-s", "--size", metavar="SIZE", help="set or adjust the file size by SIZE bytes")


async def truncate(proc: Proc, o: TruncateOptions, operands: list[str]) -> int:
    if o.size is None and o.reference is None:
        raise UsageError("you must specify either '--size' or '--reference'")
    if o.blocks and o.size is None:
        raise UsageError("'--io-blocks' was specified but '--size' was not")
    op, amount = "", 0
    if o.size is not None:
        if re.match(r"\s*[<>/%]\s*[+-]", o.size):
            raise UsageError("multiple relative modifiers specified")
        found = re.fullmatch(r"\s*([+\-<>/%]?)\s*(\d+)([A-Za-z]*)", o.size)
        factor = size_suffix(found[3], "gkmt") if found else None
        if found is None or factor is None:
            raise UsageError(f"Invalid number: {quote(o.size)}", hint=False)
        if int(found[2]) * factor >= 1 << 63:
            words = "Value too large for defined data type"
            raise UsageError(f"Invalid number: {quote(o.size)}: {words}", hint=False)
        op, amount = found[1], int(found[2]) * factor * (4096 if o.blocks else 1)
        if op in ("/", "%") and amount == 0:
            raise UsageError("division by zero", hint=False)
        if o.reference is not None and not op:
            raise UsageError("you must specify a relative '--size' with '--reference'")
    if not operands:
        raise UsageError("missing file operand")
    base: int | None = None
    if o.reference is not None:
        try:
            base = (await proc.fs.stat(proc.path(o.reference), follow=True)).size or 0
        except OSError as error:
            raise UsageError(f"cannot stat {quote(o.reference)}: {reason(error)}", hint=False) from None
    status = 0
    for word in operands:
        try:
            path = proc.path(word)
            there = await lookup(proc, path, follow=True)
            if there is None:
                if o.no_create:
                    continue
                await proc.close(await proc.create(word))
            elif there.is_dir or word.endswith("/"):
                raise OSError(errno.EISDIR, "", word)
            current = base if base is not None else ((there.size or 0) if there is not None else 0)
            new = {
                "": amount,
                "+": current + amount,
                "-": max(0, current - amount),
                "<": min(current, amount),
                ">": max(current, amount),
                "/": current // amount * amount if op == "/" else 0,
                "%": -(-current // amount) * amount if op == "%" else 0,
            }[op]
            if base is not None and o.size is None:
                new = base
            if new >= 1 << 44:
                proc.complain(f"failed to truncate {quote(word)} at {new} bytes: File too large")
                status = 1
                continue
            await proc.fs.setattr(await proc.fs.resolve(path), Attrs(size=new))
        except OSError as error:
            proc.complain(f"cannot open {quote(word)} for writing: {reason(error)}")
            status = 1
    return status


COMMANDS = [
    Command(
        "truncate",
        truncate,
        TruncateOptions,
        summary="Shrink or extend the size of each FILE to the specified size.",
        usage="OPTION... FILE...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
