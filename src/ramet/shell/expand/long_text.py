"""Helpers that builtins still import; use the plain string methods instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ramet.concurrency.bigtext import decoded_blocks as decoded_blocks
from ramet.core.paths import decode


def between(separator: str, parts: Iterable[str]) -> Iterator[str]:
    before = ""
    for part in parts:
        yield before + part
        before = separator


def blocks(parts: Iterable[str]) -> Iterator[str]:
    return iter(("".join(parts),))


def decoded(data: bytes | bytearray, stop: int | None = None, start: int = 0) -> str:
    return decode(bytes(data[start:stop]))


async def script_text(host: Any, data: bytes) -> str:
    return decode(data)


def has_any(text: str, chars: str) -> bool:
    return any(char in text for char in chars)


def starts(text: str, part: str, pos: int = 0) -> bool:
    return text.startswith(part, pos)


def search(one: re.Pattern[str], text: str, pos: int = 0) -> int:
    found = one.search(text, pos)
    return len(text) if found is None else found.start()


def windows(text: str) -> Iterator[str]:
    return iter((text,))
