"""Command sed: options, files, editing in place, and the choice between blocks and cycles."""

from __future__ import annotations

import errno
import functools
import os
import random
import re
import string
from dataclasses import dataclass, replace
from functools import partial

from ramet.commands.framework.command import Command, UsageError, flag, help_text, optional, ordered, several, value
from ramet.commands.framework.inputs import HELD, PART, is_unbuffered, is_utf8, leave, only_opens, slurp
from ramet.commands.framework.posix_regex import offload_long
from ramet.commands.sed.blocks import BlockChange, block_change
from ramet.commands.sed.machine import Need, SedMachine, SedOutput
from ramet.commands.sed.program import Flavour, Instruction, Kind, ScriptError, ScriptSource
from ramet.commands.sed.script import parse, place_behind
from ramet.concurrency.offload import offload, offload_large
from ramet.concurrency.sizes import HUGE
from ramet.core.errors import reason
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.resource import How
from ramet.core.stat import Attrs
from ramet.core.stat import Kind as FileKind
from ramet.core.streams import BLOCK, Capture, Reader, line_blocks, live
from ramet.patterns import MatchTimeout

_MOST_LINKS = 40


def _length(text: str) -> int:
    digits = re.match(r"\s*\d+", text)
    return int(digits[0]) if digits else 0


@dataclass(frozen=True, slots=True)
class SedOptions:
    quiet: bool = flag("-n", "--quiet", "--silent", help="suppress automatic printing of pattern space")
    scripts: tuple[str, ...] = several("-e", "--expression", metavar="SCRIPT", help="add SCRIPT to the commands")
    script_files: tuple[str, ...] = several("-f", "--file", metavar="FILE", help="add the contents of FILE")
    follow: bool = flag("--follow-symlinks", help="follow symlinks when processing in place")
    in_place: str | None = optional("-i", "--in-place", metavar="SUFFIX", const="", help="edit files in place")
    line_length: int | None = value(
        "-l", "--line-length", metavar="N", convert=_length, help="line-wrap for `l' (default: COLS - 1, or 70)"
    )
    posix: bool = flag("--posix", help="disable all GNU extensions")
    extended: bool = flag("-E", "-r", "--regexp-extended", help="use extended regular expressions in the script")
    separate: bool = flag("-s", "--separate", help="consider files as separate")
    sandbox: bool = flag("--sandbox", help="operate in sandbox mode (disable e/r/w commands)")
    unbuffered: bool = flag("-u", "--unbuffered", help="load minimal amounts of data")
    null_data: bool = flag("-z", "--null-data", "--zero-terminated", help="separate lines by NUL characters")
    order: tuple[tuple[str, object], ...] = ordered()


async def sed(proc: Proc, o: SedOptions, operands: list[str]) -> int:
    operands = list(operands)
    sources = await _sources(proc, o, operands)
    if sources is None:
        proc.stderr.write(encode(help_text(COMMANDS[0])))
        return 1
    # GNU checks only these two characters, unlike its documentation.
    quiet = o.quiet or sources[0].text.startswith("#n")
    flavour = Flavour(o.extended, o.posix, is_utf8(proc), proc.budget.limits.regex_seconds, o.sandbox, o.null_data)
    flavour = replace(flavour, lax_references=o.posix or "POSIXLY_CORRECT" in proc.env)
    try:
        texts = [source.text for source in sources]
        program = await offload_long(proc, texts, partial(_parsed, tuple(sources), flavour))
        run = _SedRun(proc, o, program, quiet, operands, place_behind(sources), texts)
        return await run.all()
    except ScriptError as error:
        for name in error.written:
            await _emptied(proc, name)
        proc.complain(str(error))
        return error.status
    except MatchTimeout as error:
        proc.complain(str(error))
        return 4


async def _emptied(proc: Proc, name: str) -> None:
    """Create a file that the script names, even if the script is wrong after that."""
    if name in ("/dev/stdout", "/dev/stderr"):
        return
    try:
        await proc.close(await proc.create(name))
    except OSError as error:
        raise UsageError(f"couldn't open file {name}: {reason(error)}", 4, hint=False) from None


