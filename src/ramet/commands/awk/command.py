"""The awk command: options, the order of BEGIN, input and END, and the exit status."""

from __future__ import annotations

import asyncio
import errno
import re
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial

from ramet.commands.awk.compile.program import Compiled, compiled_program
from ramet.commands.awk.run.builtins import set_number
from ramet.commands.awk.run.dumping import dump_variables, print_profile, print_program
from ramet.commands.awk.run.inplace import Inplace
from ramet.commands.awk.run.libraries import WARNINGS, check
from ramet.commands.awk.run.records import Records
from ramet.commands.awk.run.regex import compiled as compile_pattern
from ramet.commands.awk.run.streams import ExitProgram, NextFile, NextRecord, Runtime
from ramet.commands.awk.run.values import Field, Value
from ramet.commands.awk.syntax.builtin_names import BUILTINS
from ramet.commands.awk.syntax.dialect import Dialect
from ramet.commands.awk.syntax.lexer import IN_NAMESPACE, KEYWORDS, as_bytes, unescape
from ramet.commands.awk.syntax.parser import parse
from ramet.commands.awk.syntax.printing import messages
from ramet.commands.awk.syntax.sources import Sources, read_program
from ramet.commands.awk.syntax.tree import AwkError
from ramet.commands.framework.command import (
    Command,
    UsageError,
    flag,
    help_text,
    optional,
    ordered,
    several,
    value,
    version_text,
)
from ramet.commands.framework.inputs import is_utf8
from ramet.commands.framework.posix_regex import patiently
from ramet.concurrency.offload import checkpoint, offload, offload_large
from ramet.concurrency.recursion import Room
from ramet.concurrency.sizes import MANY
from ramet.core.errors import reason
from ramet.core.limits import Cancelled, TimeUp
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import live
from ramet.patterns import LONG, MatchTimeout

_ROOM = Room(20_000)
_MOMENT = 0.01
"""Seconds of work in a thread before its results are looked at."""
_PACE = 0.002
"""Seconds for which records are worked on at once."""


