"""The case of letters as C sees it: letter by letter; one that would become two stays as it is, or gives the first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final


class Changed(dict[int, str]):
    """What becomes of characters, by their codes; for `str.translate`. What is kept in mind is bounded."""

    def __init__(self, change: Callable[[str], str]) -> None:
        super().__init__()
        self._change = change

    def __missing__(self, code: int) -> str:
        found = self._change(chr(code))
        if len(self) < _KEPT:
            self[code] = found
        return found


_KEPT: Final = 10_000
"""Characters whose change is kept in mind."""

_UPPER: Final = Changed(lambda char: big if len(big := char.upper()) == 1 else char)
_LOWER: Final = Changed(lambda char: char.lower()[0])


def upper(text: str) -> str:
    return text.upper() if text.isascii() else text.translate(_UPPER)


def lower(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(_LOWER)
