"""Pattern errors, with the messages of the GNU library."""

from __future__ import annotations

BAD_PATTERN = "Invalid regular expression"
BAD_COLLATION = "Invalid collation character"
BAD_CLASS = "Invalid character class name"
BAD_ESCAPE = "Trailing backslash"
BAD_BACKREF = "Invalid back reference"
OPEN_BRACKET = "Unmatched [, [^, [:, [., or [="
OPEN_PAREN = "Unmatched ( or \\("
OPEN_BRACE = "Unmatched \\{"
BAD_INTERVAL = "Invalid content of \\{\\}"
BAD_RANGE = "Invalid range end"
TOO_BIG = "Regular expression too big"
BAD_REPEAT = "Invalid preceding regular expression"
CLOSE_PAREN = "Unmatched ) or \\)"
RECURSIVE_ESCAPE = "recursive escaping after \\c not allowed"
CLASS_SYNTAX = "character class syntax is [[:space:]], not [:space:]"


class PatternError(ValueError):
    """The pattern cannot be compiled; the text is what the GNU library says."""


class MatchTimeout(RuntimeError):
    """A match on an engine that can backtrack took longer than its limit."""
