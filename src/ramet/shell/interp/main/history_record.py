"""Record commands in the history, and load and save the history file.

- HISTCONTROL, HISTIGNORE and HISTSIZE decide which commands are added.
- Nothing here runs unless the `history` option is set or a history builtin is called.
"""

from __future__ import annotations

import re
from typing import Final

from ramet.concurrency.offload import offload_large
from ramet.concurrency.sizes import BATCH, SMALL
from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.shell.history import lines
from ramet.shell.history.entries import Entry, History, file_text, read_entries
from ramet.shell.interp.builtins.usage import number_of
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.syntax.errors import SyntaxFailure, Unready
from ramet.shell.syntax.nodes import Script
from ramet.shell.syntax.parser import Parser
from ramet.text.pattern.matcher import compile_pattern


def own(sh: ShellState) -> History:
    """The history of a shell, to be changed: a subshell has borrowed it until then."""
    if sh.parent is not None and sh.parent.history is sh.history:
        sh.history = sh.history.fork()
    most = limit(sh)
    if most is not None and len(sh.history.entries) > most:
        sh.history.shrink(most)
    return sh.history


def limit(sh: ShellState) -> int | None:
    """How many commands HISTSIZE allows; None for any number."""
    text = sh.variables.get("HISTSIZE")
    number = None if text is None else number_of(text)
    return None if number is None or number < 0 else number


# ------------------------------------------------------------------------------------------------------- keeping


def wanted(sh: ShellState, line: str) -> bool:
    """Whether HISTCONTROL and HISTIGNORE let a line in; `erasedups` makes room for it."""
    kept = sh.history
    control = (sh.variables.get("HISTCONTROL") or "").split(":")
    last = kept.entries[-1].text if kept.entries else None
    if line.startswith(" ") and ("ignorespace" in control or "ignoreboth" in control):
        return False
    if line == last and ("ignoredups" in control or "ignoreboth" in control):
        return False
    ignore = sh.variables.get("HISTIGNORE")
    if ignore and any(_matches(pattern, line, last) for pattern in _patterns(ignore)):
        return False
    if "erasedups" in control:
        kept.entries[:] = [entry for entry in kept.entries if entry.text != line]
    return True


def _patterns(text: str) -> list[str]:
    if not any(char in text for char in "\\()[]"):
        return [one for one in text.split(":") if one]
    found, start, depth = [], 0, 0
    for match in _STRUCTURE(text):
        char = match[0]
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == ":" and depth <= 0:
            found.append(text[start : match.start()])
            start = match.end()
    return [one for one in (*found, text[start:]) if one]


_STRUCTURE: Final = re.compile(r"\\.?|[][():]", re.DOTALL).finditer
"""What matters to where a pattern of HISTIGNORE ends; what a backslash quotes does not."""


def _matches(pattern: str, line: str, last: str | None) -> bool:
    if "&" in pattern:
        pattern = pattern.replace("\\&", "\0").replace("&", last or "").replace("\0", "\\&")
    return bool(compile_pattern(pattern, True).matches(line))


def keep(sh: ShellState, line: str) -> bool:
    """Add a line, if it is wanted."""
    kept = own(sh)
    if kept.provisional:  # it takes the place of the line that it comes from
        kept.drop(len(kept.entries) - kept.provisional, len(kept.entries) - 1)
    if not wanted(sh, line):
        return False
    before = len(kept.entries), kept.base
    kept.add(line, int(sh.shell.now()), limit(sh))
    kept.new += (len(kept.entries), kept.base) != before
    return True


