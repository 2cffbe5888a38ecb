"""The awk command: options, the order of BEGIN, input and END, and the exit status."""

from __future__ import annotations

import asyncio
import errno
import re
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from ramet.commands.awk.compile.program import Compiled, compiled_program
from ramet.commands.awk.run.builtins import set_number
from ramet.commands.awk.run.inplace import Inplace
from ramet.commands.awk.run.records import Records
from ramet.commands.awk.run.streams import ExitProgram, NextFile, NextRecord, Runtime
from ramet.commands.awk.run.values import Field, Value
from ramet.commands.awk.syntax.builtin_names import BUILTINS
from ramet.commands.awk.syntax.dialect import Dialect
from ramet.commands.awk.syntax.lexer import IN_NAMESPACE, KEYWORDS, as_bytes, unescape
from ramet.commands.awk.syntax.sources import Sources, read_program
from ramet.commands.awk.syntax.tree import AwkError
from ramet.commands.framework.command import (
    Command,
    UsageError,
    flag,
    help_text,
    ordered,
    several,
    value,
    version_text,
)
from ramet.commands.framework.inputs import is_utf8
from ramet.commands.framework.posix_regex import offload_long
from ramet.concurrency.offload import checkpoint, offload
from ramet.concurrency.recursion import Room
from ramet.core.errors import reason
from ramet.core.limits import Cancelled, TimeUp
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import live
from ramet.patterns import MatchTimeout

_ROOM = Room(20_000)
_MOMENT = 0.01
"""Seconds of work in a thread between two deliveries of output."""
_PACE = 0.002
"""Seconds of work on the event loop between two checks of the budget."""


@dataclass(frozen=True, slots=True)
class AwkOptions:
    separator: str | None = value("-F", "--field-separator", metavar="FS", help="the value of FS")
    variables: tuple[str, ...] = several("-v", "--assign", metavar="VAR=VAL", help="assign before the program begins")
    files: tuple[str, ...] = several("-f", "--file", metavar="FILE", help="read the program from FILE")
    sources: tuple[str, ...] = several("-e", "--source", metavar="TEXT", help="use TEXT as program source")
    includes: tuple[str, ...] = several(
        "-i", "--include", metavar="FILE", help="read more of the program from FILE; `inplace` edits the files in place"
    )
    executed: str | None = value("-E", "--exec", metavar="FILE", help="like -f, and the last option")
    posix: bool = flag("-P", "--posix", help="the language of POSIX only; numbers are read as C reads them")
    traditional: bool = flag("-c", "--traditional", help="the language without GNU's extensions")
    nondecimal: bool = flag(
        "-n", "--non-decimal-data", help="read octal and hexadecimal numbers of the input as what they look like"
    )
    asked: bool = flag("-h", help="say how the command is used")
    rights: bool = flag("-C", "--copyright", help="say under which terms the command may be used")
    bytes_only: bool = flag("-b", "--characters-as-bytes", help="treat all input as single-byte characters")
    sandbox: bool = flag("-S", "--sandbox", help="refuse system(), redirections and other programs")
    order: tuple[tuple[str, object], ...] = ordered()