async def _sources(proc: Proc, o: SedOptions, operands: list[str]) -> list[ScriptSource] | None:
    sources: list[ScriptSource] = []
    for name, stored in o.order:
        if name == "scripts":
            sources.append(ScriptSource(str(stored)))
        elif name == "script_files":
            try:
                data = await slurp(proc, str(stored))
            except OSError as error:
                raise UsageError(f"couldn't open file {stored}: {reason(error)}", 4, hint=False) from None
            text = data.decode("utf-8", "surrogateescape")
            sources.append(ScriptSource(text.removesuffix("\n"), str(stored), text.endswith("\n")))
    if not sources:
        if not operands:
            return None
        sources.append(ScriptSource(operands.pop(0)))
    return sources


def _line_length(proc: Proc) -> int:
    columns = _length(proc.env.get("COLS", ""))
    return columns - 1 if columns > 1 else 70


@functools.lru_cache(maxsize=128)
def _parsed(sources: tuple[ScriptSource, ...], flavour: Flavour) -> list[Instruction]:
    return parse(list(sources), flavour)


def _light(item: Instruction) -> bool:
    """Return whether an instruction costs the same for a block as for a line."""
    substitution = item.substitution
    return substitution is None or (substitution.matcher is not None and bool(substitution.matcher.literal))


