"""tee: copy standard input to files and to standard output."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, called, flag, optional
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.errors import reason
from ramet.core.proc import Proc
from ramet.core.streams import Writer


@dataclass(frozen=True, slots=True)
class TeeOptions:
    append: bool = flag("-a", "--append", help="append to the given FILEs, do not overwrite")
    interrupts: bool = flag("-i", "--ignore-interrupts", help="ignore interrupt signals")
    diagnose: bool = flag("-p", help="diagnose errors writing to non pipes")
    errors: str = optional(
        "--output-error",
        metavar="MODE",
        const="warn-nopipe",
        default="",
        help="set behavior on write error",
        choices=("warn", "warn-nopipe", "exit", "exit-nopipe"),
    )


async def tee(proc: Proc, o: TeeOptions, operands: list[str]) -> int:
    status = 0
    files: list[tuple[str, Writer]] = []
    for word in operands:
        try:
            # For tee, `-` is an ordinary file name.
            files.append((word, await proc.create("./-" if word == "-" else word, append=o.append)))
        except OSError as error:
            proc.complain(f"{called(word)}: {reason(error)}")
            status = 1
    if o.errors.startswith("exit") and status:
        return status
    tolerant = o.diagnose or bool(o.errors)
    out: Writer | None = proc.stdout
    try:
        while block := await proc.stdin.read():
            if out is not None:
                try:
                    out.write(block)
                    if out.full:
                        await out.drain()
                except BrokenPipeError:
                    if not tolerant:
                        raise
                    out = None
            for word, writer in list(files):
                try:
                    writer.write(block)
                    if writer.full:
                        await writer.drain()
                except OSError as error:
                    proc.complain(f"{called(word)}: {reason(error)}")
                    files.remove((word, writer))
                    status = 1
            if out is None and not files:
                break
    finally:
        for _, writer in files:
            await proc.close(writer)
    return status


COMMANDS = [
    Command(
        "tee",
        tee,
        TeeOptions,
        summary="Copy standard input to each FILE, and also to standard output.",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        write_error=("'standard output': ", 1),
        stdin_error=StdinError("read error: {}", "standard input: {}"),
    ),
]
