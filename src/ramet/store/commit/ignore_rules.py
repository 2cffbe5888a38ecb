"""`IgnoreRules`: files that never enter a revision, such as credentials, at any depth.

- A pattern is a name (`.netrc`, `*.pem`) or a name in a folder (`.config/gh`).
- A pattern after `!` allows what the built-in rules withhold: `!.env`, `!*.pem`, `!.kube/config`.
- A `*.pem` or `*.key` file is withheld by its content, when that says PRIVATE KEY.
- Ignored files are reported by path only.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable
from typing import Final

from ramet.core.errors import RametError

CONVENTIONAL: Final = (
    ".netrc", ".git-credentials", ".ssh", ".aws", ".config/gh", ".npmrc", ".env", "id_rsa", "id_ed25519", "id_ecdsa",
    ".pypirc", ".docker/config.json", ".kube/config", ".config/gcloud",
)  # fmt: skip
STATE_SUFFIXES: Final = (".tfstate", ".tfstate.backup")
KEY_SUFFIXES: Final = (".pem", ".key")
EXAMPLES: Final = (".example", ".sample", ".template", ".dist")
"""Endings of `.env.*` files that hold no secrets."""
PRIVATE: Final = b"PRIVATE KEY"
HEAD: Final = 65_536
"""Bytes of a key file that are searched."""
VERSION: Final = 2
"""Grows with the built-in rules, so that caches of earlier ones are not used."""
FirstBytes = Callable[[str], bytes]
"""Returns the first `HEAD` bytes of a named file; nothing for what is not a file."""


class IgnoreRules:
    """Patterns, matched against all names of a directory at once, as usually none matches."""

    def __init__(self, patterns: Iterable[str] = (), *, built_in: bool = True) -> None:
        self._built_in = built_in
        self.names: set[str] = set()
        self.inside: dict[str, set[str]] = {}
        self.patterns = tuple(patterns)
        """The patterns of the user."""
        globs: list[str] = []
        open_: list[str] = []
        for pattern in (*(CONVENTIONAL if built_in else ()), *self.patterns):
            allow = pattern.startswith("!")
            folder, _, name = pattern.removeprefix("!").strip("/").rpartition("/")
            if not name or "/" in folder or "\0" in pattern:
                raise RametError(
                    "invalid_argument", f"{pattern!r} cannot be withheld", "give a name, or a name in a folder: `a/b`"
                )
            if allow and folder:
                self.inside.get(folder, set()).discard(name)
            elif allow:
                self.names.discard(name)
                open_.append(fnmatch.translate(name))
            elif folder:
                self.inside.setdefault(folder, set()).add(name)
            elif any(char in name for char in "*?["):
                globs.append(fnmatch.translate(name))
            else:
                self.names.add(name)
        self._glob = re.compile("|".join(globs)) if globs else None
        self._open = re.compile("|".join(open_)) if open_ else None

    def matching(self, folder: str, names: Iterable[str], first_bytes: FirstBytes) -> set[str]:
        """Return the ignored ones of these names; `folder` is the name of their directory."""
        if isinstance(names, dict):  # few patterns: look them up in the dictionary
            found = {name for name in self.names if name in names}
        else:
            found = self.names.intersection(names)
        if folder in self.inside:
            found |= self.inside[folder].intersection(names)
        if self._built_in:
            found.update(name for name in names if name.endswith(STATE_SUFFIXES) or name.startswith(".env."))
            found.difference_update([name for name in found if name.startswith(".env.") and name.endswith(EXAMPLES)])
            found.update(name for name in names if name.endswith(KEY_SUFFIXES) and PRIVATE in first_bytes(name))
        if self._open is not None:
            found = {name for name in found if not self._open.match(name)}
        if self._glob is not None:
            found.update(name for name in names if self._glob.match(name))
        return found


DEFAULT_RULES: Final = IgnoreRules()
"""The built-in rules."""
NO_RULES: Final = IgnoreRules(built_in=False)
"""For content that was filtered when it was drafted."""
