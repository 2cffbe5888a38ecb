"""Checks of rg before a search: patterns its engine refuses, and colour settings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ramet.commands.framework.command import UsageError
from ramet.patterns import PatternError

_ADVICE = "\n\nConsider enabling PCRE2 with the --pcre2 flag, which can handle backreferences\nand look-around."
_PARTS = re.compile(r"\\([1-9])|\\.|\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]|(\(\?<?[=!])", re.DOTALL)


def check_plain(pattern: str) -> None:
    """Refuse patterns that only PCRE2 supports, with rg's message."""
    for found in _PARTS.finditer(pattern):
        if found[1]:
            why = "backreferences are not supported"
        elif found[2]:
            why = "look-around, including look-ahead and look-behind, is not supported"
        else:
            continue
        mark = " " * found.start() + "^" * len(found[0])
        raise PatternError(f"\n    {pattern}\n    {mark}\nerror: {why}{_ADVICE}")


_TYPES = {"path": "file", "line": "line", "column": "byte", "match": "selected_match"}
_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_STYLES = {"bold": "1", "underline": "4", "intense": "", "nobold": "", "nointense": "", "nounderline": ""}


def chosen_colours(specs: Sequence[str]) -> dict[str, Any]:
    """Parse `--colors` to the SGR sequence of each part of a line."""
    parts: dict[str, dict[str, str]] = {
        "path": {"fg": "35"},
        "line": {"fg": "32"},
        "column": {},
        "match": {"style": "1", "fg": "31"},
    }
    for spec in specs:
        kind, _, rest = spec.partition(":")
        if kind not in parts:
            raise UsageError(
                f"unrecognized output type '{kind}'. Choose from: path, line, column, match.", 2, hint=False
            )
        name, _, stored = rest.partition(":")
        if name == "none":
            parts[kind].clear()
        elif name in ("fg", "bg"):
            parts[kind][name] = _colour(stored, 3 if name == "fg" else 4)
        elif name == "style" and stored in _STYLES:
            parts[kind]["style"] = _STYLES[stored]
        else:
            raise UsageError(f"unrecognized spec type '{name}'. Choose from: fg, bg, style, none.", 2, hint=False)
    shown = {_TYPES[kind]: ";".join(code for code in _in_order(chosen) if code) for kind, chosen in parts.items()}
    return {**shown, "separator": "", "context_match": shown["selected_match"]}


def _in_order(chosen: dict[str, str]) -> list[str]:
    return [chosen.get(name, "") for name in ("style", "fg", "bg")]


def _colour(name: str, plane: int) -> str:
    if name in _NAMES:
        return f"{plane}{_NAMES.index(name)}"
    numbers = name.split(",")
    if len(numbers) in (1, 3) and all(number.isdecimal() and int(number) < 256 for number in numbers):
        return f"{plane}8;{5 if len(numbers) == 1 else 2};{';'.join(numbers)}"
    raise UsageError(f"unrecognized color name '{name}'. Choose from: {', '.join(_NAMES)}", 2, hint=False)
