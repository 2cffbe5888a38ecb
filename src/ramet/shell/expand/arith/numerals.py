"""Tests for numbers and names; a text over a length limit is neither."""

from __future__ import annotations

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


def is_name(text: str) -> bool:
    """Whether a variable may be called so."""
    return text.isascii() and text.isidentifier() if len(text) <= LONGEST_NAME else False
