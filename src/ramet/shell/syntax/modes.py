"""The kinds of text that words consist of: which characters are special in each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal as OneOf


@dataclass(frozen=True, slots=True)
class Mode:
    """Which characters mean something in a stretch of text."""

    special: str  # characters at which the run of plain text ends
    stops: str = ""  # characters that end the text (outside of nested brackets)
    quoted: bool = False  # backslash quotes only `escapes`; ' is plain; "$'" and '$"' are not quotes
    escapes: str = '$`"\\'
    opens: str = ""  # brackets that nest: within them nothing stops
    closes: str = ""
    ternary: bool = False  # `?` makes the next `:` plain (slices)
    procsub: bool = False
    parens: OneOf["", "extglob", "regex"] = ""
    ansi: bool = False  # "$'" is a quote although the text is quoted
    document: bool = False  # the body of a here-document

    def run(self) -> re.Pattern[str]:
        return re.compile("[^" + re.escape(self.special + self.stops + self.opens + self.closes) + "]+")


_QUOTES = "'\"`$\\"
COMMAND = Mode(_QUOTES, " \t\n|&;()<>", procsub=True)
EXTGLOB = Mode(_QUOTES, " \t\n|&;()<>", procsub=True, parens="extglob")
REGEX = Mode(_QUOTES, " \t\n&;()<>", parens="regex")
ARGUMENT = Mode(_QUOTES + "<>", "}", procsub=True)
QUOTED_ARGUMENT = Mode('"`$\\', "}", quoted=True, escapes='$`"\\}', ansi=True)
DOCUMENT_ARGUMENT = Mode('"`$\\', "}", quoted=True, escapes='$`"\\}', document=True)
PATTERN = Mode(_QUOTES, "/}")
SUBSCRIPT = Mode(_QUOTES, "]", opens="[", closes="]")
BRACED_SUBSCRIPT = Mode(_QUOTES + "}", "]", opens="[", closes="]")
SLICE = Mode('"`$\\?', ":}", quoted=True, opens="([", closes=")]", ternary=True)
DOUBLE = Mode("`$\\", '"', quoted=True)
DOCUMENT = Mode("`$\\", "", quoted=True, escapes="$`\\", document=True)
ARITH = Mode('"`$\\', "", quoted=True)
NESTED_EXTGLOB = Mode(_QUOTES, "()", procsub=False)
NESTED_REGEX = Mode(_QUOTES, "()")
RUNS = {
    id(mode): mode.run().match
    for mode in (
        COMMAND, EXTGLOB, REGEX, ARGUMENT, QUOTED_ARGUMENT, PATTERN, SUBSCRIPT, SLICE, DOUBLE, DOCUMENT,
        ARITH, DOCUMENT_ARGUMENT, BRACED_SUBSCRIPT, NESTED_EXTGLOB, NESTED_REGEX,
    )
}  # fmt: skip