@dataclass(frozen=True, slots=True)
class AwkOptions:
    separator: str | None = value("-F", "--field-separator", metavar="FS", help="the value of FS")
    variables: tuple[str, ...] = several("-v", "--assign", metavar="VAR=VAL", help="assign before the program begins")
    files: tuple[str, ...] = several("-f", "--file", metavar="FILE", help="read the program from FILE")
    sources: tuple[str, ...] = several("-e", "--source", metavar="TEXT", help="use TEXT as program source")
    includes: tuple[str, ...] = several(
        "-i", "--include", metavar="FILE", help="read more of the program from FILE; `inplace` edits the files in place"
    )
    libraries: tuple[str, ...] = several(
        "-l", "--load", metavar="LIB", help="load LIB: ordchr, time, readfile, readdir, filefuncs, fnmatch, rwarray ..."
    )
    executed: str | None = value("-E", "--exec", metavar="FILE", help="like -f, and the last option")
    posix: bool = flag("-P", "--posix", help="the language of POSIX only; numbers are read as C reads them")
    traditional: bool = flag("-c", "--traditional", help="the language without GNU's extensions")
    nondecimal: bool = flag(
        "-n", "--non-decimal-data", help="read octal and hexadecimal numbers of the input as what they look like"
    )
    bignum: bool = flag("-M", "--bignum", help="whole numbers of any size; others are doubles as always")
    dump: str | None = optional(
        "-d",
        "--dump-variables",
        metavar="FILE",
        const="awkvars.out",
        help="write the global variables to FILE at the end",
    )
    pretty: str | None = optional(
        "-o",
        "--pretty-print",
        metavar="FILE",
        const="awkprof.out",
        help="write the program, laid out well, to FILE, and do not run it",
    )
    profile: str | None = optional(
        "-p",
        "--profile",
        metavar="FILE",
        const="awkprof.out",
        help="write the program to FILE at the end, with how often each of its parts ran",
    )
    template: bool = flag("-g", "--gen-pot", help="write the texts to be translated as a template, and do not run")
    lint: str | None = optional(
        "-L", "--lint", metavar="KIND", const="all", help="warn of what is dubious: all, fatal, invalid or no-ext"
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
            bignum=o.bignum,
            lint="" if o.lint is None else o.lint if o.lint in ("fatal", "invalid", "no-ext") else "all",
            ignores_case=any(word.startswith("IGNORECASE=") for word in (*o.variables, *operands)),
        )
        if o.template:
            program = parse(text, dialect, placed=True)
            assert program.places is not None
            for warning in program.places.misuses:
                proc.complain(sources.located(warning))
            name = o.files[0] if len(o.files) == 1 and not o.sources and not o.includes else ""
            await proc.emit(encode(messages(program, name)))
            return 0
        counted = o.pretty is not None or o.profile is not None
        compiled = await patiently(proc, (text,), partial(compiled_program, text, dialect, counted))
        for warning in (*compiled.program.warnings, *compiled.facts.warnings):
            proc.complain(sources.located(warning))
        if o.lint == "fatal" and compiled.facts.warnings:
            raise AwkError(compiled.facts.warnings[0].replace("warning: ", "fatal: ", 1))
        for library in compiled.program.libraries:
            if library in WARNINGS:
                proc.complain(WARNINGS[library])
        if o.pretty is not None:
            await print_program(proc, compiled.program, o.pretty)
            return 0
        runtime = await offload_large(proc.budget, len(proc.argv), lambda: Runtime(proc, utf8), MANY)
        runtime.sandbox, runtime.given = o.sandbox, frozenset(operands)
        runtime.extensions, runtime.regex = dialect.extensions, dialect.regex
        runtime.odd_escapes |= compiled.program.odd_escapes
        runtime.origin = sources
        if "inplace" in o.includes:
            runtime.edit = Inplace(proc)
        with live(proc.stdin, runtime.flush):
            run = partial(_Run, proc, o, compiled, runtime, operands)
            return await (await offload_large(proc.budget, len(operands), run, MANY)).all()
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
    for library in o.libraries:
        check(library, "fatal", 2)
    if not await read_program(proc, sources, o.order, operands):
        return None
    for library in o.libraries:
        sources.begin_part()
        sources.add(f'@load "{library}"')
    return sources.text


_LARGE_NUMBER = re.compile(r"[0-9]{6}|[0-9][eE][0-9]")


