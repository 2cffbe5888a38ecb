"""What is a number and what is a name, asked of texts of any length.

To look at every character of a text of many megabytes takes longer than anyone may be held up, and nobody calls a
variable so or counts that far: from a length on, a text is neither.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

LONGEST_NUMBER: Final = 4096
"""Characters of anything that is worth being read as a number."""
LONGEST_NAME: Final = 1 << 16
"""Characters of anything that may be the name of a variable."""


def is_number(text: str) -> bool:
    """Whether a text is digits and nothing else."""
    return text.isdigit() and text.isascii() if len(text) <= LONGEST_NUMBER else False


def is_signed(text: str) -> bool:
    """Whether a text is a number, with or without a minus."""
    return is_number(text[1:] if text[:1] == "-" else text) if len(text) <= LONGEST_NUMBER else False


def among(name: str, *tables: Collection[str]) -> bool:
    """Whether a name is in one of some tables. To look up a very long one takes its time, so that is only done where
    something is as long."""
    if len(name) > LONGEST_NAME:
        return any(any(len(one) == len(name) for one in table) and name in table for table in tables)
    return any(name in table for table in tables)


def is_name(text: str) -> bool:
    """Whether a variable may be called so."""
    return text.isascii() and text.isidentifier() if len(text) <= LONGEST_NAME else False