def _record(sh: ShellState, text: str) -> None:
    """Keep what was read: comments and empty lines before a command, and the command."""
    kept = own(sh)
    kept.added = kept.compound = kept.pushed = False
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin)
        line = text[begin : len(text) if end < 0 else end]
        bare = line.lstrip(" \t")
        if bare and not bare.startswith("#"):
            break
        if line:
            kept.added = keep(sh, line)
        begin += len(line) + 1
    rest = text[begin:].removesuffix("\n")
    if not rest:
        return
    if "\n" not in rest:
        kept.added = keep(sh, rest)
        return
    parts = lines.places(rest)
    kept.added = False
    if len(parts) == 1:
        kept.added = keep(sh, rest)
    elif "cmdhist" in sh.shopts:
        if keep(sh, parts[0].text) and kept.entries:
            at = kept.entries[-1].at
            kept.entries[-1] = Entry(lines.joined(parts, "lithist" in sh.shopts), at)
            kept.compound = True
    elif keep(sh, parts[0].text):
        for line in lines.separate(parts)[1:]:
            kept.add(line, int(sh.shell.now()), limit(sh))
            kept.new += 1


def commands_of(text: str, sh: ShellState) -> list[str]:
    """The entries that a text would make if it were typed."""
    parser = Parser(text, None, sh.syntax_options())
    found: list[str] = []
    start = 0
    while True:
        try:
            script = parser.next()
        except SyntaxFailure:
            rest = text[start:].strip("\n")
            return [*found, rest] if rest else found
        if script is None:
            return found
        part = text[start : parser.pos].strip("\n")
        start = parser.pos
        while part.lstrip(" \t").startswith("#") and "\n" in part:
            part = part.partition("\n")[2].lstrip("\n")
        found.append(lines.joined(lines.places(part), False) if "\n" in part else part)


class HistoryRecorder:
    """Read the commands of a text and add them to the history."""

    def __init__(self, sh: ShellState) -> None:
        self._sh = sh
        self.read = ""
        """The command that was read last."""
        self.left = 0
        """Characters of the text behind it."""

    async def begin(self) -> None:
        """Load the history; call it before the first `next`."""
        sh = self._sh
        if sh.history.source is not None:
            await sync(sh)
        if not sh.history.loaded:
            await load(sh)

    def next(self, parser: Parser) -> Script | None:
        """Return the next command of a text, None after the last one."""
        text, start = parser.text, parser.pos
        failure: SyntaxFailure | None = None
        script: Script | None = None
        try:
            script = parser.next()
        except Unready:
            raise
        except SyntaxFailure as found:
            failure = found
        end = len(text) - (len(parser.text) - self._end(parser, failure))
        if script is None and failure is None:
            end = len(text)
        self.read, self.left = text[start:end], len(text) - end
        self.record(self.read)
        if failure is not None:
            raise failure
        return script

    def record(self, text: str) -> None:
        """Keep what was read, if this shell does."""
        if "history" in self._sh.options and self._sh.origin != "environment":
            _record(self._sh, text)

    def _end(self, parser: Parser, failure: SyntaxFailure | None) -> int:
        """Where what was read ends in the text of the parser; after a failure with the line that it is in."""
        if failure is None:
            return parser.pos
        if "unexpected EOF" in failure.message or "end of file" in failure.message:
            return len(parser.text)
        end = parser.text.find("\n", max(parser.start, 0))
        return len(parser.text) if end < 0 else end + 1


async def sync(sh: ShellState) -> None:
    """Take over what was recorded of this session's calls, and what runs now."""
    source = sh.history.source
    if source is None:
        return
    kept = own(sh)
    records = await source(kept.mark)
    most = limit(sh)
    for number, text, at in records:
        kept.mark = number
        if kept.ahead:
            kept.ahead -= 1
            if kept.provisional:
                # Now it is known without the secrets that were in it.
                del kept.entries[len(kept.entries) - kept.provisional :]
                kept.provisional = 0
            else:
                continue
        for entry in commands_of(text, sh):
            kept.add(entry, int(at), most)
        await sh.budget.yield_turn()
    if kept.running:
        before = len(kept.entries)
        for entry in commands_of(kept.running, sh):
            kept.add(entry, int(sh.shell.now()), most)
        kept.running, kept.ahead = "", kept.ahead + 1
        kept.provisional = max(len(kept.entries) - before, 0)
        kept.added = True


# --------------------------------------------------------------------------------------------------------- files