class _SedRun:
    """One sed over its files."""

    def __init__(
        self,
        proc: Proc,
        o: SedOptions,
        program: list[Instruction],
        quiet: bool,
        operands: list[str],
        behind: str,
        texts: list[str],
    ) -> None:
        self.proc, self.o, self.program, self.quiet, self.behind = proc, o, program, quiet, behind
        self.words = operands or ["-"]
        self.nothing_to_edit = o.in_place is not None and not operands
        self.target = proc.cwd
        self.mode: int | None = None
        self.temporary: Path | None = None
        self.next_word = 0
        self.in_place = o.in_place is not None
        self.unbuffered = o.unbuffered or is_unbuffered(proc)
        self.delim = b"\0" if o.null_data else b"\n"
        self.status = 0
        self.reader: Reader | None = None
        self.word = "-"
        self.rest = b""
        self.sources: dict[bytes, Reader | None] = {}
        self.files: dict[str, SedOutput] = {}
        self.out = SedOutput(None if self.in_place else proc.stdout, self.delim)
        self.texts = texts
        """Source of the program: a long one has patterns that are slow to compile."""

    async def all(self) -> int:
        await self.open_outputs()
        if self.nothing_to_edit:
            raise ScriptError("no input files", 4)
        change = None
        if not (self.in_place or self.o.null_data):
            most = self.proc.budget.limits.string_bytes
            compile_blocks = partial(block_change, self.program, self.quiet, len(self.words) > 1, most)
            change = await offload_long(self.proc, self.texts, compile_blocks)
        try:
            with live(self.proc.stdin, self.out.flush):
                await (self.by_line() if change is None else self.by_block(change))
        except ScriptError as error:
            await self.discard()
            self.proc.complain(str(error))
            return error.status
        except BaseException:
            await self.discard()
            raise
        finally:
            await self.close()
        return self.status

    async def discard(self) -> None:
        """Abandon an edit in place; the file stays unchanged."""
        if self.reader is not None and self.in_place:
            await self.proc.close(self.reader)
            self.reader = None
        if self.temporary is not None:
            await self.proc.fs.remove(self.temporary)
            self.temporary = None

    # ------------------------------------------------------------------ files

    async def open_outputs(self) -> None:
        names: list[str] = []
        for item in self.program:
            if item.name in "wW":
                names.append(item.text.decode("utf-8", "surrogateescape"))
            elif item.substitution is not None and item.substitution.file is not None:
                names.append(item.substitution.file)
        for name in names:
            if name in self.files:
                continue
            if name == "/dev/stdout" and not self.in_place and self.o.posix:
                # With --posix an ordinary file: written before the buffered output.
                self.files[name] = self.out.ahead = SedOutput(self.proc.stdout, self.delim)
                continue
            if name == "/dev/stdout" and not self.in_place:
                # The same stream, but missing newlines are tracked separately.
                self.files[name] = SedOutput(self.proc.stdout, self.delim, self.out.parts)
                continue
            try:
                self.files[name] = SedOutput(await self.proc.create(name), self.delim)
                if name == "/dev/stderr":
                    self.files[name].ahead, self.out.ahead = self.out.ahead, self.files[name]
            except OSError as error:
                raise ScriptError(f"couldn't open file {name}: {reason(error)}", 4) from None

    async def next_file(self) -> bool:
        """Open the next operand that can be opened."""
        await self.finish_file()
        while self.next_word < len(self.words):
            self.word = self.words[self.next_word]
            self.next_word += 1
            try:
                if self.o.follow and self.word != "-":
                    self.word = await self.followed(self.word)
                if self.in_place:
                    stat = await self.proc.fs.stat(self.proc.path(self.word), follow=True)
                    if stat.kind is not FileKind.FILE:
                        self.fail(f"couldn't edit {self.word}: not a regular file", 4)
                        continue
                self.reader = await self.proc.open(self.word, dash=not self.in_place)
                if self.in_place:
                    await self.begin_edit()
            except OSError as error:
                if only_opens(error):  # Read errors are fatal.
                    name = "stdin" if self.word == "-" else self.word
                    raise ScriptError(f"read error on {name}: {reason(error)}", 4) from None
                self.fail(f"can't read {self.word}: {reason(error)}", 2)
                continue
            return True
        return False

    async def followed(self, word: str) -> str:
        """Follow a chain of links and return the final name."""
        shown, seen = word, 0
        while True:
            path = self.proc.path(word)
            try:
                target = (await self.proc.fs.stat(path, follow=False)).target
            except OSError as error:
                raise ScriptError(f"couldn't readlink {shown}: {reason(error)}", 4) from None
            if target is None:
                return word
            seen += 1
            if seen > _MOST_LINKS:
                raise ScriptError(f"couldn't follow symlink {shown}: {os.strerror(errno.ELOOP)}", 4)
            word = target if target.startswith("/") or "/" not in word else f"{word.rpartition('/')[0]}/{target}"

    def fail(self, message: str, status: int) -> None:
        self.proc.complain(message)
        self.status = max(self.status, status)

    async def finish_file(self) -> None:
        if self.reader is None:
            return
        reader, self.reader = self.reader, None
        await self.proc.close(reader)
        if self.in_place:
            await self.replace_file(b"".join(self.out.parts))
            self.out.parts.clear()
            self.out.missing = False

    async def begin_edit(self) -> None:
        """Create the temporary file of an edit in place; not needed on backends without modes."""
        fs, path = self.proc.fs, self.proc.path(self.word)
        if self.o.follow:
            path = await fs.resolve(path)
        self.target, self.mode = path, (await fs.stat(path, follow=True)).mode
        self.temporary = None
        if self.mode is None:
            return
        name = "sed" + "".join(random.choices(string.ascii_letters + string.digits, k=6))
        temporary = self.proc.path(f"{path.parent}/{name}")
        try:
            await fs.write(temporary, b"", How.CREATE)
        except OSError as error:
            where = self.word.rpartition("/")[0] or ("/" if self.word.startswith("/") else ".")
            raise ScriptError(f"couldn't open temporary file {where}/{name}: {reason(error)}", 4) from None
        self.temporary = temporary

    async def replace_file(self, data: bytes) -> None:
        """Replace the file by the edited text; with a suffix, keep a backup."""
        fs, path = self.proc.fs, self.target
        await fs.write(self.temporary or path, data)
        if self.o.in_place:
            suffix = self.o.in_place
            name = suffix.replace("*", path.name) if "*" in suffix else path.name + suffix
            try:
                await fs.rename(path, self.proc.path(f"{path.parent}/{name}"))
            except OSError as error:
                raise ScriptError(f"cannot rename {self.word}: {reason(error)}", 4) from None
        if self.temporary is not None:
            if self.mode is not None:
                await fs.setattr(self.temporary, Attrs(mode=self.mode))
            await fs.rename(self.temporary, path)
            self.temporary = None

    async def close(self) -> None:
        self.out.flush()
        await self.finish_file()
        await self.close_sources()
        for output in self.files.values():
            output.flush()
            if output.writer is not None:
                await self.proc.close(output.writer)

    async def close_sources(self) -> None:
        for reader in self.sources.values():
            if reader is not None:
                await self.proc.close(reader)
        self.sources.clear()

    # ------------------------------------------------------------------ whole blocks

    async def by_block(self, change: BlockChange) -> None:
        missing = False
        drops = self.program[0].name != "s"
        size = BLOCK if all(map(_light, self.program)) else 2 * PART
        while await self.next_file():
            assert self.reader is not None
            try:
                async for block in line_blocks(self.reader, size=size):
                    changed = await offload_large(self.proc.budget, len(block), partial(change, block))
                    if changed or not drops:
                        self.out.parts.append(b"\n" + changed if missing else changed)
                        missing = not (changed if drops else block).endswith(b"\n")
                    await self.yield_turn()
            except OSError as error:
                if error.errno == errno.EPIPE:
                    raise
                self.fail(f"read error on {self.word}: {reason(error)}", 4)

    # ------------------------------------------------------------------ cycles

    async def by_line(self) -> None:
        make = partial(
            SedMachine,
            self.program,
            quiet=self.quiet,
            delim=self.delim,
            separate=self.o.separate or self.in_place,
            posix=self.o.posix or "POSIXLY_CORRECT" in self.proc.env,
            line_length=_line_length(self.proc) if self.o.line_length is None else self.o.line_length,
            out=self.out,
            files=self.files,
            behind=self.behind,
            most=self.proc.budget.limits.string_bytes,
        )
        machine = await offload_long(self.proc, self.texts, make)
        horizon = _horizon(self.program)
        steps = machine.run()
        step, budget = partial(next, steps, None), self.proc.budget
        while True:
            need = await offload(budget, step) if machine.is_large else step()
            if need is Need.LINES:
                if horizon is not None and machine.number >= horizon and self.may_stop(machine):
                    await self.pass_rest()
                    return
                await self.fill(machine)
            elif need is Need.FILE:
                await self.next_input(machine)
            elif need is Need.TURN:
                await self.yield_turn()
            elif need is Need.RUN:
                await self.run_command(machine)
            elif need is Need.HEAD:
                await self.write_heads()
            elif need is Need.QUEUE:
                await self.write_queue(machine)
            else:
                break
        self.status = self.status or machine.status
        if machine.at < len(machine.lines) or self.rest:
            await self.after_quit(machine)

    def may_stop(self, machine: SedMachine) -> bool:
        """Return whether the rest of the input is unaffected: copied as it is, or dropped."""
        return machine.at >= len(machine.lines) and not machine.separate and not self.out.missing

    async def pass_rest(self) -> None:
        if self.quiet:
            # The other files are opened only to report errors.
            while await self.next_file():
                pass
            return
        # The rest of this file continues the output; the next file begins a line.
        begun, unfinished = False, bool(self.rest)
        if self.rest:
            self.out.parts.append(self.rest)
            self.rest = b""
        while True:
            while self.reader is not None:
                block = await self.reader.read()
                if not block:
                    break
                self.out.parts.append(self.delim + block if begun and unfinished else block)
                begun, unfinished = False, not block.endswith(self.delim)
                await self.yield_turn()
            if not await self.next_file():
                return
            begun = True

    async def after_quit(self, machine: SedMachine) -> None:
        """Return unread input after `q`; in an edit in place the rest of the file is lost."""
        left = machine.lines[machine.at :]
        tail = self.delim.join(left) + (self.delim if left and not machine.unfinished else b"") + self.rest
        if self.reader is self.proc.stdin and self.reader is not None:
            leave(self.reader, tail, 0 if self.unbuffered else HELD)
        self.rest = b""

    async def yield_turn(self) -> None:
        if not self.in_place and (self.unbuffered or sum(map(len, self.out.parts)) >= HELD):
            self.out.flush()
        if self.proc.stdout.full:
            await self.proc.stdout.drain()
        await self.proc.budget.yield_turn()

    async def fill(self, machine: SedMachine) -> None:
        """Read more lines of the current file."""
        await self.yield_turn()
        assert self.reader is not None
        parts = [self.rest] if self.rest else []
        self.rest, held = b"", len(self.rest)
        while True:
            try:
                # Small reads: the cycles of one read must fit into a slice of the event loop.
                block = await self.reader.read(PART // 2)
            except OSError as error:
                if error.errno == errno.EPIPE:
                    raise
                self.fail(f"read error on {self.word}: {reason(error)}", 4)
                block = b""
            if not block:
                machine.file_done = True
                data = b"".join(parts)
                machine.lines, machine.at = ([data] if data else []), 0
                machine.large_lines = held > HUGE
                machine.unfinished = bool(data)
                return
            cut = block.rfind(self.delim)
            if cut >= 0:
                break
            parts.append(block)
            held += len(block)
            self.reader.hold(held)
        parts.append(block[:cut])
        self.rest = block[cut + 1 :]
        machine.lines, machine.at = b"".join(parts).split(self.delim), 0
        machine.large_lines = held > HUGE
        machine.unfinished = False

    async def next_input(self, machine: SedMachine) -> None:
        """Open the next file."""
        if await self.next_file():
            machine.file_done = False
            machine.lines, machine.at = [], 0
            machine.coming = self.word
            if machine.separate:
                machine.reset()
                await self.close_sources()
        else:
            machine.input_done = True

    async def write_queue(self, machine: SedMachine) -> None:
        for kind, data in machine.queue:
            if kind == "a":
                self.out.text(data)
            elif kind == "r":
                await self.append_file(data)
            else:
                line = await self.read_line(data)
                if line:
                    self.out.text(line)
        machine.queue.clear()

    async def write_heads(self) -> None:
        """Write the files of `0r FILE` before the first line."""
        for item in self.program:
            if item.name == "r" and item.first is not None and item.first.kind is Kind.ZERO:
                await self.append_file(item.text)

    async def run_command(self, machine: SedMachine) -> None:
        """Run the command of the script and capture its output; its stderr is ours."""
        self.out.flush()
        sink = Capture()
        await self.proc.run(["sh", "-c", machine.command.decode("utf-8", "surrogateescape")], stdout=sink)
        machine.answer = sink.getvalue()

    async def source(self, name: str) -> Reader | None:
        """Open a file of `r` or `R`; None if it cannot be opened, which counts as empty."""
        try:
            return await self.proc.open(name, dash=False)
        except OSError as error:
            if only_opens(error):  # Read errors are fatal.
                raise ScriptError(f"read error on {name}: {reason(error)}", 4) from None
            return None

    async def append_file(self, raw: bytes) -> None:
        name = raw.decode("utf-8", "surrogateescape")
        self.out.complete()
        reader = await self.source(name)
        if reader is None:
            return
        try:
            data = await reader.read_all()
        except OSError as error:
            raise ScriptError(f"read error on {name}: {reason(error)}", 4) from None
        finally:
            await self.proc.close(reader)
        if data:
            self.out.text(data)

    async def read_line(self, raw: bytes) -> bytes:
        if raw not in self.sources:
            self.sources[raw] = await self.source(raw.decode("utf-8", "surrogateescape"))
        reader = self.sources[raw]
        return b"" if reader is None else await reader.readline(self.delim)


def _horizon(program: list[Instruction]) -> int | None:
    """Return the last line that any instruction can affect; None if unbounded."""
    last = 0
    for item in program:
        first, second = item.first, item.second
        if first is None or item.negated or first.kind is not Kind.LINE:
            return None
        end = first.first
        if second is not None:
            if second.kind is Kind.LINE:
                end = max(end, second.first)
            elif second.kind is Kind.PLUS and len(program) == 1:
                end += second.first
            else:
                return None
        if item.name in "nNDq" and item.name:
            return None
        last = max(last, end)
    return last


COMMANDS = [
    Command(
        "sed",
        sed,
        SedOptions,
        summary="Stream editor for filtering and transforming text.",
        usage="[OPTION]... {script-only-if-no-other-script} [input-file]...",
        details="""
            If no -e or -f option is given, the first operand is the script; the others are files. What the `e' command
            runs, it runs in the shell of the workspace.
        """,
        examples=(
            ("sed 's/old/new/g' file", "replace everywhere"),
            ("sed -n '10,20p' file", "print some lines"),
            ("sed -i.bak '/^#/d' file", "edit in place, keep a backup"),
        ),
        ignored=("-b --binary",),
        original="GNU sed 4.9",
        usage_on_error="full",
        write_error=("couldn't flush stdout: ", 4),
    ),
]