async def awk(proc: Proc, o: AwkOptions, operands: list[str]) -> int:
    operands = list(operands)
    if o.asked or o.rights:
        await proc.emit(encode(help_text(COMMANDS[0]) if o.asked else version_text(COMMANDS[0])))
        return 0
    sources = Sources()
    try:
        text = await _program_text(proc, o, operands, sources)
        if text is None:
            raise UsageError("usage: awk [OPTION]... -f PROGFILE | 'PROGRAM' [FILE]...", 1, hint=False)
        utf8 = is_utf8(proc) and not o.bytes_only
        if not utf8:
            text, operands = as_bytes(text), [as_bytes(word) for word in operands]
        dialect = Dialect(
            utf8,
            extensions=not (o.posix or o.traditional),
            posix=o.posix,
            nondecimal=o.nondecimal and not o.traditional and not o.posix,
            ignores_case=any(word.startswith("IGNORECASE=") for word in (*o.variables, *operands)),
        )
        compiled = await offload_long(proc, (text,), partial(compiled_program, text, dialect))
        for warning in (*compiled.program.warnings, *compiled.facts.warnings):
            proc.complain(sources.located(warning))
        runtime = Runtime(proc, utf8)
        runtime.sandbox, runtime.given = o.sandbox, frozenset(operands)
        runtime.extensions, runtime.regex = dialect.extensions, dialect.regex
        runtime.odd_escapes |= compiled.program.odd_escapes
        runtime.origin = sources
        if "inplace" in o.includes:
            runtime.edit = Inplace(proc)
        with live(proc.stdin, runtime.flush):
            return await _Run(proc, o, compiled, runtime, operands).all()
    except (AwkError, MatchTimeout) as error:
        for message in (*getattr(error, "warnings", ()), str(error)):
            proc.complain(sources.in_reading(message).replace(IN_NAMESPACE, "::"))
        return error.status if isinstance(error, AwkError) else 2
    except RecursionError:
        proc.complain("fatal: function calls are nested too deeply")
        return 2


async def _program_text(proc: Proc, o: AwkOptions, operands: list[str], sources: Sources) -> str | None:
    for setting in o.variables:
        if "=" not in setting:
            raise UsageError(f"`{setting}' argument to `-v' not in `var=value' form", 1, hint=False)
    return sources.text if await read_program(proc, sources, o.order, operands) else None


