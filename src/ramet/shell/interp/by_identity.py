"""What was made of trees, kept by which object a tree is: parse results are kept by text, so repeats are one object."""

from __future__ import annotations

from itertools import islice
from typing import Final, Generic, TypeVar

V = TypeVar("V")

_FEW: Final = 16


class ByIdentity(Generic[V]):
    """Keeps at most so many; the oldest go first, a few at a time."""

    __slots__ = ("_kept", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[int, tuple[object, V]] = {}

    def get(self, tree: object) -> V | None:
        found = self._kept.get(id(tree))
        return found[1] if found is not None and found[0] is tree else None

    def put(self, tree: object, made: V) -> V:
        if len(self._kept) >= self._most:
            for key in list(islice(self._kept, _FEW)):
                del self._kept[key]
        self._kept[id(tree)] = (tree, made)  # holding the tree, no other can have its identity
        return made
