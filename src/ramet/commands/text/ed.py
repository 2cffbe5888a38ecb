"""ed: the line editor; a buffer of lines, addresses and one-letter commands read from stdin.

Lines are bytes without their newlines, numbered from 1; `dot` is the current one, 0 when there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from ramet.commands.framework.command import Command
from ramet.commands.framework.inputs import LONG, only_opens, read_ended_lines, split_lines
from ramet.commands.framework.posix_regex import patiently
from ramet.commands.text.ed_buffer import Buffer, EdOptions, Trouble
from ramet.commands.text.ed_lines import apart, delimited, number_of, replaced, visible
from ramet.concurrency.offload import offload
from ramet.concurrency.sizes import MANY
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.streams import BytesReader, Capture, FileStream
from ramet.patterns import MatchTimeout

T = TypeVar("T")

_MANY = 256
"""Lines that are looked at without a look at the clock."""


class _Quit(Exception):
    pass


@dataclass(kw_only=True)
class Editor(Buffer):
    """A script that is run on a buffer."""

    script: list[bytes]
    from_file: bool = False
    """Whether the script is a file, of which nothing is done after an error."""
    at: int = 0
    """How many lines of the script were used."""
    name: str = ""
    modified: bool = False
    warned: bool = False
    """Whether the last command was told that the buffer is not saved."""
    verbose: bool = False
    prompting: bool = False
    last_error: str = ""
    status: int = 0
    replacement: tuple[bytes, str] | None = None
    cut: list[bytes] = field(default_factory=list)
    before: tuple[list[bytes], int] | None = None
    out: list[bytes] = field(default_factory=list)
    inside: bool = False
    """Whether a global command runs."""
    repeated: str = ""
    """The commands that `&` stands for when G or V ask."""
    last_command: str = ""
    """What `!!` runs again."""
    window: int = 22
    """Lines that `z` shows."""
    heavy: bool = False
    """Whether there ever was a very long line: what takes a look at lines is done while others run from then on."""

    # ------------------------------------------------------------------ input

    def next_line(self) -> bytes | None:
        if self.at >= len(self.script):
            return None
        self.at += 1
        return self.script[self.at - 1]

    def text(self) -> list[bytes]:
        """The lines up to a single period."""
        got: list[bytes] = []
        while (line := self.next_line()) is not None and line != b".":
            got.append(line)
        return got

    def prompted(self) -> bytes | None:
        """The next line of the script, asked for where somebody wants that."""
        if self.prompting:
            self.out.append(encode(self.o.prompt or "*"))
        return self.next_line()

    async def run(self) -> int:
        while (line := self.prompted()) is not None:
            try:
                await self.command(decode(line))
            except Trouble as error:
                self.last_error = str(error)
                self.status = 1
                told = f"script, line {self.at}: {error}" if self.from_file else str(error)
                self.out.append(b"?\n" + (encode(told + "\n") if self.verbose else b""))
                if self.from_file:
                    break
            except _Quit:
                break
            await self.flush()
        else:
            if self.modified and not self.warned:
                self.out.append(b"?\n" + (b"Warning: buffer modified\n" if self.verbose else b""))
                self.status = 2
                self.prompted()
        await self.flush()
        return 0 if self.o.loose else self.status

    async def flush(self) -> None:
        if self.out:
            await self.proc.emit(b"".join(self.out))
            self.out.clear()
        await self.proc.budget.yield_turn()

    # ------------------------------------------------------------------ commands

    async def command(self, line: str) -> None:
        given, text = await self.patiently(line, partial(self.addresses, line))
        letter, rest = text[:1], text[1:]
        warned, self.warned = self.warned, False
        if letter in ("q", "e") and self.modified and not warned:
            self.warned = True
            raise Trouble("Warning: buffer modified")
        if letter in ("q", "Q"):
            raise _Quit
        if letter in _CHANGES and not self.inside:
            self.before = list(self.lines), self.dot
        simple = _SIMPLE.get(letter)
        if simple is not None:
            if letter in _SHOWS and (self.heavy or len(self.lines) > MANY):
                after = await offload(self.proc.budget, partial(simple, self, given, rest))
            else:
                after = simple(self, given, rest)
            await self.end(after)
        elif letter == "s":
            await self.end(await self.substitute(given, rest))
        elif letter in ("e", "E", "f", "r", "w", "W"):
            await self.files(letter, given, rest)
        elif letter in ("g", "v", "G", "V") and self.inside:
            raise Trouble("Cannot nest global commands")
        elif letter in ("g", "v", "G", "V"):
            await self.everywhere(letter in "gG", given, rest, asking=letter in "GV")
        elif letter == "!" and given:
            raise Trouble("Unexpected address")
        elif letter == "!":
            await self.shell(rest)
        elif letter == "":
            self.dot = self.one(given, self.dot + 1, least=1)
            self.show(self.dot, self.dot, "p")
        elif letter != "#":
            raise Trouble("Unknown command")

    async def patiently(self, text: str, work: Callable[[], T]) -> T:
        """What `work` gives; where a text with patterns, or a line, is very long, while others run."""
        return await (offload(self.proc.budget, work) if self.heavy else patiently(self.proc, (text,), work))

    async def end(self, suffix: str | None) -> None:
        """What stands behind a command is done too."""
        if suffix and self.heavy:
            await offload(self.proc.budget, partial(self.suffix, suffix))
        elif suffix:
            self.suffix(suffix)

    def suffix(self, text: str | None) -> None:
        """`p`, `l` and `n` behind a command show the line it ends at."""
        if text is None:
            return
        if text.strip("pln \t"):
            raise Trouble("Invalid command suffix")
        if text.strip():
            self.check(self.dot)
            self.show(self.dot, self.dot, text.strip())

    def show(self, start: int, stop: int, how: str) -> None:
        for number in range(start, stop + 1):
            line = self.lines[number - 1]
            shown = visible(line, not self.o.old) if "l" in how else line
            if "n" in how:
                self.out.append(b"%d\t" % number)
            self.out += (shown, b"\n")
        self.dot = stop

    def put(self, after: int, new: list[bytes]) -> None:
        self.lines[after:after] = new
        self.moved(after + 1, len(new))
        self.dot = after + len(new)
        self.modified = self.modified or bool(new)

    def moved(self, start: int, by: int) -> None:
        """Marks stay with their lines, and go with them."""
        for mark, number in list(self.marks.items()):
            if by < 0 and start <= number < start - by:
                del self.marks[mark]
            elif number >= start:
                self.marks[mark] = number + by

    def remove(self, start: int, stop: int) -> list[bytes]:
        gone = self.lines[start - 1 : stop]
        del self.lines[start - 1 : stop]
        self.moved(start, start - stop - 1)
        self.modified = True
        return gone

    def do_append(self, given: list[int], rest: str) -> str:
        self.put(self.one(given, self.dot), self.text())
        return rest

    def do_insert(self, given: list[int], rest: str) -> str:
        at = self.one(given, self.dot)
        self.put(max(at - 1, 0), self.text())
        return rest

    def do_change(self, given: list[int], rest: str) -> str:
        start, stop = self.span(given)
        self.cut = self.remove(start, stop)
        self.dot = min(start, len(self.lines))
        new = self.text()
        if new:
            self.put(start - 1, new)
        return rest

    def do_delete(self, given: list[int], rest: str) -> str:
        start, stop = self.span(given)
        self.cut = self.remove(start, stop)
        self.dot = min(start, len(self.lines))
        return rest

    def do_join(self, given: list[int], rest: str) -> str:
        start, stop = self.span(given, self.dot, self.dot + 1)
        if start < stop:
            self.cut = self.remove(start, stop)
            self.put(start - 1, [b"".join(self.cut)])
        return rest

    def do_mark(self, given: list[int], rest: str) -> str:
        if not rest[:1].islower():
            raise Trouble("Invalid mark character")
        self.marks[rest[0]] = self.one(given, self.dot, least=1)
        return rest[1:]

    def do_move(self, given: list[int], rest: str) -> str:
        start, stop = self.span(given)
        target, rest = self.target(rest)
        if start <= target < stop:
            raise Trouble("Invalid destination")
        gone = self.remove(start, stop)
        self.put(target - len(gone) if target >= stop else target, gone)
        return rest

    def do_copy(self, given: list[int], rest: str) -> str:
        start, stop = self.span(given)
        target, rest = self.target(rest)
        self.put(target, self.lines[start - 1 : stop])
        return rest

    def target(self, rest: str) -> tuple[int, str]:
        found, rest = self.addresses(rest)
        if not found and self.o.old:
            raise Trouble("Destination expected")
        return self.one(found, self.dot), rest

    def do_print(self, how: str) -> Callable[[list[int], str], str | None]:
        def show(given: list[int], rest: str) -> None:
            if rest.strip("pln \t"):
                raise Trouble("Invalid command suffix")
            self.show(*self.span(given), how + rest)

        return show

    def do_number(self, given: list[int], rest: str) -> str:
        self.out.append(b"%d\n" % self.one(given, len(self.lines)))
        return rest

    def do_yank(self, given: list[int], rest: str) -> str:
        start, stop = self.span(given)
        self.cut = self.lines[start - 1 : stop]
        return rest

    def do_put(self, given: list[int], rest: str) -> str:
        if not self.cut:
            raise Trouble("Nothing to put")
        self.put(self.one(given, self.dot), list(self.cut))
        return rest

    def do_undo(self, given: list[int], rest: str) -> str:
        if self.before is None:
            raise Trouble("Nothing to undo")
        now = list(self.lines), self.dot
        (self.lines, self.dot), self.before = self.before, now
        self.marks.clear()
        self.modified = True
        return rest

    def do_scroll(self, given: list[int], rest: str) -> None:
        count = re.match(r"\d*", rest)
        assert count is not None
        start = self.one(given, self.dot + 1, least=1)
        self.window = int(count[0] or self.window)
        self.show(start, min(start + self.window - 1, len(self.lines)), "p" + rest[count.end() :])

    def do_help(self, given: list[int], rest: str) -> str:
        if self.last_error:
            self.out.append(encode(self.last_error + "\n"))
        return rest

    def do_verbose(self, given: list[int], rest: str) -> str:
        self.verbose = not self.verbose
        return self.do_help(given, rest) if self.verbose else rest

    def do_prompt(self, given: list[int], rest: str) -> str:
        self.prompting = not self.prompting
        return rest

    # ------------------------------------------------------------------ substitution

    async def substitute(self, given: list[int], rest: str) -> str:
        start, stop = self.span(given)
        if rest[:1] and rest[0] not in " \t\n" and not re.fullmatch(r"[gpnlr\d]*", rest):
            mark = rest[0]
            source, rest, closed = delimited(rest[1:], mark)
            template, rest, ended = delimited(rest, mark) if closed else ("", "", False)
            # In the list of a global command the backslash that continues it is gone already.
            while not ended and (template.endswith("\\") or self.inside) and (more := self.next_line()) is not None:
                template += ("\n" if template.endswith("\\") else "\\\n") + decode(more)
                template, rest, ended = delimited(template, mark)
            flags = re.match(r"[gIi\d]*", rest)
            assert flags is not None
            chosen, rest = flags[0], rest[flags.end() :]
            if not ended:
                rest += "p"
            if template == "%" and self.replacement is not None:
                template = decode(self.replacement[0])
            icase = "i" in chosen.lower()
            await self.patiently(source, partial(self.compiled, source, icase=icase))
            self.replacement = encode(template), chosen
        elif self.replacement is None:
            raise Trouble("No previous substitution")
        assert self.replacement is not None
        matcher, (made, chosen) = self.compiled(""), self.replacement
        number = int("".join(char for char in chosen if char.isdigit()) or 1)
        changed = 0
        at = start
        for count in range(stop - start + 1):
            if count % _MANY == _MANY - 1:
                await self.proc.budget.yield_turn()
            line = self.lines[at - 1]
            if len(line) <= LONG:
                new = replaced(matcher, line, made, "g" in chosen, number)
            else:
                new = await offload(self.proc.budget, partial(replaced, matcher, line, made, "g" in chosen, number))
            if new is None:
                at += 1
                continue
            self.heavy = self.heavy or len(new) > LONG
            pieces = new.split(b"\n") if not self.heavy else (await split_lines(self.proc, new + b"\n"))[0]
            self.lines[at - 1 : at] = pieces
            at += len(pieces)
            self.dot = at - 1
            changed += 1
        if not changed:
            if not self.inside:
                raise Trouble("No match")
            return ""
        self.modified = True
        return rest

    # ------------------------------------------------------------------ everywhere

    async def everywhere(self, wanted: bool, given: list[int], rest: str, *, asking: bool) -> None:
        """Commands for all lines that match, or do not; `asking` reads those of each when it has been shown."""
        start, stop = self.span(given, 1, len(self.lines))
        if not rest[:1]:
            raise Trouble("Invalid pattern delimiter")
        source, rest, _ = delimited(rest[1:], rest[0])
        matcher = await self.patiently(source, partial(self.compiled, source))
        todo: list[bytes] = []
        for index in range(start - 1, stop):
            line = self.lines[index]
            found = (
                matcher.test(line)
                if len(line) <= LONG
                else await offload(self.proc.budget, partial(matcher.test, line))
            )
            if found == wanted:
                self.lines[index] = apart(self.lines[index])
                todo.append(self.lines[index])
            if index % _MANY == 0:
                await self.proc.budget.yield_turn()
        commands = "" if asking else self.continued(rest)
        if asking and rest.strip("pln \t"):
            raise Trouble("Invalid command suffix")
        if not todo:
            return
        self.before = list(self.lines), self.dot
        self.inside = True
        script, at = self.script, self.at
        try:
            for line in todo:
                number = number_of(self.lines, line, max(self.dot - 1, 0))
                if number is None:
                    continue
                self.dot = number
                if asking:
                    self.script, self.at = script, at
                    self.show(number, number, rest.strip() or "p")
                    await self.flush()
                    answer = self.next_line()
                    if answer is None:
                        raise Trouble("Unexpected end-of-file")
                    answered = self.continued(decode(answer))
                    at = self.at
                    if answered == "":
                        continue
                    if answered == "&" and not self.repeated:
                        raise Trouble("No previous command")
                    commands = self.repeated = self.repeated if answered == "&" else answered
                self.script, self.at = [encode(part) for part in (commands or "p").split("\n")], 0
                while (part := self.next_line()) is not None:
                    await self.command(decode(part))
                await self.proc.budget.yield_turn()
        finally:
            self.script, self.at = script, at
            self.inside = False
        if asking:
            self.suffix(rest)

    def continued(self, commands: str) -> str:
        """Commands with the lines that follow a backslash."""
        while commands.endswith("\\") and (more := self.next_line()) is not None:
            commands = commands[:-1] + "\n" + decode(more)
        return commands

    # ------------------------------------------------------------------ files and commands

    async def files(self, letter: str, given: list[int], rest: str) -> None:
        quits = letter in "wW" and rest[:1] in ("q", "Q")
        if quits:
            rest = rest[1:]
        if rest and not rest[0].isspace():
            raise Trouble("Unexpected command suffix")
        name = rest.strip()
        if letter == "f":
            if name.startswith("!"):
                raise Trouble("Invalid redirection")
            self.name = name or self.name
            if not self.name and not self.o.old:
                raise Trouble("No current filename")
            self.out.append(encode(self.name + "\n"))
        elif letter in "wW":
            await self.write(given, name, append=letter == "W")
        elif letter == "r":
            data = await self.read(name)
            self.put(self.one(given, len(self.lines)), data)
        else:
            self.permit(name or self.name)
            self.lines, self.dot, self.modified = [], 0, False
            self.name = name or self.name
            self.put(0, await self.read(self.name))
            self.modified = False
        if quits:
            raise _Quit

    def permit(self, name: str) -> None:
        """In restricted mode neither commands nor other directories are within reach."""
        if self.o.restricted:
            if name.startswith("!"):
                raise Trouble("Shell access restricted")
            if name == ".." or "/" in name:
                raise Trouble("Directory access restricted")

    def note(self, name: str, error: OSError) -> None:
        if not self.o.silent:
            self.proc.stderr.write(encode(f"{name}: {reason(error)}\n"))

    async def read(self, name: str) -> list[bytes]:
        name = name or self.name
        if not name:
            raise Trouble("No current filename")
        self.permit(name)
        if name.startswith("!"):
            out = Capture(self.proc.budget.limits.output_bytes)
            await self.proc.run(["sh", "-c", name[1:]], stdout=out)
            lines, ended = await split_lines(self.proc, out.getvalue())
        else:
            self.name = self.name or name
            try:
                lines, ended = await read_ended_lines(self.proc, name)
            except OSError as error:
                self.note(name, error)
                raise Trouble(f"Cannot {'read' if only_opens(error) else 'open'} input file") from None
        if self.o.strip:
            lines = [line.removesuffix(b"\r") for line in lines]
        self.heavy = self.heavy or max(map(len, lines), default=0) > LONG
        if not ended:
            self.out.append(b"Newline appended\n")
        if not self.o.quiet:
            self.out.append(b"%d\n" % (sum(map(len, lines)) + len(lines)))
        return lines

    async def write(self, given: list[int], name: str, append: bool) -> None:
        start, stop = self.span(given, 1, len(self.lines)) if self.lines else (1, 0)
        data = b"".join([piece for line in self.lines[start - 1 : stop] for piece in (line, b"\n")])
        target = name or self.name
        if not target:
            raise Trouble("No current filename")
        self.permit(target)
        if target.startswith("!"):
            await self.flush()
            await self.proc.run(["sh", "-c", target[1:]], stdin=BytesReader(data))
        else:
            self.name = self.name or target
            try:
                writer = await self.proc.create(target, append=append)
            except OSError as error:
                self.note(target, error)
                raise Trouble("Cannot open output file") from None
            writer.write(data)
            await self.proc.close(writer)
            self.modified = self.modified and stop - start + 1 < len(self.lines)
        if not self.o.quiet:
            self.out.append(b"%d\n" % len(data))

    async def shell(self, text: str) -> None:
        """A command in which `%` is the file; `!` at its beginning is the command before."""
        self.permit("!")
        line, changed = self._filled(text)
        self.last_command = line
        if changed:
            self.out.append(encode(line + "\n"))
        await self.flush()
        await self.proc.run(["sh", "-c", line])
        if not self.o.quiet:
            self.out.append(b"!\n")

    def _filled(self, text: str) -> tuple[str, bool]:
        """A command line with what stands for other text put in; whether any was."""
        out: list[str] = []
        changed = False
        rest = text
        if text.startswith("!"):
            if not self.last_command:
                raise Trouble("No previous command")
            out.append(self.last_command)
            rest, changed = text[1:], True
        for piece in re.findall(r"\\.|[^\\%]+|%|\\", rest, re.DOTALL):
            if piece == "%":
                if not self.name:
                    raise Trouble("No current filename")
                out.append(self.name)
                changed = True
            else:
                out.append("%" if piece == "\\%" else piece)
        return "".join(out), changed


_Simple = Callable[[Editor, list[int], str], str | None]
_SIMPLE: dict[str, _Simple] = {
    "a": Editor.do_append,
    "i": Editor.do_insert,
    "c": Editor.do_change,
    "d": Editor.do_delete,
    "j": Editor.do_join,
    "k": Editor.do_mark,
    "m": Editor.do_move,
    "t": Editor.do_copy,
    "p": lambda editor, given, rest: editor.do_print("p")(given, rest),
    "n": lambda editor, given, rest: editor.do_print("n")(given, rest),
    "l": lambda editor, given, rest: editor.do_print("l")(given, rest),
    "=": Editor.do_number,
    "y": Editor.do_yank,
    "x": Editor.do_put,
    "u": Editor.do_undo,
    "z": Editor.do_scroll,
    "h": Editor.do_help,
    "H": Editor.do_verbose,
    "P": Editor.do_prompt,
}
_CHANGES = frozenset("aicdjmtsxrgvGV")
_SHOWS = frozenset("pnlz")


async def ed(proc: Proc, o: EdOptions, operands: list[str]) -> int:
    script, _ = await split_lines(proc, await proc.stdin.read_all())
    editor = Editor(
        proc,
        o,
        script=script,
        from_file=isinstance(proc.stdin, FileStream),
        verbose=o.verbose,
        prompting=o.prompt is not None,
    )
    if operands:
        editor.name = operands[-1]
        try:
            editor.put(0, await editor.read(editor.name))
            editor.modified = False
        except Trouble as error:
            editor.last_error = str(error)
            if "read" in editor.last_error:  # A file that is not there is only a new one.
                editor.out.append(b"?\n")
                editor.status = 1
    try:
        return await editor.run()
    except MatchTimeout as error:
        proc.complain(str(error))
        return 2


COMMANDS = [
    Command(
        "ed",
        ed,
        EdOptions,
        summary="A line-oriented text editor.",
        usage="[OPTION]... [FILE]",
        examples=[("printf '2d\\nw\\nq\\n' | ed -s file", "delete the second line")],
    ),
]