class _Run:
    def __init__(self, proc: Proc, o: AwkOptions, compiled: Compiled, runtime: Runtime, operands: list[str]) -> None:
        self.proc, self.o, self.compiled, self.runtime = proc, o, compiled, runtime
        self.status = 0
        self.offloads = False
        """Whether the program has taken long before: END then runs in a thread."""
        self.pace = 64
        """Records per part of a batch, adapted to the time of the last part."""
        self.space = compiled.load(runtime)
        runtime.argv.update({"0": "awk"} | {str(i): Field(word) for i, word in enumerate(operands, 1)})
        runtime.special["ARGC"] = float(len(operands) + 1)
        runtime.assign = self.assign
        runtime.watches_files = "begin_file" in self.space
        if "begin_file" in self.space:
            runtime.begin_file = self.begin_file  # type: ignore[method-assign]
        if "end_file" in self.space:
            runtime.end_file = partial(self.entered, "end_file", "ENDFILE")  # type: ignore[method-assign]

    async def begin_file(self) -> bool:
        try:
            await self.entered("begin_file", "BEGINFILE")
        except NextFile:
            return False
        return True

    async def enter(self, place: str) -> None:
        if place in self.compiled.waiting:
            await self.space[place]()
        elif self.offloads or place in self.compiled.lasting:
            await offload(self.proc.budget, self.space[place])
        else:
            self.space[place]()
        self.runtime.resting = self.compiled.last_lines[place]

    def assign(self, name: str, stored: Value) -> None:
        """Set a variable from the command line."""
        facts = self.compiled.facts
        name = name.removeprefix("awk::").replace("::", IN_NAMESPACE)
        if name in self.runtime.special or name in ("NF", "NR", "FNR", "RSTART", "RLENGTH"):
            if name == "NF":
                self.runtime.set_nf(stored)
            elif name in ("NR", "FNR", "RSTART", "RLENGTH"):
                set_number(self.runtime, name, stored)
            else:
                self.runtime.set(name, stored)
        elif ("", name) in facts.arrays:
            raise AwkError(f"fatal: cannot use array `{name}' as a variable")
        else:
            self.space[f"v_{name}"] = stored

    async def all(self) -> int:
        runtime = self.runtime
        if self.o.separator is not None:
            runtime.set("FS", unescape(self.o.separator))
        for setting in self.o.variables:
            name, _, text = setting.partition("=")
            if not re.fullmatch(r"([A-Za-z_]\w*::)?[A-Za-z_]\w*", name, re.ASCII):
                raise AwkError(f"fatal: `{name}' is not a legal variable name")
            if name in BUILTINS or name in KEYWORDS:
                raise AwkError(f"fatal: cannot use gawk builtin `{name}' as variable name")
            if name in self.compiled.program.functions:
                raise AwkError(f"cmd. line:1: error: function name `{name}' previously defined", 1)
            self.assign(name, Field(unescape(text if runtime.utf8 else as_bytes(text), runtime.odd)))
        try:
            with _ROOM if self.compiled.program.functions else nullcontext():
                await self.phases()
            await runtime.end_edit()
        except AwkError as error:
            runtime.flush()
            message = _located(str(error), runtime, runtime.line_of(error))
            self.proc.complain(message.replace(IN_NAMESPACE, "::"))
            self.status = error.status
        except (asyncio.CancelledError, Cancelled, TimeUp):
            await runtime.abandon()
            raise
        finally:
            try:
                await runtime.close_all()
            except OSError as error:
                if error.errno == errno.EPIPE:
                    raise
                self.proc.complain(f"{runtime.reading()}warning: error writing standard output: {reason(error)}")
                self.status = self.status or 1
            if runtime.edit is not None and runtime.edit.busy:
                await runtime.edit.abandon()
        return self.status

    async def phases(self) -> None:
        space = self.space
        self.runtime.begun = True
        try:
            if "begin" in space:
                await self.entered("begin", "BEGIN")
            if "rules" in space or "end" in space or "begin_file" in space or "end_file" in space:
                await self.records()
        except ExitProgram as stop:
            if stop.status is not None:
                self.status = stop.status & 0xFF
        if "end" in space:
            try:
                await self.entered("end", "END")
            except ExitProgram as stop:
                if stop.status is not None:
                    self.status = stop.status & 0xFF

    async def entered(self, place: str, rule: str) -> None:
        try:
            await self.enter(place)
        except (NextRecord, NextFile) as wrong:
            if isinstance(wrong, NextFile) and rule == "BEGINFILE":
                raise
            word = "next" if isinstance(wrong, NextRecord) else "nextfile"
            raise AwkError(f"fatal: `{word}' cannot be called from a `{rule}' rule") from None

    async def records(self) -> None:
        runtime, compiled = self.runtime, self.compiled
        rules = self.space.get("rules")
        waiting = "rules" in compiled.waiting
        while True:
            while True:
                main = runtime.main
                if main is None or main.at >= len(main.batch):
                    break
                if rules is None:
                    self.skip(len(main.batch) - main.at)
                    continue
                if main.large:
                    self.offloads = True
                fast = compiled.fast_rules(runtime, main.plain)
                if fast is not None:
                    if main.large or "rules" in compiled.lasting:
                        batch = main.batch[main.at :] if main.at else main.batch
                        main.at = len(main.batch)
                        await offload(runtime.proc.budget, partial(fast, batch))
                    else:
                        await self.paced(main, fast)
                    break
                try:
                    if (main.large or "rules" in compiled.lasting) and not waiting:
                        await offload(runtime.proc.budget, partial(self.several, rules))
                        continue
                    if not main.at & 7 and runtime.due():
                        self.offloads = True
                        await runtime.yield_turn()
                    runtime.next_now()
                    if waiting:
                        await rules()
                    else:
                        rules()
                except NextRecord:
                    pass
                except NextFile:
                    await runtime.next_file()
            if not await runtime.fill():
                return

    async def paced(self, main: Records, fast: Callable[[list[str]], None]) -> None:
        """Run the rules on a batch, in parts of `_PACE` seconds."""
        batch = main.batch
        while main.at < len(batch):
            some = batch[main.at : main.at + self.pace] if main.at or self.pace < len(batch) else batch
            main.at += len(some)
            began = time.perf_counter()
            fast(some)
            took = time.perf_counter() - began
            self.pace = max(16, min(int(len(some) * _PACE / max(took, 1e-9)), 2 * self.pace))
            if self.runtime.due():
                self.offloads = True
                await self.runtime.yield_turn()

    def several(self, rules: Callable[[], None]) -> None:
        """Run the rules on records of the batch for `_MOMENT` seconds."""
        runtime, until = self.runtime, time.monotonic() + _MOMENT
        while time.monotonic() < until and runtime.next_now():
            checkpoint()
            try:
                rules()
            except NextRecord:
                pass

    def skip(self, count: int) -> None:
        """Skip records that no rule reads; END sees the last one."""
        runtime = self.runtime
        main = runtime.main
        assert main is not None
        main.at += count - 1
        runtime.NR += count - 1
        runtime.FNR += count - 1
        runtime.next_now()


