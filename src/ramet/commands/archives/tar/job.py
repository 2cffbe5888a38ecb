"""The state that the parts of one tar run share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ramet.commands.archives.tar.format import RECORD
from ramet.commands.archives.tar.options import TarOptions
from ramet.core import paths
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.streams import Writer


class Matching(NamedTuple):
    """How to match a name, by the options before it; None stands for the default."""

    wildcards: bool | None = None
    anchored: bool | None = None
    ignore_case: bool = False
    match_slash: bool | None = None


USUAL = Matching()


class Failed(Exception):
    """A fatal error; without arguments its message was printed."""


@dataclass
class TarJob:
    proc: Proc
    o: TarOptions
    cwd: Path
    verbose: int
    status: int = 0
    record: int = RECORD
    """Bytes of a record."""
    quoting: str = "escape"
    excluded: list[tuple[str, Matching]] = field(default_factory=list)
    rename: Callable[[str, str], str] | None = None
    stripped_warned: set[str] = field(default_factory=set)
    listing_to: Writer | None = None
    index: Writer | None = None
    """The file of --index-file, which receives the listing."""
    ignoring: list[tuple[Path, str, bool]] = field(default_factory=list)
    """Patterns of ignore files: directory, pattern, and whether it applies recursively."""
    newest: dict[str, float] = field(default_factory=dict)
    """The mtimes of members in an archive that is updated."""
    owners: dict[str, str] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)

    def complain(self, message: str, status: int = 2) -> None:
        self.proc.complain(message)
        self.status = max(self.status, status)

    def path(self, word: str) -> Path:
        return paths.parse(word, self.cwd)

    def say(self, text: str, block: int | None = None) -> None:
        """Print a line of the listing, with -R with its block number."""
        lead = f"block {block}: " if block is not None and self.o.block_number else ""
        (self.proc.stdout if self.listing_to is None else self.listing_to).write(encode(f"{lead}{text}\n"))


def environment(job: TarJob) -> dict[str, str]:
    """Return the environment of commands that tar runs."""
    return {
        "TAR_VERSION": "1.34",
        "TAR_ARCHIVE": job.o.file or "-",
        "TAR_BLOCKING_FACTOR": str(job.record // 512),
        "TAR_VOLUME": "1",
        "TAR_FORMAT": job.o.format,
        "TAR_SUBCOMMAND": f"-{job.o.mode}",
    }
