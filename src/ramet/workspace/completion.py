"""Complete a command line: commands, options, variables, and paths across all mounts.

- The line is what stands before the cursor. A word may be quoted; what is added to it is quoted the same way.
- In command position: functions, aliases, commands, and programs of the box. After `cd`: directories only.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from ramet.core import ops
from ramet.core.paths import parse
from ramet.core.stat import Kind
from ramet.shell import syntax
from ramet.shell.syntax.errors import SyntaxFailure

if TYPE_CHECKING:
    from ramet.workspace.programs import NativePrograms
    from ramet.workspace.session import Session

MOST: Final = 1000
"""Words that are offered; a longer list helps no one."""
FOLDERS_ONLY: Final = frozenset(("cd", "pushd", "rmdir"))
PREFIXES: Final = frozenset(
    ("builtin", "command", "do", "else", "env", "exec", "if", "nice", "nohup", "sudo", "then", "time", "while", "xargs")
)
"""Words after which a command follows."""
_SPECIAL: Final = re.compile(r"[\s'\"\\$&;|<>()*?\[\]#`!{}~]")
"""Characters of a name that the shell would interpret."""
_IN_QUOTES: Final = re.compile(r"[\"\\$`]")
_VARIABLE: Final = re.compile(r"\$(\{?)([A-Za-z_]\w*)?$")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")


class Completion(NamedTuple):
    """What may replace the line from `start` up to the cursor; a finished word ends with a space."""

    start: int
    words: list[str]


class _Word(NamedTuple):
    """The last word of a line."""

    start: int
    """Where it begins, after an opening quote."""
    text: str
    """The word without quoting."""
    quote: str
    """The quote that is open."""
    before: list[str]
    """The words of the same command before it."""
    redirected: bool


async def complete(line: str, session: Session, names: Iterable[str], programs: NativePrograms | None) -> Completion:
    """Complete the last word of `line` in a session; `names` are the commands of the workspace."""
    word = _last_word(line)
    if word.quote != "'" and (found := _VARIABLE.search(line, word.start)) is not None:
        brace, start = found[1], found[2] or ""
        ending = "}" if brace else ""
        return Completion(
            found.start(), [f"${brace}{name}{ending}" for name in sorted(_variables(session, start))][:MOST]
        )
    command = _command_of(word)
    if command and word.text.startswith("-") and not word.quote:
        return Completion(word.start, sorted(name for name in _options(command) if name.startswith(word.text))[:MOST])
    found_words: list[str] = []
    if not command and not word.redirected and "/" not in word.text:
        state = session.state
        known = {*names, *state.functions, *state.aliases}
        if programs is not None:
            known |= _programs(programs, state.variables.get("PATH") or "", word.text)
        found_words += [f"{name}{word.quote} " for name in sorted(known) if name.startswith(word.text)]
    found_words += await _paths(session, word, folders=command in FOLDERS_ONLY)
    return Completion(word.start, found_words[:MOST])


def is_incomplete(text: str) -> bool:
    """Return whether more lines could complete a command."""
    if text.endswith("\\") and not text.endswith("\\\\"):
        return True
    try:
        syntax.parse(text)
    except SyntaxFailure as failure:
        return "unexpected end of file" in failure.message or "unexpected EOF" in failure.message
    return False


def _last_word(line: str) -> _Word:
    """Find the word that ends at the cursor, and what stands before it in its command."""
    start, text, quote, begun, redirected = 0, "", "", False, False
    before: list[str] = []
    at = 0
    while at < len(line):
        letter = line[at]
        if quote:
            if letter == quote:
                quote = ""
            elif letter == "\\" and quote == '"' and _IN_QUOTES.match(line, at + 1):
                at += 1
                text += line[at]
            else:
                text += letter
        elif letter == "\\" and at + 1 < len(line):
            at += 1
            text, begun = text + line[at], True
        elif letter in "'\"":
            if not text:
                start = at + 1
            quote, begun = letter, True
        elif letter in " \t\n;|&()<>" or (letter in "{}" and not begun):
            if begun and not redirected:
                before.append(text)
            redirected = letter in "<>" or (redirected and not begun)
            if letter in "\n;|&(){}":
                before, redirected = [], False
            start, text, begun = at + 1, "", False
        else:
            text, begun = text + letter, True
        at += 1
    return _Word(start, text, quote, before, redirected)


def _command_of(word: _Word) -> str:
    """The command whose argument the word is; empty when it is the command itself."""
    for one in word.before:
        if one not in PREFIXES and not _ASSIGNMENT.match(one) and not one.startswith("-"):
            return one
    return ""


def _variables(session: Session, start: str) -> list[str]:
    return [name for name in session.state.variables.names(start) if name.isidentifier()]


def _options(command: str) -> list[str]:
    """List the options that a command declares."""
    from ramet.commands.framework.table import COMMANDS, Lazy

    found = COMMANDS.get(command)
    if not isinstance(found, Lazy):
        return []
    loaded = found.load()
    if loaded.raw:
        return []
    return [name + ("=" if spec.takes == "required" and name.startswith("--") else " ")
            for spec in loaded.table.specs if spec.store != "refuse" for name in spec.names]  # fmt: skip


async def _paths(session: Session, word: _Word, *, folders: bool) -> list[str]:
    """List the entries of the word's folder that begin as it does."""
    folder, slash, start = word.text.rpartition("/")
    shown = folder
    if folder == "~" or folder.startswith("~/"):
        folder = (session.state.variables.get("HOME") or "/") + folder[1:]
    place = (folder or "/") if slash else "."
    try:
        entries = await ops.scan_sorted(session.fs, parse(place, session.cwd))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP):
            return []
        raise
    found = []
    for name, stat in entries:
        if not name.startswith(start) or (name.startswith(".") and not start):
            continue
        is_folder = stat.is_dir
        if stat.kind is Kind.LINK:
            is_folder = await _leads_to_folder(session, f"{place}/{name}")
        if folders and not is_folder:
            continue
        found.append(_quoted(name, word.quote, shown + slash) + ("/" if is_folder else f"{word.quote} "))
        if len(found) == MOST:
            break
    return found


async def _leads_to_folder(session: Session, path: str) -> bool:
    try:
        return (await session.fs.stat(parse(path, session.cwd), follow=True)).is_dir
    except OSError:
        return False


def _quoted(name: str, quote: str, before: str) -> str:
    if quote == "'":
        return before + name.replace("'", "'\\''")
    if quote == '"':
        return _IN_QUOTES.sub(r"\\\g<0>", before + name)
    tilde = before[:1] if before.startswith("~") else ""
    return tilde + _SPECIAL.sub(r"\\\g<0>", before[len(tilde) :] + name)


def _programs(programs: NativePrograms, path: str, start: str) -> set[str]:
    """The programs of the host that the box sees in its PATH."""
    found: set[str] = set()
    for folder in path.split(":"):
        names = [name for name in programs.names(folder) if name.startswith(start)]
        found |= {name for name in names[:MOST] if programs.has(f"{folder}/{name}")}
    return found