async def load(sh: ShellState) -> None:
    """History is on from here: the file is read once."""
    kept = own(sh)
    if kept.loaded:
        return
    kept.loaded = True
    name = sh.variables.get("HISTFILE")
    if name:
        await shorten_file(sh, name)
        try:
            await read_file(sh, name)
        except OSError:
            return


async def read_file(sh: ShellState, name: str, new_only: bool = False) -> None:
    """Take the entries of a file over; with `new_only` those that were not read before. Raises OSError."""
    data = await sh.shell.read_file(sh.shell.fs.named(name, sh.cwd))
    kept = own(sh)
    before = kept.in_file
    timed = sh.variables.get("HISTTIMEFORMAT") is not None
    skip = before if new_only else 0
    found, count = await offload_large(sh.budget, len(data), lambda: read_entries(decode(data), skip, timed), SMALL)
    now, most = int(sh.shell.now()), limit(sh)
    for place, entry in enumerate(found):
        if not place % BATCH:
            await sh.budget.yield_turn_unchecked()  # all of the file or nothing
        if isinstance(entry, str) and kept.entries:
            last = kept.entries[-1]
            kept.entries[-1] = Entry(f"{last.text}\n{entry}", last.at)
        elif isinstance(entry, str):
            kept.add(entry, now, most)
        else:
            kept.add(entry.text, now if entry.at is None else entry.at, most)
    kept.in_file = count
    if new_only and "histappend" not in sh.shopts:
        kept.new = min(kept.new + count - before, len(kept.entries))


async def write_file(sh: ShellState, name: str, entries: list[Entry], append: bool) -> None:
    """Write entries to a file. Raises OSError."""
    path = sh.shell.fs.named(name, sh.cwd)
    timed = sh.variables.get("HISTTIMEFORMAT") is not None
    size = sum(len(entry.text) for entry in entries)
    data = await offload_large(sh.budget, size, lambda: encode(file_text(entries, timed)))
    if append and await sh.shell.exists(path):
        data = await sh.shell.read_file(path) + data
    await ops.write_bytes(sh.shell.fs, path, data)


async def append_new(sh: ShellState, name: str) -> None:
    """`history -a`: what this shell has added, at the end of a file. Raises OSError."""
    kept = own(sh)
    if kept.new > 0:
        await write_file(sh, name, kept.entries[-kept.new :], append=True)
        kept.in_file += kept.new
    kept.new = 0


async def save(sh: ShellState) -> None:
    """The shell ends: what it has kept goes to the file that HISTFILE names."""
    name = sh.variables.get("HISTFILE")
    kept = own(sh)
    if not name or kept.new <= 0:
        return
    try:
        await append_new(sh, name)
    except OSError as error:
        sh.err(f"{sh.name}: history: {name}: cannot create: {reason(error)}\n")
        return
    await shorten_file(sh, name)


async def shorten_file(sh: ShellState, name: str) -> None:
    """Leave as many lines in a file as HISTFILESIZE allows."""
    number = number_of(sh.variables.get("HISTFILESIZE") or "")
    if number is None or number < 0:
        return
    path = sh.shell.fs.named(name, sh.cwd)
    try:
        data = await sh.shell.read_file(path)
    except OSError:
        return
    left = await offload_large(sh.budget, len(data), lambda: _shortened(decode(data), number), SMALL)
    if left is None:
        return
    try:
        await ops.write_bytes(sh.shell.fs, path, left)
    except OSError:
        return


def _shortened(text: str, number: int) -> bytes | None:
    """Return the last `number` entries of a file; None if it has no more."""
    found, _ = read_entries(text, 0, False)
    if len(found) <= number:
        return None
    rows = text.removesuffix("\n").split("\n")
    place = len(rows)
    left = number
    while place and left:
        place -= 1
        left -= not (rows[place].startswith("#") and rows[place][1:2].isdigit())
    if place and rows[place - 1].startswith("#") and rows[place - 1][1:2].isdigit():
        place -= 1
    return encode("".join(f"{row}\n" for row in rows[place:]))
