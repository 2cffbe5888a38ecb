"""The state of a running awk program: special variables, the record and its fields, conversions.

- Generated code calls these methods; nothing here knows the program.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

from ramet.commands.awk.run import regex
from ramet.commands.awk.run.fields import by_widths, contents, cut, split_blanks
from ramet.commands.awk.run.inplace import Inplace
from ramet.commands.awk.run.records import Records
from ramet.commands.awk.run.symtab import Symbols
from ramet.commands.awk.run.values import Array, Field, Value, compare, looks_numeric, num, number_text
from ramet.commands.awk.syntax.lexer import as_bytes
from ramet.commands.awk.syntax.sources import Sources
from ramet.commands.awk.syntax.tree import AwkError
from ramet.core.proc import Proc
from ramet.core.streams import Writer
from ramet.patterns.parse import AWK

NO_FIELD = Field("")
"""A field beyond the last one."""


class Sink:
    """An output of the program: a file, or the input of a command that runs when it is closed."""

    __slots__ = ("command", "parts", "serial", "writer")

    def __init__(self, writer: Writer | None, command: str | None = None) -> None:
        self.writer, self.command = writer, command
        self.serial = 0
        """When it was opened, compared to the other streams of the program."""
        self.parts: list[str] = []

    def write(self, text: str) -> None:
        self.parts.append(text)
        if self.writer is not None and len(self.parts) >= 512:
            self.flush()

    def flush(self) -> None:
        if self.writer is not None and self.parts:
            self.writer.write("".join(self.parts).encode("utf-8", "surrogateescape"))
            self.parts.clear()


class Unbuffered(Sink):
    """Standard error, which is not buffered."""

    __slots__ = ()

    def write(self, text: str) -> None:
        self.parts.append(text)
        self.flush()


class AwkSource:
    """An input of the program: a file, or the output of a command that is running."""

    __slots__ = ("records", "serial", "task")

    def __init__(self, records: Records, task: asyncio.Task[int] | None = None) -> None:
        self.records, self.task = records, task
        self.serial = 0


class State:
    def __init__(self, proc: Proc, utf8: bool) -> None:
        self.proc, self.utf8 = proc, utf8
        self.seconds = proc.budget.limits.regex_seconds
        self.longest = proc.budget.limits.string_bytes // 4  # a character may take four bytes
        self.namespace: dict[str, Any] = {}
        self.functions: dict[str, tuple[bool, tuple[bool, ...]]] = {}
        self.looks_numeric: Callable[[str], float | None] = looks_numeric
        self.assign: Callable[[str, Value], None] = lambda name, value: None
        self.out: list[str] = []
        self.sinks: dict[tuple[str, str], Sink] = {}
        self.sources: dict[tuple[str, str], AwkSource] = {}
        self.opened = 0
        self.stdout: Writer = proc.stdout
        self.edit: Inplace | None = None
        self.extensions = True
        self.regex = AWK
        """How regular expressions are read."""
        self.given: frozenset[str] = frozenset()
        """The operands: in a sandbox the only readable files."""
        self.origin = Sources()
        self.lines: Mapping[str, Sequence[int]] = {}
        """The source line of each line of generated code, by code name."""
        self.resting = 0
        """The last line of the entry point that ran last."""
        self.rules_end = 0
        """The last line of the rules, if any."""
        self.begun = False
        """Whether the program has started."""
        self.calls = 0
        """Calls of functions that may run long, which check the budget now and then."""
        self.looked: set[str] = set()
        self.odd_escapes: set[str] = set()
        """Checked patterns, and the unknown escapes that were reported."""
        self.touched: set[str] = set()
        """Used variables, of those that `typeof` reads."""
        self.sandbox = False
        """Whether the program may neither redirect nor run commands."""
        self.watches_files = False
        """Whether the program has BEGINFILE rules."""
        self.main: Records | None = None
        self.main_name = ""
        self.argument = 1
        self.used_file = False
        self.got: Value = None
        self.random = random.Random(0)
        self.seed: Value = 1.0
        # The record, its fields, and whether the record is stale.
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
        self.procinfo = _procinfo(proc)
        self.symtab = Symbols(self)
        self.functab = Array()

    # ------------------------------------------------------------------ special variables

    def get(self, name: str) -> Value:
        return self.special[name]

    def set(self, name: str, value: Value) -> Value:
        """Assign to a special variable, with what follows from it."""
        self.special[name] = value
        text = self.text(value)
        if not self.extensions and name in ("IGNORECASE", "FPAT", "FIELDWIDTHS"):
            if name == "IGNORECASE":
                self.proc.complain("cmd. line:1: warning: `IGNORECASE' is a gawk extension")
            return value
        if not self.extensions and name == "RS":
            text = text[:1]
        if name == "OFS":
            # Fields changed before this are joined by the old OFS.
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
            if len(text) > 1:
                self.dynamic(text)  # which may be invalid
            if text != self.rs:
                paragraphs = "" in (text, self.rs)
                if paragraphs:
                    self.get_fields()
                self.rs = text
                if paragraphs:
                    self._choose_splitter()
                for records in (self.main, *(source.records for source in self.sources.values())):
                    if records is not None:
                        records.respell()
        elif name in ("FS", "FPAT", "FIELDWIDTHS"):
            self.get_fields()
            self.split_by = self.procinfo["FS"] = name
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
        """Return how a text is cut by a field separator."""
        if fs == " ":
            return split_blanks
        if fs == "":
            return list
        if len(fs) == 1:
            # In paragraph mode a newline also separates fields, unless FS is a pattern.
            lines = record and self.rs == "" and fs.isascii()
            return lambda text: (text.replace("\n", fs) if lines else text).split(fs) if text else []
        rx = self.dynamic(fs)
        return lambda text: [piece for piece, _ in cut(rx, text)]

    def _by_content(self, pattern: str) -> Callable[[str], list[str]]:
        rx = self.dynamic(pattern)
        return lambda text: [text[start:stop] for start, stop in contents(rx, text)]

    @property
    def idle(self) -> int:
        """The line after which the program waits for input; 0 before it has done anything."""
        return self.rules_end if self.NR and self.rules_end else self.resting

    def place(self) -> str:
        """Return where in its source the program is."""
        return self.reached() or self.origin.place(1)

    def reached(self) -> str:
        """Return the current source position; empty before the program has run."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if (lines := self.lines.get(frame.f_code.co_filename)) is not None:
                return self.origin.place(lines[frame.f_lineno - 1])
            frame = frame.f_back
        return self.origin.place(self.idle) if self.idle else ""

    def line_of(self, error: BaseException) -> int:
        """Return the line in which an error happened."""
        line, trace = self.idle or 1, error.__traceback__
        while trace is not None:
            if (lines := self.lines.get(trace.tb_frame.f_code.co_filename)) is not None:
                line = lines[trace.tb_lineno - 1]
            trace = trace.tb_next
        return line

    def reading(self) -> str:
        """Return where in its input the program is, if it has begun to read."""
        return f"(FILENAME={self.special['FILENAME'] or '-'} FNR={int(self.FNR)}) " if self.NR else ""

    def flush(self) -> None:
        """Write the buffered output."""
        raise NotImplementedError

    def touch(self, name: str, value: Value) -> Value:
        self.touched.add(name)
        return value

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

    def misused(self, name: str, array: Value) -> Value:
        """Raise the error for an array used as a scalar, or for an empty one that became a scalar."""
        if array:
            raise AwkError(f"fatal: attempt to use array `{name}' in a scalar context")
        raise AwkError(f"fatal: attempt to use scalar `{name}' as an array")

    def shown(self, value: Value) -> str:
        """Return a value as `print` shows it."""
        if value.__class__ is float:
            return number_text(value, self.ofmt)
        return value or ""

    def look(self, source: str) -> None:
        """Report unknown escapes in a pattern, each once."""
        self.looked.add(source)
        for char in regex.odd_escapes(source, self.extensions):
            if char not in self.odd_escapes:
                self.odd_escapes.add(char)
                self.flush()
                where = f"{self.place()}: {self.reading()}" if "R" in self.namespace and self.begun else ""
                self.proc.complain(where + regex.odd_escape_words(char))

    def rx(self, source: str) -> regex.Rx:
        return regex.compiled(source, self.icase, self.utf8, self.seconds, self.regex)

    def dynamic(self, value: Value) -> regex.Rx:
        """Return the regular expression that a value spells."""
        if value.__class__ is regex.Rx:
            return value
        source = self.text(value)
        if "\\" in source and source not in self.looked:
            self.look(source)
        try:
            return self.rx(source)
        except AwkError as error:
            raise regex.wrong(error) from None

    # ------------------------------------------------------------------ record and fields

    def grown(self, text: str) -> str:
        """Return a text that may have grown, unless it grew beyond what one text may be."""
        if len(text) > self.longest:
            raise self.proc.budget.exceeded("string_bytes")
        return text

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
            if len(self.ofs) * len(self.fields) > self.longest:
                raise self.proc.budget.exceeded("string_bytes")
            self.record = self.grown(self.ofs.join(self.fields))
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
        if number > len(fields):
            return NO_FIELD
        return Field(fields[number - 1])

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
            self.set_record(self.grown(self.text(value)), value.__class__ is str or value.__class__ is float)
            return value
        if number < 0:
            raise AwkError(f"fatal: attempt to access field {number}")
        if number > 10_000_000:
            raise AwkError(f"fatal: field number {number} is too large")
        fields = self.get_fields()
        while len(fields) < number:
            fields.append("")
            self.cells[len(fields)] = NO_FIELD
        fields[number - 1] = self.grown(self.text(value))
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


def _procinfo(proc: Proc) -> Array:
    user = proc.user
    ids = {"uid": user.uid, "euid": user.uid, "gid": user.gid, "egid": user.gid, "pid": 1, "ppid": 0, "pgrpid": 1}
    return Array(
        {name: float(number) for name, number in ids.items()}
        | {"version": "5.2.1", "FS": "FS", "platform": "posix", "strftime": "%a %b %e %H:%M:%S %Z %Y"}
        | {"argv": Array({str(place): Field(word) for place, word in enumerate(proc.argv)})}
    )


def _lowered(value: Value) -> Value:
    """Return a text in lower case that looks like a number wherever it did."""
    if value.__class__ is Field:
        return Field(value.lower())
    return value.lower() if value.__class__ is str else value
