"""`fc`: earlier commands listed, run again, or given to an editor and run then."""

from __future__ import annotations

import re
from typing import Final

from ramet.core import ops, paths
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.shell.interp.builtins.usage import bad_option, options_of
from ramet.shell.interp.main import history_record as recording
from ramet.shell.interp.run.batches import write_lines
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.state.shell_state import Builtin, ShellState

_SHOWN: Final = 16
"""Commands that `fc -l` lists when it is told nothing."""
_OUTSIDE, _MISSING = -1, -2


def commands(sh: ShellState, argv: list[str]) -> Result:
    letters, operands, wrong = options_of(argv, "lnrs", "e", numbers=True)
    if wrong is not None:
        return bad_option(sh, argv[0], *wrong)
    options = dict(letters)
    words = [str(word) for word in argv[operands:]]
    return drive(_commands(sh, "".join(options), options.get("e", ""), words))


async def _commands(sh: ShellState, flags: str, editor: str, words: list[str]) -> int:
    await recording.sync(sh)
    recording.own(sh)
    if "s" in flags or editor == "-":
        return await _again(sh, words)
    if not sh.history.entries:
        return 0
    chosen = _range(sh, flags, words)
    if isinstance(chosen, int):
        return chosen
    first, last, backwards = chosen
    if "l" in flags:
        places = range(last, first - 1, -1) if backwards else range(first, last + 1)
        base, entries = sh.history.base, sh.history.entries
        mark = "\t" if sh.posix else "\t "
        lines = (f"{'' if 'n' in flags else base + place}{mark}{entries[place].text}\n" for place in places)
        written = write_lines(sh, lines, len(places), "fc")
        return written if isinstance(written, int) else await written
    return await _edited(sh, editor, first, last, backwards)


def _last(sh: ShellState) -> int:
    """The place of the last command before this one."""
    kept = sh.history
    count = len(kept.entries)
    last = count - ("history" in sh.options or kept.source is not None) - (kept.added or kept.ahead > 0)
    return count - 1 if last == count else last


_LEADING: Final = re.compile("[0-9]{1,18}").match


def _place(sh: ShellState, word: str | None, listing: bool, first: bool = False) -> int:
    """Where in the list a number or the beginning of a command leads; negative when nowhere."""
    kept = sh.history
    last = _last(sh)
    if last < 0:
        return 0 if listing else _OUTSIDE
    if word is None:
        return last
    digits = word.removeprefix("-")
    if (leading := _LEADING(digits)) is not None:
        number = int(leading[0])
        if word.startswith("-"):
            if not number:
                return len(kept.entries) - 1 if listing else _OUTSIDE
            return max(last + 1 - number, 0)
        if not number:
            return last
        place = number - kept.base
        return place if 0 <= place < last else (0 if first else last)
    for place in range(min(last, len(kept.entries) - 1), -1, -1):
        if kept.entries[place].text.startswith(word):
            return place
    return _MISSING


def _range(sh: ShellState, flags: str, words: list[str]) -> tuple[int, int, bool] | int:
    """The first and the last place, and whether they come backwards; a status after a complaint."""
    listing = "l" in flags
    kept = sh.history
    last = max(_last(sh), 0)
    real = len(kept.entries) - 1
    if words:
        begin = _place(sh, words[0], listing, first=True)
        if len(words) > 1:
            end = _place(sh, words[1], listing)
        elif begin == real:
            end = real if listing else begin
        else:
            end = last if listing else begin
    elif listing:
        begin, end = max(last - _SHOWN + 1, 0), last
    else:
        begin = end = last
    if _MISSING in (begin, end):
        return sh.error("fc: no command found")
    if _OUTSIDE in (begin, end):
        return sh.error("fc: history specification out of range")
    if not listing and kept.added:
        kept.drop(len(kept.entries) - 1, len(kept.entries) - 1)
        kept.added = False
        if not kept.entries:
            return 0
    top = len(kept.entries) - 1
    begin, end = min(begin, top), min(end, top)
    backwards = "r" in flags
    return (end, begin, True) if end < begin else (begin, end, backwards)


async def _again(sh: ShellState, words: list[str]) -> int:
    """`fc -s`: run a command again, with some of its text changed."""
    changes: list[tuple[str, str]] = []
    while words and "=" in words[0]:
        old, _, new = words.pop(0).partition("=")
        changes.append((old, new))
    place = _place(sh, words[0] if words else None, False)
    if place < 0 or place >= len(sh.history.entries):
        return sh.error("fc: no command found")
    text = sh.history.entries[place].text
    for old, new in changes:
        if (text.count(old) if old else len(text)) * len(new) > sh.budget.limits.string_bytes:
            raise sh.budget.exceeded("string_bytes", "fc")
        text = text.replace(old, new) if old else new * len(text)
    sh.err(f"{text}\n")
    entry = text.removesuffix("\n")
    kept = sh.history
    if entry and kept.entries:
        kept.drop(len(kept.entries) - 1, len(kept.entries) - 1)
    if entry:
        recording.keep(sh, entry)
    return await sh.shell.run_text(sh, text, keep_line=True, line=max(sh.line, 1))


async def _edited(sh: ShellState, editor: str, first: int, last: int, backwards: bool) -> int:
    """Give commands to an editor, and run what it leaves."""
    entries = sh.history.entries[first : last + 1]
    if backwards:
        entries = entries[::-1]
    name = f"{sh.variables.get('TMPDIR') or '/tmp'}/bash-fc.{sh.shell.next_pid()}"
    path = sh.shell.fs.named(name, sh.cwd)
    try:
        await ops.write_bytes(sh.shell.fs, path, encode("".join(f"{entry.text}\n" for entry in entries)))
    except OSError as error:
        return sh.error(f"fc: {name}: cannot open temp file: {reason(error)}")
    try:
        command = editor or ("${FCEDIT:-ed}" if sh.posix else "${FCEDIT:-${EDITOR:-vi}}")
        status = await sh.shell.run_text(sh, f"{command} {name}", keep_line=True, line=max(sh.line, 1))
        if status:
            return status if status > 255 else 1
        text = paths.decode(await sh.shell.read_file(path))
    except OSError as error:
        return sh.error(f"fc: {name}: {reason(error)}")
    finally:
        if await sh.shell.exists(path):
            await sh.shell.fs.remove(path)
    sh.err(text)
    for entry in recording.commands_of(text, sh):
        recording.keep(sh, entry)
    return await sh.shell.run_text(sh, text, keep_line=True, line=max(sh.line, 1))


TABLE: Final[dict[str, Builtin]] = {"fc": commands}
