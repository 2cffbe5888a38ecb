"""`history`: list, change and save the commands of a shell."""

from __future__ import annotations

import time
from functools import partial
from typing import Final

from ramet.concurrency.offload import offload_large
from ramet.concurrency.sizes import LONG_SCRIPT
from ramet.core.paths import decode, encode
from ramet.shell.expand.errors import ErrexitExempt
from ramet.shell.expand.size_check import joined
from ramet.shell.history.entries import Entry
from ramet.shell.interp.builtins.usage import bad_option, number_of, options_of
from ramet.shell.interp.main import history_record as recording
from ramet.shell.interp.run.batches import write_lines
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.state.shell_state import Builtin, ShellState


def history(sh: ShellState, argv: list[str]) -> Result:
    letters, operands, wrong = options_of(argv, "acnrsw", "d")
    if wrong is not None:
        return bad_option(sh, argv[0], *wrong)
    options = dict(letters)
    return drive(_history(sh, "".join(options), options.get("d", ""), argv, operands))


async def _history(sh: ShellState, flags: str, offset: str, argv: list[str], operands: int) -> int:
    words = [str(word) for word in argv[operands:]]
    if len(set(flags) & set("anrw")) > 1:
        return sh.error("history: cannot use more than one of -anrw")
    await recording.sync(sh)
    kept = recording.own(sh)
    if "c" in flags:
        kept.clear()
        if not words:
            return 0
    if "s" in flags:
        if words:
            push = partial(_push, sh, joined(sh, " ", words))
            await offload_large(sh.budget, len(sh.variables.get("HISTIGNORE") or ""), push, LONG_SCRIPT)
        return 0
    if "d" in flags:
        return await _forget(sh, offset)
    if not set(flags) & set("acnrw"):
        return await _listed(sh, words)
    return await _file(sh, flags, words)


def _push(sh: ShellState, text: str) -> None:
    """`history -s` takes the place of the line that it is on."""
    kept = sh.history
    if "history" in sh.options and not kept.pushed and (kept.added or kept.compound):
        if not kept.entries:
            return  # `history -c` was there first: as bash has it, there is nothing to take the place of
        kept.drop(len(kept.entries) - 1, len(kept.entries) - 1)
    kept.added = recording.keep(sh, text)
    kept.pushed = True


async def _listed(sh: ShellState, words: list[str]) -> int:
    entries = sh.history.entries
    count = number_of(words[0]) if words else len(entries)
    if count is None:
        return sh.error(f"history: {words[0]}: numeric argument required")
    if len(words) > 1:
        raise ErrexitExempt("history: too many arguments")
    start = max(0, len(entries) - abs(count))
    base, form = sh.history.base, sh.variables.get("HISTTIMEFORMAT")
    listed = enumerate(entries[start:], base + start)
    lines = (f"{number:5d}  {_when(entry, form)}{entry.text}\n" for number, entry in listed)
    written = write_lines(sh, lines, len(entries) - start, "history")
    return written if isinstance(written, int) else await written


def _when(entry: Entry, form: str | None) -> str:
    if not form:
        return ""
    if entry.at is None:
        return "??"
    shown = time.strftime(form[:_LONGEST_FORM].replace("%s", str(entry.at)), time.gmtime(entry.at))
    return decode(encode(shown)[:_LONGEST_TIME])


_LONGEST_FORM: Final = 1024
_LONGEST_TIME: Final = 127
"""Bytes of a time that bash shows."""


async def _forget(sh: ShellState, offset: str) -> int:
    """`history -d offset` or `-d first-last`."""
    middle = offset.find("-", 1)
    ends = [offset] if middle < 0 else [offset[:middle], offset[middle + 1 :]]
    if any(number_of(end) is None for end in ends):
        return sh.error(f"history: {offset}: history position out of range")
    places: list[int] = []
    kept = sh.history
    for end in ends:
        number = number_of(end) or 0
        place = number + len(kept.entries) if end.startswith("-") and number < 0 else number - kept.base
        if len(ends) > 1 and not number:
            place = 0
        if not 0 <= place < len(kept.entries):
            return sh.error(f"history: {end}: history position out of range")
        places.append(place)
    if places[-1] < places[0]:
        return 1
    kept.drop(places[0], places[-1])
    return 0


async def _file(sh: ShellState, flags: str, words: list[str]) -> int:
    """`-w` and `-a` write the entries, `-r` and `-n` read them, from and to a file or the one that HISTFILE names."""
    name = words[0] if words else sh.variables.get("HISTFILE")
    if not name:
        return 1 if set(flags) & set("nrw") else 0
    try:
        if "a" in flags:
            await recording.append_new(sh, name)
        elif "w" in flags:
            await recording.write_file(sh, name, sh.history.entries, append=False)
        elif "r" in flags or "n" in flags:
            await recording.read_file(sh, name, new_only="n" in flags)
    except OSError as error:
        if "a" in flags:
            from ramet.core.errors import reason

            return sh.error(f"history: {name}: cannot create: {reason(error)}")
        return 1
    return 0


TABLE: Final[dict[str, Builtin]] = {"history": history}
