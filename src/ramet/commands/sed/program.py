"""Parsed sed script: addresses, instructions and their arguments, all frozen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from ramet import patterns
from ramet.patterns import Dialect, Matcher


class ScriptError(Exception):
    """Wrong script; the message without the name of the command."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status
        self.written: tuple[str, ...] = ()
        """Files to write that the script named before the error."""


class Kind(Enum):
    LINE = "line"
    STEP = "step"
    LAST = "last"
    REGEX = "regex"
    ZERO = "zero"
    PLUS = "plus"
    MULTIPLE = "multiple"


class Address(NamedTuple):
    kind: Kind
    first: int = 0
    step: int = 0
    matcher: Matcher | None = None
    """None for a regex means the last one used."""


AFTER_RUN = 2


class Piece(NamedTuple):
    """A part of a replacement: text or a group, with the case change that starts before it."""

    text: bytes = b""
    group: int = -1
    case: str = ""


class Flags(NamedTuple):
    """Flags of a substitution."""

    every: bool = False
    number: int = 0
    show: int = 0
    icase: bool = False
    multi: bool = False
    file: str | None = None
    run: bool = False


@dataclass(frozen=True, slots=True)
class Substitution:
    matcher: Matcher | None
    pieces: tuple[Piece, ...]
    every: bool = False
    number: int = 1
    show: int = 0
    """Whether the result is printed: never, after the substitution, or (`AFTER_RUN`) after it was run."""
    file: str | None = None
    run: bool = False
    """The result is run as a command and replaced by its output."""


@dataclass(frozen=True, slots=True)
class Instruction:
    name: str
    first: Address | None = None
    second: Address | None = None
    negated: bool = False
    text: bytes = b""
    """Text to insert, a label, or a file name."""
    target: int = -1
    """Where a jump, or a block that is not entered, continues."""
    number: int = -1
    """Exit status or line length."""
    substitution: Substitution | None = None
    table: bytes | None = None
    mapping: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ScriptSource:
    """One -e or -f; `name` is the file's, None for an expression."""

    text: str
    name: str | None = None
    complete: bool = False
    """Whether a newline followed the text."""


@dataclass(frozen=True, slots=True)
class Flavour:
    extended: bool = False
    posix: bool = False
    utf8: bool = True
    seconds: float = 10.0
    sandbox: bool = False
    null_data: bool = False
    lax_references: bool = False
    """A reference to a missing group is empty."""

    @property
    def dialect(self) -> Dialect:
        found = patterns.SED_EXTENDED if self.extended else patterns.SED_BASIC
        return replace(found, gnu=False) if self.posix else found
