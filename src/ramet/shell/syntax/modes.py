"""The kinds of text that words consist of: which characters are special in each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from typing import Literal as OneOf

RUN: Final = 1 << 16
"""Characters of plain text that one match takes at most: no other thread runs meanwhile."""


@dataclass(frozen=True, slots=True)
class Mode:
    """Which characters mean something in a stretch of text."""

    special: str  # characters at which the run of plain text ends
    stops: str = ""  # characters that end the text (outside of nested brackets)
    quoted: bool = False  # backslash quotes only `escapes`; ' is plain; "$'" and '$"' are not quotes
    escapes: str = '$`"\\'  # of quoted text; empty: a backslash vanishes before any character
    opens: str = ""  # brackets that nest: within them nothing stops
    closes: str = ""
    ternary: bool = False  # `?` makes the next `:` plain (slices)
    procsub: bool = False
    parens: OneOf["", "extglob", "regex"] = ""
    ansi: bool = False  # "$'" is a quote although the text is quoted
    document: bool = False  # the body of a here-document
    paired: bool = False  # single quotes, although plain, go in pairs between which nothing stops

    def run(self) -> re.Pattern[str]:
        special = re.escape(self.special + self.stops + self.opens + self.closes)
        return re.compile(f"[^{special}]{{1,{RUN}}}+")


_QUOTES = "'\"`$\\"
COMMAND = Mode(_QUOTES, " \t\n|&;()<>", procsub=True)
EXTGLOB = Mode(_QUOTES, " \t\n|&;()<>", procsub=True, parens="extglob")
REGEX = Mode(_QUOTES, " \t\n&;()<>", parens="regex")
ARGUMENT = Mode(_QUOTES + "<>", "}", procsub=True)
QUOTED_ARGUMENT = Mode(_QUOTES, "}", quoted=True, escapes='$`"\\}', ansi=True, paired=True)
DOCUMENT_ARGUMENT = Mode(_QUOTES, "}", quoted=True, escapes='$`"\\}', document=True, paired=True)
PATTERN = Mode(_QUOTES, "/}")
SUBSCRIPT = Mode(_QUOTES, "]", opens="[", closes="]")
BRACED_SUBSCRIPT = Mode(_QUOTES + "}", "]", opens="[", closes="]")
SLICE = Mode('"`$\\?', ":}", quoted=True, opens="([", closes=")]", ternary=True)
LENGTH = Mode('"`$\\', "}", quoted=True, opens="([", closes=")]")
DOUBLE = Mode("`$\\", '"', quoted=True)
DOUBLE_IN_ARGUMENT = Mode("`$\\", '"', quoted=True, escapes="")
DOCUMENT = Mode("`$\\", "", quoted=True, escapes="$`\\", document=True)
ARITH = Mode('"`$\\', "", quoted=True)
NESTED_EXTGLOB = Mode(_QUOTES, "()", procsub=False)
NESTED_REGEX = Mode(_QUOTES, "()")
RUNS = {
    id(mode): mode.run().match
    for mode in (
        COMMAND, EXTGLOB, REGEX, ARGUMENT, QUOTED_ARGUMENT, PATTERN, SUBSCRIPT, SLICE, LENGTH, DOUBLE, DOCUMENT,
        DOUBLE_IN_ARGUMENT,         ARITH, DOCUMENT_ARGUMENT, BRACED_SUBSCRIPT, NESTED_EXTGLOB, NESTED_REGEX,
    )
}  # fmt: skip
