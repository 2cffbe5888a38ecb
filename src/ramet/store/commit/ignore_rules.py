"""What never enters a revision: credentials at the places where tools keep them, at any depth, and what a user adds.

A pattern is a name (`.netrc`, `*.pem`) or a name in a folder (`.config/gh`). What was withheld is told by path only.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from typing import Final

from ramet.core.errors import RametError

CONVENTIONAL: Final = (".netrc", ".git-credentials", ".ssh", ".aws", ".config/gh", ".npmrc")


class IgnoreRules:
    """Patterns, asked for all names of a folder at once: mostly none matches, and that must cost next to nothing."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self.names: set[str] = set()
        self.inside: dict[str, set[str]] = {}
        self.patterns = tuple(patterns)
        """What a user added."""
        globs: list[str] = []
        for pattern in (*CONVENTIONAL, *self.patterns):
            folder, _, name = pattern.strip("/").rpartition("/")
            if not name or "/" in folder or "\0" in pattern:
                raise RametError(
                    "invalid_argument", f"{pattern!r} cannot be withheld", "give a name, or a name in a folder: `a/b`"
                )
            if folder:
                self.inside.setdefault(folder, set()).add(name)
            elif any(char in name for char in "*?["):
                globs.append(fnmatch.translate(name))
            else:
                self.names.add(name)
        self._glob = re.compile("|".join(globs)) if globs else None

    def matching(self, folder: str, names: Iterable[str]) -> set[str]:
        """Those of the names in a folder (given by its own name) that must not be kept."""
        if isinstance(names, dict):  # there are few names to withhold, and looking one up costs nothing
            found = {name for name in self.names if name in names}
        else:
            found = self.names.intersection(names)
        if folder in self.inside:
            found |= self.inside[folder].intersection(names)
        if self._glob is not None:
            found.update(name for name in names if self._glob.match(name))
        return found


DEFAULT_RULES: Final = IgnoreRules()
"""The conventional places alone."""
