"""What a running awk program touches: its record and fields, its special variables, its streams.

Generated code calls these methods; nothing here knows the program.
"""

from __future__ import annotations

import asyncio
import errno
import random
import re
from collections.abc import Callable
from typing import Any

from ramet.commands.awk import regex
from ramet.commands.awk.inplace import Inplace
from ramet.commands.awk.lexer import as_bytes, unescape
from ramet.commands.awk.records import Records
from ramet.commands.awk.splitting import by_widths, contents, cut, split_blanks
from ramet.commands.awk.tree import AwkError
from ramet.commands.awk.values import Array, Field, Value, compare, num, number_text
from ramet.core.errors import reason
from ramet.core.proc import Proc
from ramet.core.streams import BytesReader, Writer, pipe


class NextRecord(Exception):
    """`next` inside a function."""


class NextFile(Exception):
    """`nextfile` inside a function."""


class ExitProgram(Exception):
    def __init__(self, status: int | None) -> None:
        super().__init__(status)
        self.status = status


_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=", re.ASCII)
_FLUSH = 1 << 16
_NO_FIELD = Field("")


class Sink:
    """An output of the program: a file, or the input of a command that runs when it is closed."""

    __slots__ = ("command", "parts", "writer")

    def __init__(self, writer: Writer | None, command: str | None = None) -> None:
        self.writer, self.command = writer, command
        self.parts: list[str] = []

    def write(self, text: str) -> None:
        self.parts.append(text)
        if self.writer is not None and len(self.parts) >= 512:
            self.flush()

    def flush(self) -> None:
        if self.writer is not None and self.parts:
            self.writer.write("".join(self.parts).encode("utf-8", "surrogateescape"))
            self.parts.clear()


class Source:
    """An input of the program: a file, or the output of a command that is running."""

    __slots__ = ("records", "task")

    def __init__(self, records: Records, task: asyncio.Task[int] | None = None) -> None:
        self.records, self.task = records, task


