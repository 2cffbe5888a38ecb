"""cat: concatenate files, optionally numbered and with visible control characters."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ramet.commands.framework.command import Command, flag
from ramet.commands.framework.inputs import PART, Inputs
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.proc import Proc
from ramet.core.stat import Kind
from ramet.core.streams import FileStream


@dataclass(frozen=True, slots=True)
class CatOptions:
    all: bool = flag("-A", "--show-all", help="equivalent to -vET")
    number_nonblank: bool = flag("-b", "--number-nonblank", help="number nonempty output lines, overrides -n")
    ve: bool = flag("-e", help="equivalent to -vE")
    ends: bool = flag("-E", "--show-ends", help="display $ at end of each line")
    number: bool = flag("-n", "--number", help="number all output lines")
    squeeze: bool = flag("-s", "--squeeze-blank", help="suppress repeated empty output lines")
    vt: bool = flag("-t", help="equivalent to -vT")
    tabs: bool = flag("-T", "--show-tabs", help="display TAB characters as ^I")
    nonprinting: bool = flag("-v", "--show-nonprinting", help="use ^ and M- notation, except for LFD and TAB")


def caret(byte: int) -> str:
    """A byte in `cat -v` notation."""
    if byte >= 128:
        return "M-" + caret(byte - 128)
    if byte < 32:
        return "^" + chr(byte + 64)
    return "^?" if byte == 127 else chr(byte)


async def cat(proc: Proc, o: CatOptions, operands: list[str]) -> int:
    inputs = Inputs(proc, operands)
    await _cat(proc, o, inputs)
    return inputs.status


async def _cat(proc: Proc, o: CatOptions, inputs: Inputs) -> None:
    ends, tabs = o.ends or o.all or o.ve, o.tabs or o.all or o.vt
    visible = o.nonprinting or o.all or o.ve or o.vt
    if not (ends or tabs or visible or o.number or o.number_nonblank or o.squeeze):
        async for word, reader in inputs.each():
            if await _feeds_itself(proc, reader):
                proc.complain(f"{word}: input file is output file")
                inputs.status = 1
            else:
                await _pass_through(proc, reader)
        return
    table: dict[int, str] = {}
    if visible:
        table = {code: caret(code) for code in range(256) if code not in (9, 10)}
    if tabs:
        table[9] = "^I"
    number, blank, fresh, held = 0, False, True, ""
    async for block in inputs.blocks(PART):
        text = held + block.decode("latin-1")
        if ends and not visible:
            held = "\r" if text.endswith("\r") else ""  # it is shown if the line ends here
            text = text.removesuffix("\r").replace("\r\n", "^M\n")
        if table:
            text = text.translate(table)
        if not (o.number or o.number_nonblank or o.squeeze):
            await proc.emit((text.replace("\n", "$\n") if ends else text).encode("latin-1"))
            continue
        if o.number and not o.number_nonblank and not o.squeeze and not ends:
            text, number, fresh = _numbered(text, number, fresh)
            await proc.emit(text.encode("latin-1"))
            continue
        out: list[str] = []
        for line in text.splitlines(keepends=True) if not _ODD_BREAKS.search(text) else _split_keep(text):
            if fresh and line == "\n":
                if blank and o.squeeze:
                    continue
                blank = True
            else:
                blank = False
            if fresh and (not blank if o.number_nonblank else o.number):
                number += 1
                out.append(f"{number:6d}\t")
            fresh = line.endswith("\n")
            out.append(line.replace("\n", "$\n") if ends else line)
        await proc.emit("".join(out).encode("latin-1"))
    await proc.emit(held.encode())


def _numbered(text: str, number: int, fresh: bool) -> tuple[str, int, bool]:
    """Number the lines of a text; return it, the last number, and whether the next text begins a line.

    `fresh`: this text begins a line.
    """
    begun, newline, text = ("", "", text) if fresh else text.partition("\n")
    if not text:
        return begun + newline, number, bool(newline)
    lines = text.split("\n")
    whole = not lines[-1]
    if whole:
        lines.pop()
    shown = "\n".join([f"{i:6d}\t{line}" for i, line in enumerate(lines, number + 1)])
    return f"{begun}{newline}{shown}\n" if whole else begun + newline + shown, number + len(lines), whole


_ODD_BREAKS = re.compile("[\r\x0b\x0c\x1c-\x1e\x85]")


def _split_keep(text: str) -> list[str]:
    pieces = text.split("\n")
    last = pieces.pop()
    lines = [piece + "\n" for piece in pieces]
    if last:
        lines.append(last)
    return lines


async def _feeds_itself(proc: Proc, reader: object) -> bool:
    """Return whether input and output are the same file (`cat f >> f`), which would never end."""
    out = proc.stdout
    if not (isinstance(out, FileStream) and isinstance(reader, FileStream)):
        return False
    source, target = await reader.stat(), await out.stat()
    return (
        source.kind is target.kind is Kind.FILE
        and source.inode is not None
        and source.inode == target.inode
        and reader.tell() < (source.size or 0)
    )


async def _pass_through(proc: Proc, reader: object) -> None:
    out = proc.stdout
    while block := await reader.read():  # type: ignore[attr-defined]
        out.write(block)
        if out.full:
            await out.drain()


COMMANDS = [
    Command(
        "cat",
        cat,
        CatOptions,
        summary="Concatenate FILE(s) to standard output.",
        ignored=("-u",),
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("-: {}", "closing standard input: {}"),
    ),
]
