"""`IgnoreRules`: files that never enter a revision, such as credentials, at any depth.

A pattern is a name (`.netrc`, `*.pem`) or a name in a folder (`.config/gh`). Ignored files are reported by path only.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from typing import Final

from ramet.core.errors import RametError

CONVENTIONAL: Final = (".netrc", ".git-credentials", ".ssh", ".aws", ".config/gh", ".npmrc")


class IgnoreRules:
    """Patterns, matched against all names of a directory at once, as usually none matches."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self.names: set[str] = set()
        self.inside: dict[str, set[str]] = {}
        self.patterns = tuple(patterns)
        """The patterns of the user."""
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
        """Return the ignored ones of these names; `folder` is the name of their directory."""
        if isinstance(names, dict):  # few patterns: look them up in the dictionary
            found = {name for name in self.names if name in names}
        else:
            found = self.names.intersection(names)
        if folder in self.inside:
            found |= self.inside[folder].intersection(names)
        if self._glob is not None:
            found.update(name for name in names if self._glob.match(name))
        return found


DEFAULT_RULES: Final = IgnoreRules()
"""The built-in rules."""