class Runtime:
    def __init__(self, proc: Proc, utf8: bool) -> None:
        self.proc, self.utf8 = proc, utf8
        self.seconds = proc.budget.limits.regex_seconds
        self.longest = proc.budget.limits.string_bytes // 4  # a character may take four bytes
        self.namespace: dict[str, Any] = {}
        self.functions: dict[str, tuple[bool, tuple[bool, ...]]] = {}
        self.assign: Callable[[str, Value], None] = lambda name, value: None
        self.out: list[str] = []
        self.sinks: dict[tuple[str, str], Sink] = {}
        self.sources: dict[tuple[str, str], Source] = {}
        self.stdout: Writer = proc.stdout
        self.edit: Inplace | None = None
        self.watches_files = False
        """Whether the program has BEGINFILE rules."""
        self.main: Records | None = None
        self.main_name = ""
        self.argument = 1
        self.used_file = False
        self.got: Value = None
        self.random = random.Random(0)
        self.seed: Value = 1.0
        # The record, its fields, and which of the two is out of date.
        self.record = ""
        self.record_is_text = False
        self.fields: list[str] | None = []
        self.stale = False
        self.cells: dict[int, Value] = {}
        # Special variables.
        self.NR = self.FNR = 0.0
        self.RSTART, self.RLENGTH = 0.0, 0.0
        self.special: dict[str, Value] = {
            "FS": " ", "OFS": " ", "ORS": "\n", "RS": "\n", "SUBSEP": "\x1c", "CONVFMT": "%.6g", "OFMT": "%.6g",
            "FILENAME": None, "RT": None, "FPAT": "[^[:space:]]+", "FIELDWIDTHS": "", "IGNORECASE": 0.0, "ERRNO": None,
            "ARGIND": 0.0, "BINMODE": 0.0, "LINT": 0.0, "TEXTDOMAIN": "messages",
        }  # fmt: skip
        self.fs, self.ofs, self.ors, self.rs, self.subsep = " ", " ", "\n", "\n", "\x1c"
        self.convfmt = self.ofmt = "%.6g"
        self.icase = False
        self.split_by = "FS"
        self.splitter: Callable[[str], list[str]] = split_blanks
        self.environ = Array({name: Field(value if utf8 else as_bytes(value)) for name, value in proc.env.items()})
        self.argv = Array()
        self.procinfo = Array({"version": "5.2.1", "pid": 1.0, "ppid": 0.0, "uid": 1000.0, "FS": "FS"})

    # ------------------------------------------------------------------ special variables

    def get(self, name: str) -> Value:
        return self.special[name]

    def set(self, name: str, value: Value) -> Value:
        """Assign to a special variable, with what follows from it."""
        self.special[name] = value
        text = self.text(value)
        if name == "OFS":
            # Fields that were changed before this are joined by what OFS was then.
            self.get_record()
            self.ofs = text
        elif name == "ORS":
            self.ors = text
        elif name == "SUBSEP":
            self.subsep = text
        elif name == "CONVFMT":
            self.convfmt = text
        elif name == "OFMT":
            self.ofmt = text
        elif name == "RS":
            if text != self.rs:
                self.rs = text
                for records in (self.main, *(source.records for source in self.sources.values())):
                    if records is not None:
                        records.respell()
        elif name in ("FS", "FPAT", "FIELDWIDTHS"):
            self.get_fields()
            self.split_by = name
            self._choose_splitter()
        elif name == "IGNORECASE":
            self.get_fields()
            self.icase = num(value) != 0.0
            self._choose_splitter()
        return value

    def _choose_splitter(self) -> None:
        self.fs = self.text(self.special["FS"])
        if self.split_by == "FPAT":
            self.splitter = self._by_content(self.text(self.special["FPAT"]))
        elif self.split_by == "FIELDWIDTHS":
            self.splitter = by_widths(self.text(self.special["FIELDWIDTHS"]))
        else:
            self.splitter = self.splitter_for(self.fs, record=True)

    def splitter_for(self, fs: str, record: bool = False) -> Callable[[str], list[str]]:
        """How a text is cut by a field separator."""
        if fs == " ":
            return split_blanks
        if fs == "":
            return list
        if record and self.rs == "" and len(fs) == 1:
            # In paragraph mode a newline always separates fields too.
            fs = "[" + ("\\" if fs in "\\]^-" else "") + fs + "\n]"
        if len(fs) == 1:
            return lambda text: text.split(fs) if text else []
        if record and self.rs == "":
            fs = f"({fs})|\n"
        rx = self.rx(fs)
        return lambda text: [piece for piece, _ in cut(rx, text)]

    def _by_content(self, pattern: str) -> Callable[[str], list[str]]:
        rx = self.rx(pattern)
        return lambda text: [text[start:stop] for start, stop in contents(rx, text)]

    # ------------------------------------------------------------------ conversions

    def compare(self, left: Value, right: Value) -> int:
        """Like `compare`, where IGNORECASE may be set."""
        if self.icase:
            left, right = _lowered(left), _lowered(right)
        return compare(left, right, self.convfmt)

    def folded(self, text: str) -> str:
        return text.lower() if self.icase else text

    def text(self, value: Value) -> str:
        if value.__class__ is float:
            return number_text(value, self.convfmt)
        if value.__class__ is Array:
            raise AwkError("fatal: attempt to use array in a scalar context")
        return value or ""

    def shown(self, value: Value) -> str:
        """A value as `print` shows it."""
        if value.__class__ is float:
            return number_text(value, self.ofmt)
        return value or ""

    def rx(self, source: str) -> regex.Rx:
        return regex.compiled(source, self.icase, self.utf8, self.seconds)

    def dynamic(self, value: Value) -> regex.Rx:
        """The regular expression that a value spells."""
        if value.__class__ is regex.Rx:
            return value
        try:
            return regex.compiled(self.text(value), self.icase, self.utf8, self.seconds)
        except AwkError as error:
            raise AwkError("fatal: invalid regexp: " + str(error).removeprefix("cmd. line:1: error: ")) from None

    # ------------------------------------------------------------------ record and fields

    def set_record(self, text: str, from_program: bool = False) -> None:
        self.record = text
        self.record_is_text = from_program
        self.fields = None
        self.stale = False
        if self.cells:
            self.cells = {}

    def get_record(self) -> str:
        if self.stale:
            assert self.fields is not None
            self.record = self.ofs.join(self.fields)
            self.stale = False
        return self.record

    def get_fields(self) -> list[str]:
        fields = self.fields
        if fields is None:
            fields = self.fields = self.splitter(self.record)
        return fields

    def field(self, number: int) -> Value:
        """`$n` as a value."""
        if number == 0:
            text = self.get_record()
            return text if self.record_is_text else Field(text)
        if self.cells and number in self.cells:
            return self.cells[number]
        fields = self.fields
        if fields is None:
            fields = self.fields = self.splitter(self.record)
        if number < 0:
            raise AwkError(f"fatal: attempt to access field {number}")
        return Field(fields[number - 1]) if number <= len(fields) else _NO_FIELD

    def field_text(self, number: int) -> str:
        if number == 0:
            return self.get_record()
        fields = self.fields
        if fields is None:
            fields = self.fields = self.splitter(self.record)
        if number < 0:
            raise AwkError(f"fatal: attempt to access field {number}")
        return fields[number - 1] if number <= len(fields) else ""

    def set_field(self, number: int, value: Value) -> Value:
        if number == 0:
            self.set_record(self.text(value), value.__class__ is str or value.__class__ is float)
            return value
        if number < 0:
            raise AwkError(f"fatal: attempt to access field {number}")
        if number > 10_000_000:
            raise AwkError(f"fatal: field number {number} is too large")
        fields = self.get_fields()
        while len(fields) < number:
            fields.append("")
        fields[number - 1] = self.text(value)
        if value.__class__ is Field:
            self.cells.pop(number, None)
        else:
            # What the program stores keeps its type: a string stays one even if it looks like a number.
            self.cells[number] = value
        self.stale = True
        return value

    def get_nf(self) -> float:
        fields = self.fields
        if fields is None:
            fields = self.fields = self.splitter(self.record)
        return float(len(fields))

    def set_nf(self, value: Value) -> Value:
        count = int(num(value))
        if count < 0:
            raise AwkError("fatal: NF set to negative value")
        if count > 10_000_000:
            raise AwkError("fatal: NF set to a value that is too large")
        fields = self.get_fields()
        if count < len(fields):
            del fields[count:]
            for number in [known for known in self.cells if known > count]:
                del self.cells[number]
        else:
            fields.extend([""] * (count - len(fields)))
        self.stale = True
        return value

    # ------------------------------------------------------------------ main input

    def next_now(self) -> bool:
        """Make the next record current, if one is split already."""
        main = self.main
        if main is None or main.at >= len(main.batch):
            return False
        self.set_record(main.batch[main.at])
        self._count(main)
        return True

    def _count(self, main: Records) -> None:
        at = main.at
        main.at = at + 1
        self.NR += 1.0
        self.FNR += 1.0
        self.special["RT"] = main.term if main.terms is None else main.terms[at]

    async def fill(self) -> bool:
        """More records of the main input; False at the end of it."""
        await self.breathe()
        while True:
            if self.main is not None:
                try:
                    if await self.main.fill(self.rs, self.icase):
                        return True
                except OSError as error:
                    if error.errno == errno.EPIPE:
                        raise
                    self.complain_input(error)
                await self.close_main()
            if not await self.open_next():
                return False

    def warn(self, message: str) -> None:
        """A warning, with the place in the input where the program is."""
        self.flush()
        where = ""
        if self.NR:
            where = f"(FILENAME={self.special['FILENAME'] or '-'} FNR={int(self.FNR)}) "
        self.proc.complain(f"cmd. line:1: {where}warning: {message}")

    def complain_input(self, error: OSError) -> None:
        what = reason(error)
        if error.errno == errno.EISDIR:
            self.proc.complain(f"warning: command line argument `{self.main_name}' is a directory: skipped")
        else:
            self.proc.complain(f"warning: command line argument `{self.main_name}': {what}")

    async def close_main(self) -> None:
        if self.main is not None:
            reader, self.main = self.main.reader, None
            await self.proc.close(reader)
            await self.end_file()
            await self.end_edit()

    async def end_edit(self) -> None:
        """What was printed since the file was opened takes its place."""
        if self.edit is not None and self.edit.busy:
            self.flush()
            self.stdout = self.proc.stdout
            await self.edit.end(self.text(self.namespace.get("v_inplace::suffix")))

    async def begin_file(self) -> bool:
        """BEGINFILE rules; replaced by the program that has some. Whether the file is to be read."""
        return True

    async def end_file(self) -> None:
        """ENDFILE rules; replaced by the program that has some."""

    async def open_next(self) -> bool:
        """Open the next operand, doing the assignments on the way; standard input when there was no file at all."""
        while self.argument < int(num(self.special.get("ARGC", 1.0))):
            key = str(self.argument)
            self.argument += 1
            word = self.text(self.argv.get(key))
            if not word:
                continue
            if _ASSIGNMENT.match(word):
                name, _, value = word.partition("=")
                self.assign(name, Field(unescape(value)))
                continue
            self.used_file = True
            self.main_name = word
            self.special["ARGIND"] = float(self.argument - 1)
            try:
                reader = await self.proc.open(word)
            except OSError as error:
                if await self._skipped(word, error):
                    continue
                message = f"fatal: cannot open file `{word}' for reading: {reason(error)}"
                raise AwkError(f"cmd. line:1: {message}" if self.watches_files else message) from None
            if await self._opened(Records(reader, self.utf8), word):
                return True
        if not self.used_file:
            self.used_file = True
            self.main_name = "-"
            return await self._opened(Records(self.proc.stdin, self.utf8), None)
        return False

    async def _skipped(self, word: str, error: OSError) -> bool:
        """Whether the program goes on without a file that cannot be opened."""
        if self.watches_files:
            self.FNR = 0.0
            self.special["FILENAME"] = word
            self.special["ERRNO"] = reason(error)
            if not await self.begin_file():
                return True
        if error.errno == errno.EISDIR:
            self.complain_input(error)
            return True
        return False

    async def _opened(self, records: Records, name: str | None) -> bool:
        self.main = records
        self.FNR = 0.0
        self.special["FILENAME"] = name if name is not None else "-"
        if self.edit is not None and name is not None:
            self.flush()
            await self.edit.begin(name)
            self.stdout = self.edit.writer
        if self.watches_files:
            self.special["ERRNO"] = ""
            if not await self.begin_file():
                await self.close_main()
                return False
        return True

    async def next_file(self) -> None:
        await self.close_main()

    async def getline_main(self, keep: bool) -> float:
        """`getline` from the main input; with `keep` the record goes to `got` instead of `$0`."""
        main = self.main
        if main is None or main.at >= len(main.batch):
            if not await self.fill():
                return 0.0
            main = self.main
        assert main is not None
        text = main.batch[main.at]
        self._count(main)
        if keep:
            self.got = Field(text)
        else:
            self.set_record(text)
        return 1.0

    async def getline_file(self, name: str, keep: bool) -> float:
        key = ("<", name)
        if key not in self.sources:
            try:
                await self.flush_file(name)
                reader = await self.proc.open(name)
            except OSError as error:
                self.special["ERRNO"] = reason(error)
                return -1.0
            self.sources[key] = Source(Records(reader, self.utf8))
        return await self._getline(self.sources[key], keep)

    async def getline_command(self, command: str, keep: bool) -> float:
        key = ("|", command)
        if key not in self.sources:
            self.flush()
            reader, writer = pipe()

            async def run() -> int:
                try:
                    return await self.proc.run(["sh", "-c", command], stdout=writer)
                except BrokenPipeError:
                    return 141
                finally:
                    writer.close_now()

            self.sources[key] = Source(Records(reader, self.utf8), asyncio.ensure_future(run()))
        return await self._getline(self.sources[key], keep)

    async def getline_coprocess(self, command: str, keep: bool) -> float:
        key = ("|&", command)
        if key not in self.sources:
            await self._coprocess(command)
        if key in self.sinks:
            self.sinks[key].flush()
        return await self._getline(self.sources[key], keep)

    async def _coprocess(self, command: str) -> None:
        """Start a command that the program both writes to and reads from."""
        self.flush()
        key = ("|&", command)
        read_end, to = pipe()
        back, write_end = pipe()

        async def run() -> int:
            try:
                return await self.proc.run(["sh", "-c", command], stdin=read_end, stdout=write_end)
            except BrokenPipeError:
                return 141
            finally:
                read_end.close_now()
                write_end.close_now()

        self.sinks[key] = Sink(to)
        self.sources[key] = Source(Records(back, self.utf8), asyncio.ensure_future(run()))

    async def _getline(self, source: Source, keep: bool) -> float:
        records = source.records
        if records.at >= len(records.batch):
            try:
                if not await records.fill(self.rs, self.icase):
                    return 0.0
            except OSError as error:
                self.special["ERRNO"] = reason(error)
                return -1.0
        at = records.at
        records.at += 1
        self.special["RT"] = records.term if records.terms is None else records.terms[at]
        if keep:
            self.got = Field(records.batch[at])
        else:
            self.set_record(records.batch[at])
        return 1.0

    # ------------------------------------------------------------------ output

    def flush(self) -> None:
        if self.out:
            self.stdout.write("".join(self.out).encode("utf-8", "surrogateescape"))
            self.out.clear()

    def grown(self, text: str) -> str:
        """A text that may have grown, unless it grew beyond what one text may be."""
        if len(text) > self.longest:
            raise self.proc.budget.exceeded("string_bytes")
        return text

    def tidy(self) -> None:
        """Called every so often by loops: bounds the time and what is held back."""
        self.proc.budget.check()
        if len(self.out) > 4096:
            self.flush()

    async def breathe(self) -> None:
        """The same where waiting is possible: lets readers of our output run."""
        if len(self.out) > 4096 or (self.out and len(self.out[0]) > _FLUSH):
            self.flush()
        if self.stdout.full:
            self.flush()
            await self.stdout.drain()
        await self.proc.budget.breathe()

    async def sink(self, kind: str, name: str) -> Sink:
        """The output that `print > name`, `>> name` or `| name` writes to."""
        key = (kind if kind[0] == "|" else ">", name)
        found = self.sinks.get(key)
        if found is not None:
            return found
        if kind == "|&":
            await self._coprocess(name)
            return self.sinks[key]
        if kind == "|":
            self.flush()
            made = Sink(None, name)
        elif name in ("/dev/stdout", "/dev/fd/1", "-"):
            made = _Standard(self)
        else:
            if not name:
                raise AwkError("fatal: expression for `>' redirection has null string value")
            try:
                made = Sink(await self.proc.create(name, append=kind == ">>"))
            except OSError as error:
                raise AwkError(f"fatal: cannot redirect to `{name}': {reason(error)}") from None
        self.sinks[key] = made
        return made

    async def flush_file(self, name: str) -> None:
        found = self.sinks.get((">", name))
        if found is not None:
            found.flush()

    async def close(self, name: str, end: str = "") -> float:
        """close(): the exit status of a command, 0 for a file, -1 when nothing of that name is open.

        Of a command that is both written to and read from, `end` may close only the one or the other direction.
        """
        status = -1.0
        for kind in (">", "|", "|&"):
            sink = self.sinks.pop((kind, name), None) if end != "from" else None
            if sink is not None:
                status = await self._close_sink(sink)
        if end == "to":
            return status
        for kind in ("<", "|", "|&"):
            source = self.sources.pop((kind, name), None)
            if source is not None:
                status = await self._close_source(source)
        return status

    async def _close_sink(self, sink: Sink) -> float:
        if sink.command is not None:
            data = "".join(sink.parts).encode("utf-8", "surrogateescape")
            status = await self.proc.run(["sh", "-c", sink.command], stdin=BytesReader(data))
            return float(status)
        sink.flush()
        if sink.writer is not None:
            await self.proc.close(sink.writer)
        return 0.0

    async def _close_source(self, source: Source) -> float:
        await self.proc.close(source.records.reader)
        if source.task is not None:
            return float(await source.task)
        return 0.0

    async def close_all(self) -> None:
        """The end: commands get their input and run before the rest of our own output appears, as with gawk."""
        for key in list(self.sinks):
            await self._close_sink(self.sinks.pop(key))
        for key in list(self.sources):
            await self._close_source(self.sources.pop(key))
        self.flush()

    async def system(self, command: str) -> float:
        self.flush()
        for sink in self.sinks.values():
            sink.flush()
        status = await self.proc.run(["sh", "-c", command])
        return float(status)

    def fflush(self, *names: Value) -> float:
        self.flush()
        for sink in self.sinks.values():
            sink.flush()
        return 0.0


class _Standard(Sink):
    """`print > "/dev/stdout"`: the same stream as plain print."""

    __slots__ = ("_runtime",)

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(None)
        self._runtime = runtime

    def write(self, text: str) -> None:
        self._runtime.out.append(text)


__all__ = ["ExitProgram", "NextFile", "NextRecord", "Runtime"]


def _lowered(value: Value) -> Value:
    """A text in lower case that looks like a number wherever it did."""
    if value.__class__ is Field:
        return Field(value.lower())
    return value.lower() if value.__class__ is str else value
