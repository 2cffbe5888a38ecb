"""The awk dialect of a program: gawk, POSIX or traditional, and how numbers are read."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.patterns import parse as patterns


@dataclass(frozen=True, slots=True)
class Dialect:
    utf8: bool = True
    extensions: bool = True
    """Whether there is more than what POSIX or the first awk had."""
    posix: bool = False
    nondecimal: bool = False
    """Whether input may hold octal and hexadecimal numbers."""
    ignores_case: bool = False
    """Whether IGNORECASE is set from outside the program."""

    @property
    def plain_numbers(self) -> bool:
        return not (self.posix or self.nondecimal)

    @property
    def regex(self) -> patterns.Dialect:
        """How regular expressions are read."""
        if self.posix:
            return patterns.AWK_POSIX
        return patterns.AWK if self.extensions else patterns.AWK_TRADITIONAL


GNU = Dialect()
