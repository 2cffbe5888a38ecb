"""`NativeFlags`: which workspaces run real programs whenever they are opened.

native/<workspace>      exists for those that do
"""

from __future__ import annotations

from ramet.store.objects.objects import Objects


class NativeFlags:
    """The flags of a store; they say what a workspace wants, the opening process whether it can."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def of(self, name: str) -> bool:
        try:
            self._objects.get(f"native/{name}")
        except KeyError:
            return False
        return True

    def set(self, name: str) -> None:
        self._objects.put(f"native/{name}", b"{}")

    def clear(self, name: str) -> None:
        self._objects.delete(f"native/{name}")
