"""Command bc: read programs, parse and run them line by line; an error ends its line only."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from functools import partial
from typing import Final

from ramet.commands.framework.command import Command, flag, parse, shown
from ramet.commands.framework.inputs import PART
from ramet.commands.framework.stdin_errors import StdinError
from ramet.commands.math.bc.machine import BcBreak, BcContinue, BcMachine, BcQuit, BcReturn
from ramet.commands.math.bc.numbers import Trouble
from ramet.commands.math.bc.parser import BcParser, SyntaxTrouble
from ramet.commands.math.bc.tokens import BcToken, tokens
from ramet.concurrency.offload import offload_large
from ramet.concurrency.sizes import BATCH, LONG_SCRIPT, SMALL
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class BcOptions:
    mathlib: bool = flag("-l", "--mathlib", help="use the predefined math routines")
    quiet: bool = flag("-q", "--quiet", help="don't print initial banner")
    standard: bool = flag("-s", "--standard", help="non-standard bc constructs are errors")
    warn: bool = flag("-w", "--warn", help="warn about non-standard bc constructs")
    interactive: bool = flag("-i", "--interactive", help="force interactive mode")


async def bc(proc: Proc, o: BcOptions, operands: list[str]) -> int:
    usual, words = parse(COMMANDS[0], proc.env.get("BC_ENV_ARGS", "").split())
    operands = [*words, *operands]
    mathlib = o.mathlib or (usual is not None and usual.mathlib)
    machine = BcMachine(proc, mathlib=mathlib, scale=20 if mathlib else 0)
    length = proc.env.get("BC_LINE_LENGTH", "")
    if length.isdigit():
        machine.line_length = int(length) if int(length) != 1 else 70
    try:
        for word in operands:
            try:
                reader = await proc.open(word)
                text = decode(await reader.read_all())
                await proc.close(reader)
            except OSError as error:
                del error
                proc.stderr.write(encode(f"File {shown(word)} is unavailable.\n"))
                return 1
            await _program(machine, text, word)
        await _standard_input(machine)
    except BcQuit:
        pass
    await machine.flush()
    return 0


async def _standard_input(machine: BcMachine) -> None:
    """Run piped input as it arrives, so that interactive use through a pipe works."""
    proc = machine.proc
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    pending, line, tried, held = "", 1, 0, 0
    parts: list[str] = []
    """Input after `pending` without a line end yet."""
    while block := await proc.stdin.read(PART // 4):
        parts.append(decoder.decode(block))
        held += len(parts[-1])
        proc.stdin.hold(held)
        await proc.budget.yield_turn()
        if "\n" not in parts[-1]:
            continue
        pending = "".join((pending, *parts))
        parts.clear()
        cut = pending.rfind("\n") + 1
        if tried > SMALL and cut < 2 * tried:
            continue  # checked again when it has doubled
        tried = cut
        whole = pending[:cut]
        if await offload_large(proc.budget, cut, partial(_complete, whole)):
            await _program(machine, whole, "(standard_in)", line)
            await machine.flush()
            line += pending.count("\n", 0, cut)
            pending, tried = pending[cut:], 0
        held = len(pending)
    parts.append(decoder.decode(b"", True))
    pending = "".join((pending, *parts))
    if not pending.endswith("\n"):
        # An unfinished line is a syntax error; `quit` works when it is read.
        items = tokens(pending)
        words = [token for token in items if token.kind not in ("newline", "end")]
        if not words or any(token.text == "quit" for token in words):
            return
        machine.proc.stderr.write(b"(standard_in) 1: syntax error\n")
        return
    await _program(machine, pending, "(standard_in)", line)


_QUOTED: Final = re.compile(r'"[^"]*"|/\*.*?\*/|#[^\n]*', re.DOTALL)
_HEAD: Final = re.compile(r"\s*(?:define|if|while|for)\b[^{;]*\)\s*|.*\belse\s*", re.DOTALL)


def _complete(text: str) -> bool:
    """Return whether lines of a program are complete and can run."""
    code = _QUOTED.sub("", text) if any((mark in text) for mark in ('"', "/*", "#")) else text
    if '"' in code or ("/*" in code) or code.endswith("\\\n"):
        return False
    last = code.rstrip("\n").rpartition("\n")[2]
    if code.count("{") > code.count("}"):
        return False
    # A cheap test first: the pattern is slow on a long line.
    return not last.rstrip().endswith((")", "else")) or _HEAD.fullmatch(last) is None


def _troubles(line: list[BcToken], machine: BcMachine) -> list[str]:
    """Return the errors of a line: illegal characters, and a syntax error of the rest."""
    found = [f"illegal character: {token.text}" for token in line if token.kind == "bad"]
    rest = [token for token in line if token.kind != "bad"]
    try:
        if not found:
            raise SyntaxTrouble
        BcParser([*rest, BcToken("newline", "\n"), BcToken("end", "")], machine).line_deep()
    except SyntaxTrouble:
        found.append("syntax error")
    return found


async def _program(machine: BcMachine, text: str, name: str, first: int = 1) -> None:
    items = await offload_large(machine.proc.budget, len(text), partial(tokens, text), LONG_SCRIPT)
    parser = BcParser(items, machine)
    while True:
        start = parser.at
        try:
            run = await offload_large(machine.proc.budget, parser.line_tokens(), parser.line_deep, BATCH)
        except SyntaxTrouble as wrong:
            await machine.flush()
            line = first + sum(t.text.count("\n") for t in items[: parser.at + 1])
            while parser.peek().kind not in ("newline", "end"):
                parser.at += 1
            for text in [str(wrong)] if wrong.args else _troubles(items[start : parser.at], machine):
                machine.proc.stderr.write(encode(f"{name} {line}: {text}\n"))
            if parser.peek().kind == "end":
                return
            parser.at += 1
            continue
        if run is None:
            return
        try:
            await run(machine)
        except Trouble as trouble:
            await machine.flush()
            machine.depth = 0
            machine.tell("error", trouble.spot or parser.spot, trouble.text)
        except (BcBreak, BcContinue, BcReturn):
            pass
        except RecursionError:
            machine.proc.stderr.write(b"Runtime error: nested too deeply\n")
        await machine.proc.budget.yield_turn()


COMMANDS = [
    Command(
        "bc",
        bc,
        BcOptions,
        summary="An arbitrary precision calculator language.",
        usage="[OPTION]... [FILE]...",
        examples=[("echo 'scale=4; 10/3' | bc", "3.3333"), ("echo 's(1)' | bc -l", "with the math library")],
        version_letters="v",
        help_letters="h",
        stdin_error=StdinError("(standard_in) 1: read() in flex scanner failed", fatal=True, named=False),
    ),
]
