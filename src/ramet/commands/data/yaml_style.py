"""The style of a YAML document: what is kept of it besides its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ramet.commands.data.jq.values import Json

_NOTHING = object()
"""The value of a style without source."""
_NONE: Mapping[Any, Any] = MappingProxyType({})
"""The parts of a scalar."""


@dataclass(slots=True)
class Looks:
    """How a node was written."""

    style: str = ""
    """The quote, `|` or `>` of a scalar; `flow` of a collection."""
    source: str = ""
    """A scalar just as it stood there."""
    value: Any = _NOTHING
    above: Sequence[str] = ()
    """Comment lines before it."""
    comment: str = ""
    """The comment behind it."""
    children: Mapping[str | int, Looks] = field(default_factory=lambda: _NONE)
    keys: Mapping[str, str] = field(default_factory=lambda: _NONE)
    """How keys were spelled."""


@dataclass(slots=True)
class Document:
    value: Json
    looks: Looks
    known: dict[int, tuple[Json, Looks]]
    """Collections of the value by identity; each is held, so that no other gets its number."""
    below: Sequence[str] = ()
    """Comments behind everything."""
