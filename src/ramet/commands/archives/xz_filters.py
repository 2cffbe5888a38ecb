"""The chains of filters that xz is told by options: `--delta=dist=4 --lzma2=preset=9e,dict=64MiB`."""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterable
from typing import Any

from ramet.commands.framework.command import UsageError

Filter = dict[str, Any]

NAMES = ("lzma1", "lzma2", "x86", "arm", "armthumb", "ia64", "powerpc", "sparc", "delta")
_IDS = {
    "lzma1": lzma.FILTER_LZMA1,
    "lzma2": lzma.FILTER_LZMA2,
    "x86": lzma.FILTER_X86,
    "arm": lzma.FILTER_ARM,
    "armthumb": lzma.FILTER_ARMTHUMB,
    "ia64": lzma.FILTER_IA64,
    "powerpc": lzma.FILTER_POWERPC,
    "sparc": lzma.FILTER_SPARC,
    "delta": lzma.FILTER_DELTA,
}
_MODES = {"fast": lzma.MODE_FAST, "normal": lzma.MODE_NORMAL}
_FINDERS = {
    "hc3": lzma.MF_HC3,
    "hc4": lzma.MF_HC4,
    "bt2": lzma.MF_BT2,
    "bt3": lzma.MF_BT3,
    "bt4": lzma.MF_BT4,
}
_RANGES = {
    "dict": ("dict_size", 4096, 1610612736),
    "lc": ("lc", 0, 4),
    "lp": ("lp", 0, 4),
    "pb": ("pb", 0, 4),
    "nice": ("nice_len", 2, 273),
    "depth": ("depth", 0, 0xFFFFFFFF),
    "dist": ("dist", 1, 256),
    "start": ("start_offset", 0, 0xFFFFFFFF),
}
"""Options by name: what the library calls them, and between which numbers they may be."""
_LZMA = frozenset({"preset", "dict", "lc", "lp", "pb", "mode", "nice", "mf", "depth"})
_BINARY = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def chain(order: Iterable[tuple[str, object]]) -> list[Filter]:
    """The chain that options in this order make; a level behind them takes them all back."""
    found: list[Filter] = []
    for name, given in order:
        if name == "level":
            found.clear()
        elif name in NAMES:
            if len(found) == 4:
                raise UsageError("Maximum number of filters is four", hint=False)
            found.append(_filter(name, str(given)))
    return found


def checked(found: list[Filter], kind: str) -> None:
    """Refuses a chain that the format (`xz`, `lzma` or `raw`) cannot have."""
    ids = [item["id"] for item in found]
    if kind == "lzma" and ids != [lzma.FILTER_LZMA1]:
        raise UsageError("The .lzma format supports only the LZMA1 filter", hint=False)
    if kind == "xz" and lzma.FILTER_LZMA1 in ids:
        raise UsageError("LZMA1 cannot be used with the .xz format", hint=False)
    last = (lzma.FILTER_LZMA1, lzma.FILTER_LZMA2)
    if ids[-1] not in last or any(place in last for place in ids[:-1]):
        raise UsageError("Unsupported filter chain or filter options", hint=False)


def _filter(name: str, text: str) -> Filter:
    made: Filter = {"id": _IDS[name]}
    known = _LZMA if name.startswith("lzma") else {"dist"} if name == "delta" else {"start"}
    for part in text.split(","):
        if not part:
            continue
        option, equals, given = part.partition("=")
        if not equals or not given:
            raise UsageError(f"{part}: Options must be `name=value' pairs separated with commas", hint=False)
        if option not in known:
            raise UsageError(f"{option}: Invalid option name", hint=False)
        if option == "preset":
            made = {"id": _IDS[name], "preset": _preset(given)}
        elif option in ("mode", "mf"):
            words = _MODES if option == "mode" else _FINDERS
            if given not in words:
                raise UsageError(f"{given}: Invalid option value", hint=False)
            made[option] = words[given]
        else:
            called, low, high = _RANGES[option]
            made[called] = amount(given, option, low, high)
    if name.startswith("lzma") and made.get("lc", 3) + made.get("lp", 0) > 4:
        raise UsageError("The sum of lc and lp must not exceed 4", hint=False)
    return made


def _preset(text: str) -> int:
    found = re.fullmatch(r"(\d)(e?)", text)
    if found is None:
        raise UsageError(f"Unsupported LZMA1/LZMA2 preset: {text}", hint=False)
    return int(found[1]) | (lzma.PRESET_EXTREME if found[2] else 0)


def amount(text: str, option: str, low: int, high: int) -> int:
    """A number with one of xz's suffixes, within its range."""
    if text == "max":
        return high
    found = re.fullmatch(r"(\d+)(.*)", text, re.DOTALL)
    if found is None:
        raise UsageError(f"{text}: Value is not a non-negative decimal integer", hint=False)
    suffix = re.fullmatch(r"([kKmMgG]?)(i?B?)", found[2])
    if suffix is None or (suffix[2] and not suffix[1]):
        raise UsageError(
            f"{found[2]}: Invalid multiplier suffix\nxz: Valid suffixes are `KiB' (2^10), `MiB' (2^20), and "
            "`GiB' (2^30).",
            hint=False,
        )
    number = int(found[1]) * _BINARY[suffix[1].lower()]
    if not low <= number <= high:
        raise UsageError(f"Value of the option `{option}' must be in the range [{low}, {high}]", hint=False)
    return number
