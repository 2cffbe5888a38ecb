"""`NativeOptions`: which workspaces run real programs whenever they are opened, and within which bounds.

native/<workspace>      exists for those that do: {"limits": {"processes": 100}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ramet.core.errors import RametError
from ramet.store.objects.objects import Objects


class NativeOptions:
    """The options by workspace; they say what one wants, the opening process whether it can."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def of(self, name: str) -> Mapping[str, Any] | None:
        """Return the options of a workspace; None for one without real programs."""
        try:
            found = json.loads(self._objects.get(f"native/{name}"))
        except KeyError:
            return None
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise RametError("store_corrupt", f"native/{name} is damaged", "Remove it, and create it again.")
        return found

    def set(self, name: str, options: Mapping[str, Any]) -> None:
        self._objects.put(f"native/{name}", json.dumps(dict(options), sort_keys=True).encode())

    def clear(self, name: str) -> None:
        self._objects.delete(f"native/{name}")
