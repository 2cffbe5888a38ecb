"""Parse addresses of a store: `NAME`, `NAME@REV`, `NAME@REV:/path`; REV may end in `~2` or `^2`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ramet.core.errors import RametError

_STEP: Final = re.compile(r"([~^])([0-9]*)")
_STEPS: Final = re.compile(r"(.*?)((?:[~^][0-9]*)*)", re.DOTALL)


@dataclass(frozen=True)
class Address:
    """A workspace, with an optional revision and an optional path."""

    name: str
    revision: str | None = None
    path: str | None = None


def parse_address(text: str) -> Address:
    """Split an address into its parts. A path is absolute, so the first `:/` ends the name."""
    where, colon, path = text.partition(":")
    if colon and not path.startswith("/"):
        raise RametError("invalid_argument", f"{text!r} has no absolute path", "write NAME@REVISION:/path")
    name, at, revision = where.partition("@")
    if not name or (at and not revision):
        raise RametError(
            "invalid_argument", f"{text!r} does not name a workspace or revision", "write NAME or NAME@REVISION"
        )
    return Address(name, revision if at else None, path if colon else None)


def split_steps(spec: str) -> tuple[str, list[tuple[str, int]]]:
    """Split `head~2^2` into `head` and the steps from there: `("~", 2)` parents back, `("^", 2)` the second parent."""
    matched = _STEPS.fullmatch(spec)
    assert matched is not None
    return matched[1], [(sign, int(number) if number else 1) for sign, number in _STEP.findall(matched[2])]
