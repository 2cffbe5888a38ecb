"""The text around a bad substitution, which bash shows in its message."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ramet.shell.syntax.nodes import Bad

_QUOTES = re.compile(r'(\\[^"])|\\(?=")', re.DOTALL).sub


def surround(bad: Sequence[Bad], unclosed: list[Bad], around: str, quoted: bool) -> None:
    """Tell those of a text what it is. Those of quotes that nothing closes wait for the text around the quotes."""
    text = _QUOTES(r"\1", around) if bad and quoted else around
    for one in bad:
        one.around = text
    unclosed += [one for one in bad if one.unclosed]
    if not quoted:
        for one in unclosed:
            one.around = around
        unclosed.clear()
