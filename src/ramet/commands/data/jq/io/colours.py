"""Coloured JSON output of jq."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from ramet.commands.data.jq.values import Json, dumps, quoted

RESET = "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Palette:
    null: str = "1;30"
    false: str = "0;39"
    true: str = "0;39"
    number: str = "0;39"
    string: str = "0;32"
    array: str = "1;39"
    object: str = "1;39"
    key: str = "34;1"

    @classmethod
    def parse(cls, setting: str) -> Palette | None:
        """JQ_COLORS: the colours in order, separated by colons; nothing if one of them cannot be a colour."""
        names = tuple(field.name for field in fields(cls))
        given = setting.removesuffix(":").split(":")[: len(names)] if setting else []
        if not all(map(_COLOUR.fullmatch, given)):
            return None
        return cls(**dict(zip(names, given, strict=False)))


_COLOUR = re.compile("[0-9;]{0,12}")


def coloured(value: Json, palette: Palette, indent: str | None, sort: bool, ascii_only: bool) -> str:
    out: list[str] = []
    _write(value, palette, indent, "\n", sort, ascii_only, out)
    return "".join(out)


def _key(key: str, palette: Palette, start: str, indent: str | None, ascii_only: bool) -> str:
    colon = ": " if indent is not None else ":"
    return f"\x1b[{palette.key}m{quoted(key, ascii_only)}{RESET}{start}{colon}{RESET}"


def _write(
    value: Json, palette: Palette, indent: str | None, margin: str, sort: bool, ascii_only: bool, out: list[str]
) -> None:
    inner = "" if indent is None else margin + indent
    outer = "" if indent is None else margin
    if isinstance(value, list):
        start = f"\x1b[{palette.array}m"
        if not value:
            out.append(f"{start}[]{RESET}")
            return
        out.append(start + "[")
        for position, item in enumerate(value):
            out.append(inner if not position else f"{start},{inner}")
            _write(item, palette, indent, margin + (indent or ""), sort, ascii_only, out)
        out.append(f"{start}{outer}{start}]{RESET}")
    elif isinstance(value, dict):
        start = f"\x1b[{palette.object}m"
        if not value:
            out.append(f"{start}{{}}{RESET}")
            return
        out.append(start + "{")
        for position, key in enumerate(sorted(value) if sort else value):
            out.append(f"{inner}{RESET}" if not position else f"{start},{inner}{RESET}")
            out.append(_key(key, palette, start, indent, ascii_only))
            _write(value[key], palette, indent, margin + (indent or ""), sort, ascii_only, out)
        out.append(f"{start}{outer}{start}}}{RESET}")
    else:
        name = {True: palette.true, False: palette.false}.get(value) if isinstance(value, bool) else None
        if name is None:
            name = palette.null if value is None else palette.string if isinstance(value, str) else palette.number
        out.append(f"\x1b[{name}m{dumps(value, ascii_only=ascii_only)}{RESET}")