def _located(message: str, runtime: Runtime, line: int) -> str:
    """Add source line and input position to a fatal error, except if a file cannot be opened."""
    if message.startswith("fatal: cannot open file `"):
        return message
    if message.startswith("fatal: ") and runtime.NR:
        name = runtime.special["FILENAME"] or "-"
        message = f"(FILENAME={name} FNR={int(runtime.FNR)}) {message}"
    elif not message.startswith(("fatal: ", "error: ")):
        return message
    return f"{runtime.origin.place(line)}: {message}"


def _after_exec(words: list[str]) -> list[str]:
    """End the options behind `-E FILE`; spell `-W NAME` as `--NAME`."""
    for place, word in enumerate(words):
        if word == "-W" and place + 1 < len(words):
            return [*words[:place], *_after_exec([f"--{words[place + 1]}", *words[place + 2 :]])]
        if word.startswith("-W") and not word.startswith("--"):
            return [*words[:place], *_after_exec([f"--{word[2:]}", *words[place + 1 :]])]
        if word in ("-E", "--exec") and place + 2 < len(words) and words[place + 2] != "--":
            return [*words[: place + 2], "--", *words[place + 2 :]]
        if word.startswith("--exec=") or (word.startswith("-E") and len(word) > 2):
            return [*words[: place + 1], "--", *words[place + 1 :]]
        if not word.startswith("-"):
            break
    return words


_USAGE = "[OPTION]... -f PROGFILE | 'PROGRAM' [FILE]..."
COMMANDS = [
    Command(
        name,
        awk,
        AwkOptions,
        summary="Scan files for patterns and process them.",
        usage=_USAGE,
        examples=(
            ("awk '{print $2}' file", "the second column"),
            ("awk -F, '$3 > 5 {s += $3} END {print s}' f.csv", "sum what is over five"),
        ),
        ignored=(
            "-O --optimize",
            "-s --no-optimize",
            "-r --re-interval",
            "-N --use-lc-numeric",
            "-t --lint-old",
        ),
        refused={
            "-l= --load=": "dynamic loading of libraries is not supported",
            "-M --bignum": "arbitrary precision arithmetic is not supported",
            "-L[= --lint[=": "lint checking is not supported",
            "-d[= --dump-variables[=": "listing the variables is not supported",
            "-o[= --pretty-print[=": "printing the program is not supported",
            "-p[= --profile[=": "profiles are not supported",
            "-g --gen-pot": "message catalogs are not supported",
            "-I --trace": "programs are not compiled to instructions that could be shown",
            "-D --debug[=": "the debugger needs a terminal",
        },
        operands_first=True,
        rewrite=_after_exec,
        bad_usage=1,
        original="GNU Awk 5.2.1" if name in ("awk", "gawk") else "",
        version_letters="V" if name in ("awk", "gawk") else "",
    )
    for name in ("awk", "gawk", "mawk", "nawk")
]
