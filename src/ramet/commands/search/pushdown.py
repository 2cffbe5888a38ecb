"""Let mounts that can search decide which files of a tree a search must read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from ramet.core.fs import Lending
from ramet.core.paths import Path
from ramet.core.proc import Proc

_PLAIN: Final = re.compile(rb"[\w @,:;/<>=!%&~'\"-]+")
"""Patterns that are literal in every dialect."""


async def sieve(proc: Proc, wanted: Sequence[bytes], literal: bytes | None, icase: bool, top: Path) -> Sieve | None:
    """Return a test that files below `top` pass if a pattern of `wanted` may match in them.

    `literal` is the text of a single literal pattern. None if no mount can search for it.
    """
    if literal is None and len(wanted) == 1 and _PLAIN.fullmatch(wanted[0]):
        literal = wanted[0]
    if not literal or not isinstance(proc.fs, Lending):
        return None
    try:
        text = literal.decode()
    except UnicodeDecodeError:
        return None
    if not icase:
        return await proc.fs.sieve(top, text)
    return await proc.fs.sieve(top, text.lower(), fold=True) if text.isascii() else None


Sieve = Callable[[Path], bool]
