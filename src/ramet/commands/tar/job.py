"""One run of tar: what its parts share, and the failure that ends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ramet.commands.tar.options import TarOptions
from ramet.core import paths
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.streams import Writer


class Failed(Exception):
    """Nothing more can be done; the message was or is to be said."""


@dataclass
class Job:
    proc: Proc
    o: TarOptions
    cwd: Path
    verbose: int
    status: int = 0
    excluded: list[str] = field(default_factory=list)
    rename: Callable[[str, str], str] | None = None
    stripped_warned: set[str] = field(default_factory=set)
    listing_to: Writer | None = None
    index: Writer | None = None
    """The file of --index-file, which the listing goes to whatever else happens."""
    ignoring: list[tuple[Path, str, bool]] = field(default_factory=list)
    """Patterns of ignore files: the directory of the file, the pattern, and whether it holds further down."""

    def complain(self, message: str, status: int = 2) -> None:
        self.proc.complain(message)
        self.status = max(self.status, status)

    def path(self, word: str) -> Path:
        return paths.parse(word, self.cwd)

    def say(self, text: str) -> None:
        (self.proc.stdout if self.listing_to is None else self.listing_to).write(encode(text + "\n"))
