"""Run a sed program over lines as a generator that never awaits.

It yields a `Need`; the driver provides `lines`, or writes `queue`, and resumes it: in a thread if `is_large`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from enum import Enum

from ramet.commands.sed import substitute
from ramet.commands.sed.pieces import Pieces
from ramet.commands.sed.program import AFTER_RUN, Address, Instruction, Kind, ScriptError, Substitution
from ramet.concurrency.sizes import HUGE
from ramet.core.streams import Writer
from ramet.patterns import Matcher


class Need(Enum):
    LINES = "lines"
    """More lines of the current file, or `file_done`."""
    FILE = "file"
    """The next file that can be read, or `input_done`."""
    TURN = "turn"
    """A yield of the event loop: the script has jumped many times."""
    QUEUE = "queue"
    """Write the texts and files appended in this cycle."""
    HEAD = "head"
    """Write the files of `0r`."""
    RUN = "run"
    """Run `command` and store its output in `answer`."""


class SedOutput:
    """Output of lines; a missing last newline is added only if more output follows."""

    __slots__ = ("ahead", "delim", "missing", "parts", "writer")

    def __init__(self, writer: Writer | None, delim: bytes = b"\n", parts: list[bytes] | None = None) -> None:
        self.writer, self.delim = writer, delim
        self.parts: list[bytes] = [] if parts is None else parts
        self.missing = False
        self.ahead: SedOutput | None = None
        """Output that is flushed before this one."""

    def complete(self) -> None:
        """Add the missing newline."""
        if self.missing:
            self.parts.append(self.delim)
            self.missing = False

    def line(self, data: bytes, end: bytes) -> None:
        if self.missing:
            self.complete()
        self.parts.append(data)
        if end:
            self.parts.append(end)
        else:
            self.missing = True

    def text(self, data: bytes) -> None:
        """Write text that includes its newline."""
        self.complete()
        self.parts.append(data)

    def flush(self) -> None:
        if self.ahead is not None:
            self.ahead.flush()
        if self.parts and self.writer is not None:
            self.writer.write(b"".join(self.parts))
            self.parts.clear()


class SedMachine:
    def __init__(
        self,
        program: list[Instruction],
        *,
        quiet: bool,
        delim: bytes,
        separate: bool,
        posix: bool,
        line_length: int,
        out: SedOutput,
        files: dict[str, SedOutput],
        behind: str,
        most: int,
    ) -> None:
        self.program, self.quiet, self.delim, self.separate = program, quiet, delim, separate
        self.posix, self.line_length, self.most = posix, line_length, most
        self.out, self.files = out, files
        self.behind = behind
        """Position at the end of the script, for errors at run time."""
        self.space = b""
        self._hold = Pieces(delim)
        self.end = self.hold_end = delim
        self.command = self.answer = b""
        self.number = 0
        self.name = "-"
        self.coming = self.name
        """File of the next line, which may be opened ahead to detect the last line."""
        self.lines: list[bytes] = []
        self.large_lines = False
        """Whether `lines` has a line of more than `HUGE` bytes."""
        self.at = 0
        self.unfinished = False
        """Whether the last of `lines` has no delimiter."""
        self.file_done = True
        self.input_done = False
        self.queue: list[tuple[str, bytes]] = []
        self.last_regex: Matcher | None = None
        self.replaced = False
        self.jumps = 0
        self.active = [instruction.first is not None and instruction.first.kind is Kind.ZERO for instruction in program]
        self.limit = [0] * len(program)
        self.begun = [False] * len(program)
        """Ranges with a line number as start that have begun: they begin only once."""
        self.has_heads = any(
            item.name == "r" and item.first is not None and item.first.kind is Kind.ZERO and item.second is None
            for item in program
        )
        self.selectors = [self._selector(index, item) for index, item in enumerate(program)]
        self.changes = [self._change(item) for item in program]
        self.needs_last = any(
            address is not None and address.kind is Kind.LAST
            for item in program
            for address in (item.first, item.second)
        )
        self.gathers = [self._gathers(index) for index in range(len(program))]
        self.is_last = False
        self.status = 0

    @property
    def hold(self) -> bytes:
        return self._hold.text()

    @hold.setter
    def hold(self, text: bytes) -> None:
        self._hold = Pieces(self.delim, text)

    @property
    def is_large(self) -> bool:
        """Whether a step works on more than `HUGE` bytes, so the driver offloads it."""
        return self.large_lines or len(self.space) >= HUGE or self._hold.size >= HUGE

    def _gathers(self, index: int) -> bool:
        """Return whether this is the `N` of `:a;N;$!ba` or `:a;$!{N;ba}`, which read all lines."""
        after = self.program[index + 1 : index + 2]
        if self.program[index].name != "N" or not after or after[0].name != "b":
            return False
        if self.selectors[index] is not None or not (self.selectors[index + 1] is None or _but_last(after[0])):
            return False
        before = self.program[index - 1] if index else None
        block = before is not None and before.name == "{" and _but_last(before)
        return after[0].target == index or (block and after[0].target == index - 1)

    # ------------------------------------------------------------------ addresses

    def _selector(self, index: int, item: Instruction) -> Callable[[], bool] | None:
        if item.first is None:
            return None if not item.negated else lambda: False
        if item.first.kind is Kind.ZERO and item.second is None:
            return lambda: False
        test = self._test(item.first) if item.second is None else self._range(index, item.first, item.second)
        if item.negated:
            return lambda: not test()
        return test

    def _test(self, address: Address) -> Callable[[], bool]:
        kind, first, step = address.kind, address.first, address.step
        if kind is Kind.LINE:
            return lambda: self.number == first
        if kind is Kind.STEP:
            return lambda: self.number >= first and (self.number - first) % step == 0
        if kind is Kind.LAST:
            return self._at_last
        matcher = address.matcher
        if matcher is None:
            return lambda: self._previous().test(self.space)
        if matcher.literal is not None:
            literal = matcher.literal

            def find() -> bool:
                self.last_regex = matcher
                return literal in self.space

            return find

        def search() -> bool:
            self.last_regex = matcher
            return matcher.engine(self.space).search(self.space, 0) is not None

        return search

    def _at_last(self) -> bool:
        """Return whether this is the last line; the lookahead moves `F` to the next file."""
        self.name = self.coming
        return self.is_last

    def _previous(self) -> Matcher:
        if self.last_regex is None:
            raise ScriptError(f"{self.behind}: no previous regular expression")
        return self.last_regex

    def _range(self, index: int, first: Address, second: Address) -> Callable[[], bool]:
        active, limit = self.active, self.limit
        starts = self._starts(index, first, second)
        counted = second.kind in (Kind.LINE, Kind.PLUS, Kind.MULTIPLE, Kind.ZERO)
        ends = None if counted else self._test(second)
        relative = second.kind in (Kind.PLUS, Kind.MULTIPLE)

        def inside() -> bool:
            number = self.number
            if active[index]:
                if ends is not None:
                    if ends():
                        active[index] = False
                    return True
                if number >= limit[index]:
                    active[index] = False
                # The end line was skipped: the range ended before this line.
                return relative or number <= limit[index]
            if not starts():
                return False
            if ends is None:
                if second.kind is Kind.PLUS:
                    limit[index] = number + second.first
                elif second.kind is Kind.MULTIPLE:
                    limit[index] = (number // second.first + 1) * second.first if second.first else number
                else:
                    limit[index] = second.first
                active[index] = limit[index] > number
            else:
                # Only a pattern is tested from the next line on.
                active[index] = second.kind is Kind.REGEX or not ends()
            return True

        return inside

    def _starts(self, index: int, first: Address, second: Address) -> Callable[[], bool]:
        if first.kind is Kind.ZERO:
            return lambda: False
        if first.kind is not Kind.LINE:
            return self._test(first)
        low, begun = first.first, self.begun
        high = second.first if second.kind in (Kind.LINE, Kind.ZERO) else None

        def starts() -> bool:
            # If the start line was skipped, the first line after it begins the range, unless its end has passed.
            number = self.number
            if number < low or begun[index] or (number > low and high is not None and number > high):
                return False
            begun[index] = True
            return True

        return starts

    def _change(self, item: Instruction) -> substitute.Change | None:
        substitution = item.substitution
        if substitution is None:
            return None
        if substitution.matcher is not None:
            return substitute.make(substitution, substitution.matcher, self.most)
        known: dict[int, substitute.Change] = {}

        def change(line: bytes) -> bytes | None:
            matcher = self._previous()
            if id(matcher) not in known:
                highest = max((piece.group for piece in substitution.pieces), default=0)
                if highest > matcher.groups and not self.posix:
                    raise ScriptError(f"{self.behind}: invalid reference \\{highest} on `s' command's RHS")
                pieces = tuple(piece for piece in substitution.pieces if piece.group <= matcher.groups)
                known[id(matcher)] = substitute.make(replace(substitution, pieces=pieces), matcher, self.most)
            return known[id(matcher)](line)

        return change

    # ------------------------------------------------------------------ input

    def _advance(self) -> Generator[Need, None, bool]:
        """Make sure a line is available; return False at the end of all input."""
        while self.at >= len(self.lines):
            if not self.file_done:
                yield Need.LINES
                continue
            if self.input_done:
                return False
            yield Need.FILE
        return True

    def _look_ahead(self) -> Generator[Need, None, bool]:
        """Return whether another line follows (in this file, if files are separate)."""
        while self.at >= len(self.lines):
            if not self.file_done:
                yield Need.LINES
            elif self.separate or self.input_done:
                return False
            else:
                yield Need.FILE
        return True

    def _take(self) -> bytes:
        line = self.lines[self.at]
        self.at += 1
        self.number += 1
        self.name = self.coming
        self.end = b"" if self.unfinished and self.at == len(self.lines) else self.delim
        return line

    def reset(self) -> None:
        """Reset line number, ranges and hold space for a new separate file."""
        self.number = 0
        self.hold, self.hold_end = b"", self.delim
        self.begun[:] = [False] * len(self.begun)
        for index, item in enumerate(self.program):
            self.active[index] = item.first is not None and item.first.kind is Kind.ZERO

    # ------------------------------------------------------------------ the cycle

    def run(self) -> Generator[Need, None, int]:
        """Run all cycles; return the exit status."""
        restart = False
        while True:
            if not restart:
                if self.at < len(self.lines) or (yield from self._advance()):
                    self.space = self._take()
                else:
                    break
                self.replaced = False
                if self.has_heads and self.number == 1:
                    yield Need.HEAD
            if self.needs_last:
                self.is_last = not (self.at < len(self.lines) or (yield from self._look_ahead()))
            restart = False
            verdict = yield from self._cycle()
            if verdict in ("end", "quit") and not self.quiet:
                self.out.line(self.space, self.end)
            if self.queue:
                yield Need.QUEUE
            elif verdict == "quit":
                self.out.complete()
            if verdict in ("quit", "silent"):
                break
            restart = verdict == "restart"
        return self.status

    def _cycle(self) -> Generator[Need, None, str]:
        """Run the program on one pattern space and return how it ended.

        `end` prints; `delete` and `dropped` (D) do not; then `restart`, `quit` and `silent`.
        """
        program, selectors = self.program, self.selectors
        pc, size, out = 0, len(program), self.out
        while pc < size:
            item = program[pc]
            selector = selectors[pc]
            if selector is not None and not selector():
                pc = item.target if item.name == "{" else pc + 1
                continue
            name = item.name
            pc += 1
            if name == "s":
                if item.substitution is not None and item.substitution.run:
                    yield from self._substitute_and_run(pc - 1, item)
                else:
                    if len(self.space) >= HUGE:
                        yield Need.TURN
                    self._substitute(pc - 1, item)
            elif name == "p":
                out.line(self.space, self.end)
            elif name == "d":
                return "delete"
            elif name == "{":
                pass
            elif name == "b":
                pc = item.target
                self.jumps += 1
                if not self.jumps & 1023 or len(self.space) >= HUGE:
                    yield Need.TURN
            elif name == "t":
                if self.replaced:
                    self.replaced = False
                    pc = item.target
                    self.jumps += 1
                    if not self.jumps & 1023 or len(self.space) >= HUGE:
                        yield Need.TURN
            elif name == "T":
                if self.replaced:
                    self.replaced = False
                else:
                    pc = item.target
                    self.jumps += 1
                    if not self.jumps & 1023 or len(self.space) >= HUGE:
                        yield Need.TURN
            elif name == "n":
                if self.at >= len(self.lines) and not (yield from self._look_ahead()):
                    return "end"
                if not self.quiet:
                    out.line(self.space, self.end)
                yield from self._next()
            elif name == "N":
                if self.at >= len(self.lines) and not (yield from self._look_ahead()):
                    return "delete" if self.posix else "end"
                kept = self.space
                yield from self._next()
                if self.gathers[pc - 1]:
                    yield from self._gather(kept)
                    continue
                substitute.bounded(len(kept) + len(self.space), self.most)
                if len(kept) >= HUGE:
                    yield Need.TURN
                self.space = b"".join((kept, self.delim, self.space))
            elif name == "D":
                _, newline, rest = self.space.partition(self.delim)
                if not newline:
                    return "dropped"
                self.space = rest
                self.jumps += 1
                if not self.jumps & 1023 or len(self.space) >= HUGE:
                    yield Need.TURN
                return "restart"
            elif name == "q" or name == "Q":
                self.status = max(item.number, 0)
                if name == "Q":
                    # Q also drops the queue of `a` and `r`.
                    self.queue.clear()
                return "quit" if name == "q" else "silent"
            elif name == "e":
                self.command = item.text or self.space
                yield Need.RUN
                if item.text:
                    out.text(self.answer)
                else:
                    self.space, self.end = self.answer.removesuffix(self.delim), self.delim
            elif name == "c":
                if item.second is None or item.negated or not self.active[pc - 1]:
                    out.text(self._delimited(item.text))
                return "delete"
            else:
                self._plain(name, item)
        return "end"

    def _next(self) -> Generator[Need, None, None]:
        if self.queue:
            yield Need.QUEUE
        self.space = self._take()
        self.replaced = False
        if self.needs_last:
            self.is_last = not (self.at < len(self.lines) or (yield from self._look_ahead()))

    def _gather(self, kept: bytes) -> Generator[Need, None, None]:
        """Append all following lines at once, as a loop of `N` would."""
        pieces = Pieces(self.delim, kept)
        pieces.add(self.space)
        while self.at < len(self.lines) or (yield from self._look_ahead()):
            yield from self._next()
            pieces.add(self.space)
            substitute.bounded(pieces.size, self.most)
            self.jumps += 1
            if not self.jumps & 1023:
                yield Need.TURN
        self.space = pieces.text()

    def _substitute_and_run(self, index: int, item: Instruction) -> Generator[Need, None, None]:
        """`s///e`: run the changed space as a command and replace it by the output."""
        substitution, change = item.substitution, self.changes[index]
        assert substitution is not None and change is not None
        changed = change(self.space)
        if changed is None:
            return
        self.command, self.replaced = changed, True
        if substitution.show and substitution.show != AFTER_RUN:
            self.out.line(changed, self.end)
        yield Need.RUN
        self.space = self.answer.removesuffix(self.delim)
        if substitution.show == AFTER_RUN:
            self.out.line(self.space, self.end)
        self._saved(substitution)

    def _delimited(self, text: bytes) -> bytes:
        """Return the text of a command with the line delimiter at its end."""
        return text if self.delim == b"\n" else text[:-1] + self.delim

    def _substitute(self, index: int, item: Instruction) -> None:
        substitution, change = item.substitution, self.changes[index]
        assert substitution is not None and change is not None
        if substitution.matcher is not None:
            self.last_regex = substitution.matcher
        changed = change(self.space)
        if changed is None:
            return
        self.space = changed
        self.replaced = True
        self._print_result(substitution)

    def _print_result(self, substitution: Substitution) -> None:
        if substitution.show:
            self.out.line(self.space, self.end)
        self._saved(substitution)

    def _saved(self, substitution: Substitution) -> None:
        if substitution.file is not None:
            self.files[substitution.file].line(self.space, self.end)

    def _plain(self, name: str, item: Instruction) -> None:
        """Run a command that only moves data between spaces and outputs."""
        if name == "h":
            self.hold, self.hold_end = self.space, self.end
        elif name == "H":
            self._hold.add(self.space)
            substitute.bounded(self._hold.size, self.most)
            self.hold_end = self.end
        elif name == "g":
            self.space, self.end = self.hold, self.hold_end
        elif name == "G":
            substitute.bounded(len(self.space) + self._hold.size, self.most)
            self.space = b"".join((self.space, self.delim, self.hold))
            self.end = self.hold_end
        elif name == "x":
            self.space, self.hold = self.hold, self.space
            self.end, self.hold_end = self.hold_end, self.end
        elif name == "y":
            self._transliterate(item)
        elif name == "=":
            self.out.text(b"%d" % self.number + self.delim)
        elif name == "P":
            first, more, _ = self.space.partition(self.delim)
            self.out.line(first, more or self.end)
        elif name == "z":
            self.space = b""
        elif name == "i":
            self.out.text(self._delimited(item.text))
        elif name in "arR":
            self.queue.append((name, item.text))
        elif name == "w":
            self.files[item.text.decode("utf-8", "surrogateescape")].line(self.space, self.end)
        elif name == "W":
            first, more, _ = self.space.partition(self.delim)
            self.files[item.text.decode("utf-8", "surrogateescape")].line(first, more or self.end)
        elif name == "F":
            self.out.text(self.name.encode("utf-8", "surrogateescape") + self.delim)
        elif name == "l":
            shown = listed(self.space, self.line_length if item.number < 0 else item.number)
            self.out.text(shown if self.delim == b"\n" else shown.replace(b"\n", self.delim))

    def _transliterate(self, item: Instruction) -> None:
        table = item.table
        if table is not None:
            self.space = self.space.translate(table)
            return
        letters = str.maketrans(dict(item.mapping))
        text = self.space.decode("utf-8", "surrogateescape").translate(letters)
        self.space = text.encode("utf-8", "surrogateescape")


def _but_last(item: Instruction) -> bool:
    """Whether the address is `$!`."""
    return item.negated and item.second is None and item.first is not None and item.first.kind is Kind.LAST


_LISTED = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 92: "\\\\"}
_UNITS = [_LISTED.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in range(256)]


def listed(line: bytes, width: int) -> bytes:
    """Format a line for `l`, wrapped at `width` (0: never)."""
    out: list[str] = []
    column = 0
    for unit in map(_UNITS.__getitem__, line):
        if 0 < width <= column + len(unit):
            out.append("\\\n")
            column = 0
        out.append(unit)
        column += len(unit)
    out.append("$\n")
    return "".join(out).encode()