class _Run:
    def __init__(self, proc: Proc, o: AwkOptions, compiled: Compiled, runtime: Runtime, operands: list[str]) -> None:
        self.proc, self.o, self.compiled, self.runtime = proc, o, compiled, runtime
        self.status = 0
        self.heavy = bool(compiled.facts.long_patterns)
        """Whether there is a regular expression so long that every use of it takes a while."""
        self.laden = _LARGE_NUMBER.search(runtime.origin.text) is not None
        """Whether something may be very long: what was made of a long record, or as wide as a number says."""
        self.pace = 64
        """Records that are worked on at once; it follows from how long the last ones took."""
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
        elif self.laden or place in self.compiled.lasting:
            await offload(self.proc.budget, self.space[place])
        else:
            self.space[place]()
        self.runtime.resting = self.compiled.last_lines[place]

    def assign(self, name: str, stored: Value) -> None:
        """A variable set from the command line."""
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

    async def expect(self, name: str, text: str) -> None:
        """A long text that will be used as a regular expression becomes one now, while others run."""
        if len(text) > LONG and name in self.compiled.facts.patterns:
            self.heavy = True
            await self.prepare(text, self.runtime.icase)

    async def prepare(self, text: str, icase: bool) -> None:
        runtime = self.runtime
        make = partial(compile_pattern, text, icase, runtime.utf8, runtime.seconds, runtime.regex)
        with suppress(AwkError):  # it is told where it is used
            await offload(self.proc.budget, make)

    async def all(self) -> int:
        runtime = self.runtime
        if self.o.separator is not None:
            await self.expect("FS", separator := unescape(self.o.separator))
            runtime.set("FS", separator)
        for setting in self.o.variables:
            name, _, text = setting.partition("=")
            if not re.fullmatch(r"([A-Za-z_]\w*::)?[A-Za-z_]\w*", name, re.ASCII):
                raise AwkError(f"fatal: `{name}' is not a legal variable name")
            if name in BUILTINS or name in KEYWORDS:
                raise AwkError(f"fatal: cannot use gawk builtin `{name}' as variable name")
            if name in self.compiled.program.functions:
                raise AwkError(f"cmd. line:1: error: function name `{name}' previously defined", 1)
            read = partial(unescape, text if runtime.utf8 else as_bytes(text), runtime.odd)
            given = Field(await patiently(self.proc, (text,), read))
            await self.expect(name, given)
            self.assign(name, given)
        for source in self.compiled.facts.long_patterns:
            for icase in (False, True):
                await self.prepare(source, icase)
        try:
            with _ROOM if self.compiled.program.functions else nullcontext():
                await self.phases()
            await runtime.end_edit()
            if self.o.dump is not None:
                await dump_variables(runtime, self.o.dump)
            if self.o.profile is not None:
                await print_profile(runtime, self.compiled, self.o.profile)
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
                if laden := main.long or self.heavy:
                    self.laden = True
                fast = None if main.long else compiled.fast_rules(runtime, main.plain)
                if fast is not None:
                    if laden or "rules" in compiled.lasting:
                        batch = main.batch[main.at :] if main.at else main.batch
                        main.at = len(main.batch)
                        await offload(runtime.proc.budget, partial(fast, batch))
                    else:
                        await self.paced(main, fast)
                    break
                try:
                    if (laden or "rules" in compiled.lasting) and not waiting:
                        await offload(runtime.proc.budget, partial(self.several, rules))
                        continue
                    if not main.at & 7 and runtime.due():
                        self.laden = True
                        await runtime.yield_turn()
                    runtime.next_now()
                    if waiting:
                        if laden:
                            await offload(runtime.proc.budget, runtime.get_fields)
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
        """The rules on a batch, as many records at once as are done in a moment."""
        batch = main.batch
        while main.at < len(batch):
            some = batch[main.at : main.at + self.pace] if main.at or self.pace < len(batch) else batch
            main.at += len(some)
            began = time.perf_counter()
            fast(some)
            took = time.perf_counter() - began
            self.pace = max(16, min(int(len(some) * _PACE / max(took, 1e-9)), 2 * self.pace))
            if self.runtime.due():
                self.laden = True
                await self.runtime.yield_turn()

    def several(self, rules: Callable[[], None]) -> None:
        """The rules on as many records of the batch as are done in a moment."""
        runtime, until = self.runtime, time.monotonic() + _MOMENT
        while time.monotonic() < until and runtime.next_now():
            checkpoint()
            try:
                rules()
            except NextRecord:
                pass

    def skip(self, count: int) -> None:
        """Records that no rule looks at; only the last one is seen, by END."""
        runtime = self.runtime
        main = runtime.main
        assert main is not None
        main.at += count - 1
        runtime.NR += count - 1
        runtime.FNR += count - 1
        runtime.next_now()


def _located(message: str, runtime: Runtime, line: int) -> str:
    """gawk says where in the input a fatal error happened; that a file cannot be opened lies in no line at all."""
    if message.startswith("fatal: cannot open file `"):
        return message
    if message.startswith("fatal: ") and runtime.NR:
        name = runtime.special["FILENAME"] or "-"
        message = f"(FILENAME={name} FNR={int(runtime.FNR)}) {message}"
    elif not message.startswith(("fatal: ", "error: ")):
        return message
    return f"{runtime.origin.place(line)}: {message}"


def _after_exec(words: list[str]) -> list[str]:
    """`-E FILE` is the last option, whatever the words behind it look like; `-W NAME` is `--NAME`."""
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
