"""Sizes as ls, du, df and numfmt print them: block sizes, and human-readable sizes rounded up."""

from __future__ import annotations

import re

from ramet.commands.framework.command import UsageError, quote
from ramet.commands.framework.inputs import size_suffix

_LETTERS = "KMGTPEZYRQ"


def human(size: int, base: int = 1024) -> str:
    """`1.5K`: one decimal below ten, whole numbers above, always rounded up."""
    if size < base:
        return str(size)
    power = 0
    scaled, divisor = size, 1
    while scaled >= base and power < len(_LETTERS):
        divisor *= base
        power += 1
        scaled = size // divisor
    tenths = -(-size * 10 // divisor)
    letter = _LETTERS[power - 1] if base == 1024 or power > 1 else "k"
    if tenths < 100:
        return f"{tenths // 10}.{tenths % 10}{letter}"
    whole = -(-size // divisor)
    if whole >= base and power < len(_LETTERS):
        return f"1.0{_LETTERS[power]}"
    return f"{whole}{letter}"


class BlockSize:
    """`--block-size`, `-h`, `-k`, `-b`: how a number of bytes is written."""

    def __init__(self, unit: int = 1024, base: int = 0, suffix: str = "") -> None:
        self.unit, self.base, self.suffix = unit, base, suffix

    def show(self, size: int) -> str:
        if self.base:
            return human(size, self.base)
        return f"{-(-size // self.unit)}{self.suffix}"

    @classmethod
    def parse(cls, text: str, option: str = "--block-size") -> BlockSize:
        if text.startswith("'"):
            text = text[1:]
        if text in ("human-readable", "si"):
            return cls(base=1024 if text[0] == "h" else 1000)
        found = re.fullmatch(r"(\d*)([A-Za-z]*)", text)
        factor = size_suffix(found[2]) if found and text else None
        if found is None or factor is None or found[1] == "0" * max(1, len(found[1])):
            what = "suffix in " if found and factor is None and found[1] else ""
            raise UsageError(f"invalid {what}{option} argument {quote(text)}", hint=False)
        suffix = "" if found[1] else found[2]
        if suffix == "K" or suffix == "kB":
            suffix = suffix
        return cls(int(found[1] or 1) * factor, suffix=suffix)
