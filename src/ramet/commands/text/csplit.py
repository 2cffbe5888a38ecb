"""csplit: split a file at line numbers and patterns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from ramet.commands.framework.command import (
    Command,
    UsageError,
    flag,
    quote,
    typographic,
    value,
)
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.errors import reason
from ramet.core.proc import Proc
from ramet.core.streams import line_blocks
from ramet.text.width import bounded_spec


@dataclass(frozen=True, slots=True)
class CsplitOptions:
    format: str | None = value("-b", "--suffix-format", metavar="FORMAT", help="use sprintf FORMAT instead of %02d")
    prefix: str = value("-f", "--prefix", metavar="PREFIX", default="xx", help="use PREFIX instead of 'xx'")
    keep: bool = flag("-k", "--keep-files", help="do not remove output files on errors")
    suppress: bool = flag("--suppress-matched", help="suppress the lines matching PATTERN")
    digits: str | None = value("-n", "--digits", metavar="DIGITS", help="use specified number of digits instead of 2")
    quiet: bool = flag("-s", "-q", "--quiet", "--silent", help="do not print counts of output file sizes")
    elide: bool = flag("-z", "--elide-empty-files", help="remove empty output files")


@dataclass(frozen=True, slots=True)
class _Control:
    text: str
    kind: str  # "/", "%", "n"
    pattern: str
    offset: int
    repeat: int  # -1: as often as possible


def _controls(words: list[str]) -> list[_Control]:
    from ramet.commands.framework.posix_regex import bre_bytes

    out: list[_Control] = []
    for word in words:
        repeat = re.fullmatch(r"\{(\d+|\*)\}", word)
        if repeat is None and re.fullmatch(r"\{.*\}", word, re.S) and out:
            raise UsageError(f"{quote(word[:-1])}}}: integer required between '{{' and '}}'", hint=False)
        if repeat is not None:
            if not out:
                raise UsageError(f"{quote(word)}: invalid pattern", hint=False)
            last = out.pop()
            out.append(
                _Control(last.text, last.kind, last.pattern, last.offset, -1 if repeat[1] == "*" else int(repeat[1]))
            )
            continue
        if word[:1] in ("/", "%"):
            end = word.rfind(word[0])
            if end == 0:
                raise UsageError(f"{word}: closing delimiter '{word[0]}' missing", hint=False)
            offset = word[end + 1 :]
            if offset and not re.fullmatch(r"[+-]?\d+", offset):
                raise UsageError(f"{quote(word)}: integer expected after delimiter", hint=False)
            try:
                bre_bytes(word[1:end])
            except (ValueError, UsageError):
                wrong = "invalid regular expression: Invalid regular expression"
                raise UsageError(f"{quote(word)}: {wrong}", hint=False) from None
            out.append(_Control(word, word[0], word[1:end], int(offset or 0), 0))
        elif word.isdigit():
            if int(word) == 0:
                raise UsageError(f"{word}: line number must be greater than zero", hint=False)
            before = max((int(c.pattern) for c in out if c.kind == "n"), default=0)
            if int(word) < before:
                raise UsageError(
                    f"line number {quote(word)} is smaller than preceding line number, {before}", hint=False
                )
            out.append(_Control(word, "n", word, 0, 0))
        else:
            raise UsageError(f"{quote(word)}: invalid pattern", hint=False)
    return out


_MANY = 4096
"""Lines written between two yields."""


class _CsplitFailed(Exception):
    """A control did not match; the rest is still written, unless it was to be skipped."""

    def __init__(self, message: str, skipping: bool = False) -> None:
        super().__init__(message)
        self.skipping = skipping


async def csplit(proc: Proc, o: CsplitOptions, operands: list[str]) -> int:
    if len(operands) < 2:
        raise UsageError("missing operand" if not operands else f"missing operand after {quote(operands[0])}")
    try:
        reader = await proc.open(operands[0])
        lines: list[bytes] = []
        async for block in line_blocks(reader):
            lines += block.splitlines(keepends=True) if b"\r" not in block else _split_lines(block)
            await proc.budget.yield_turn()
        await proc.close(reader)
    except OSError as error:
        proc.complain(f"cannot open {quote(operands[0])} for reading: {reason(error)}")
        return 1
    from ramet.commands.framework.posix_regex import offload_long

    controls = await offload_long(proc, operands[1:], partial(_controls, operands[1:]))
    _suffix(o, 0)
    job = _Csplit(proc, o, lines)
    status = 0
    try:
        for control in controls:
            if not await job.apply(control):
                return 0
        await job.write(job.at, len(lines))
    except _CsplitFailed as failed:
        proc.complain(typographic(proc, str(failed)))
        status = 1
        if not failed.skipping:
            await job.write(job.at, len(lines))
        if not o.keep:
            for name in job.names:
                await proc.fs.remove(proc.path(name))
    return status


def _split_lines(block: bytes) -> list[bytes]:
    """Split a block into lines with their newlines; a carriage return is part of the line."""
    *whole, last = block.split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])


def _suffix(o: CsplitOptions, number: int) -> str:
    """Format the number of a piece; UsageError unless the format takes exactly one number."""
    if o.digits is not None and not o.digits.isdigit():
        raise UsageError(f"invalid number: {quote(o.digits)}", hint=False)
    shape = f"%0{o.digits or 2}d" if o.format is None else o.format
    found = re.search(r"%([-0-9#' +.]*)([^-0-9#' +.%])", shape.replace("%%", "\0\0"))
    if found is None:
        raise UsageError("missing % conversion specification in suffix", hint=False)
    if found[2] not in "diuoxX":
        raise UsageError(f"invalid conversion specifier in suffix: {found[2]}", hint=False)
    if "%" in shape[found.end() :].replace("%%", ""):
        raise UsageError("too many % conversion specifications in suffix", hint=False)
    count = f"%{bounded_spec(found[1])}{'d' if found[2] in 'iu' else found[2]}" % number
    return (shape[: found.start()] + count + shape[found.end() :]).replace("%%", "%")


class _Csplit:
    def __init__(self, proc: Proc, o: CsplitOptions, lines: list[bytes]) -> None:
        self.proc, self.o, self.lines = proc, o, lines
        self.at = 0
        """The first line that is not written yet."""
        self.seen = 0
        """The first line not matched against an expression yet: a cut before a match does not move it back."""
        self.names: list[str] = []
        self.number = 0

    async def apply(self, control: _Control) -> bool:
        """Cut at a control as often as it repeats; return False when all lines are used."""
        turn = 0
        while control.repeat < 0 or turn <= control.repeat:
            where = f" on repetition {turn}" if turn else ""
            if control.kind == "n":
                await self._cut_at(int(control.pattern) * (turn + 1) - 1, control, where, write=True)
            else:
                found = await self._search(control)
                if found is None:
                    if control.repeat >= 0:
                        raise _CsplitFailed(f"{quote(control.text)}: match not found{where}", control.kind == "%")
                    if control.kind == "/":
                        await self.write(self.at, len(self.lines))
                    return False
                self.seen = found + 1
                await self._cut_at(found + control.offset, control, "", write=control.kind == "/")
                if control.offset > 0:
                    self.seen = max(self.seen, found + control.offset + 1)
            turn += 1
            await self.proc.budget.yield_turn()
        return True

    async def _search(self, control: _Control) -> int | None:
        """Find the next line that the expression matches."""
        from ramet.commands.framework.posix_regex import bre_bytes

        test = bre_bytes(control.pattern).test
        for index in range(self.seen, len(self.lines)):
            if test(self.lines[index].removesuffix(b"\n")):
                return index
            if not index & 1023:
                await self.proc.budget.yield_turn()
        return None

    async def _cut_at(self, target: int, control: _Control, where: str, *, write: bool) -> None:
        if target > len(self.lines) - (control.kind == "n") or target < self.at:
            raise _CsplitFailed(f"{quote(control.text)}: line number out of range{where}")
        if write:
            await self.write(self.at, target)
        self.at = target + (1 if self.o.suppress and target < len(self.lines) else 0)
        self.seen = max(self.seen, self.at)

    async def write(self, start: int, end: int) -> None:
        if self.o.elide and start >= end:
            return
        name = self.o.prefix + _suffix(self.o, self.number)
        self.number += 1
        writer = await self.proc.create(name)
        size = 0
        for at in range(start, end, _MANY):
            data = b"".join(self.lines[at : min(at + _MANY, end)])
            size += len(data)
            writer.write(data)
            if writer.full:
                await writer.drain()
            await self.proc.budget.yield_turn()
        await self.proc.close(writer)
        self.names.append(name)
        if not self.o.quiet:
            await self.proc.emit(f"{size}\n".encode())


COMMANDS = [
    Command(
        "csplit",
        csplit,
        CsplitOptions,
        summary="Output pieces of FILE separated by PATTERN(s).",
        usage="[OPTION]... FILE PATTERN...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("read error: {}", fatal=True),
    ),
]
