"""`LineHistory`: the commands that the up key brings back, of earlier shells too; an entry may have several lines."""

from __future__ import annotations

import os
from typing import Final

LENGTH: Final = 1000
"""Entries that are kept."""
BREAK: Final = "\x1e"
"""Stands for a line break within an entry, in the file."""


class LineHistory:
    """The history of readline, and its file."""

    def __init__(self, path: str) -> None:
        import readline

        self._readline, self._path = readline, path
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                for line in file.read().split("\n")[:-1][-LENGTH:]:
                    readline.add_history(line.replace(BREAK, "\n"))
        except OSError:
            pass  # no history file yet

    def join(self, text: str, lines: int) -> None:
        """Make one entry of a command that was typed in so many lines."""
        last = self._readline.get_current_history_length()
        for number in range(last - 1, max(-1, last - 1 - lines), -1):
            entry = self._readline.get_history_item(number + 1)
            if entry is None or entry not in text.split("\n"):
                break  # an empty line has no entry
            self._readline.remove_history_item(number)
        self._readline.add_history(text)

    def save(self) -> None:
        """Write the file, readable only by its user."""
        count = self._readline.get_current_history_length()
        kept = [self._readline.get_history_item(number + 1) for number in range(max(0, count - LENGTH), count)]
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.writelines(entry.replace("\n", BREAK) + "\n" for entry in kept if entry)
        except OSError:
            pass  # no writable home directory: the next shell has no history
