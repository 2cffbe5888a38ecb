"""The command history: numbered entries with their times, and the format of a history file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple

Source = Callable[[int], Awaitable[list[tuple[int, str, float]]]]
"""Number, text and time of each record after a number."""


class Entry(NamedTuple):
    """A command and the time when it was read, if known."""

    text: str
    at: int | None = None


@dataclass(slots=True)
class History:
    """The history of a shell; a subshell changes only its `fork`."""

    entries: list[Entry] = field(default_factory=list)
    base: int = 1
    new: int = 0
    """Entries of this shell that are in no file yet."""
    in_file: int = 0
    """Lines of the history file that were read, or that this shell has written."""
    added: bool = False
    """Whether the running line was added as an entry."""
    compound: bool = False
    """Whether the lines that are running were kept as one entry."""
    pushed: bool = False
    """Whether `history -s` has put something in its place."""
    loaded: bool = False
    commands: int = 0
    """Commands that were read: the number that `\\#` shows in a prompt."""
    source: Source | None = None
    """Where the commands are recorded that this shell is given: asked for what came after a number."""
    running: str = ""
    """What this shell was given to run now, until it is in the list."""
    provisional: int = 0
    """Entries at the end that come from what runs now."""
    mark: int = 0
    """The number of the last record of a workspace that was taken over."""
    ahead: int = 0
    """Records to come that are in the list already."""

    def fork(self) -> History:
        twin = History(list(self.entries), self.base, self.new, self.in_file)
        twin.added, twin.compound, twin.pushed, twin.loaded = self.added, self.compound, self.pushed, self.loaded
        twin.commands, twin.source, twin.running = self.commands, self.source, self.running
        twin.provisional, twin.mark, twin.ahead = self.provisional, self.mark, self.ahead
        return twin

    def add(self, text: str, at: int | None, most: int | None) -> None:
        if most is not None and len(self.entries) >= most:
            if not most:
                return
            drop = len(self.entries) - most + 1
            del self.entries[:drop]
            self.base += drop
        self.entries.append(Entry(text, at))

    def shrink(self, most: int) -> None:
        """Keep the `most` newest entries; numbering restarts, as in bash."""
        drop = len(self.entries) - most
        if drop > 0:
            del self.entries[:drop]
            self.base = drop
        self.new = min(self.new, len(self.entries))

    def drop(self, first: int, last: int) -> None:
        """Forget entries by their places in the list."""
        count = len(self.entries)
        self.provisional -= max(min(last + 1, count) - max(first, count - self.provisional), 0)
        del self.entries[first : last + 1]
        self.new = max(self.new - (count - len(self.entries)), 0)

    def clear(self) -> None:
        self.entries.clear()
        self.provisional = 0
        self.base, self.new = 1, 0


def file_text(entries: list[Entry], times: bool) -> str:
    """Entries as a history file holds them."""
    texts: list[str] = []
    for entry in entries:
        if times and entry.at is not None:
            texts.append(f"#{entry.at}\n")
        texts += (entry.text, "\n")
    return "".join(texts)


def read_entries(text: str, skip: int, whole: bool) -> tuple[list[Entry | str], int]:
    """The entries of a file after the first `skip` ones, and how many there are in all.

    With times in the file and `whole`, lines without a time belong to the entry before them: they come as plain text.
    """
    found: list[Entry | str] = []
    count = 0
    at: int | None = None
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    timed = is_time(text)
    for line in lines:
        line = line.removesuffix("\r")
        if is_time(line):
            at = int(line[1:]) if line[1:].isdigit() else None
            continue
        count += 1
        if count > skip and line:
            found.append(line if whole and timed and at is None else Entry(line, at))
        at = None
    return found, count


def is_time(line: str) -> bool:
    return line[:1] == "#" and line[1:2].isdigit() and line[1:2].isascii()
