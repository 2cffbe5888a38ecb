"""`WorkspaceOptions`: how a workspace is opened unless its opener says otherwise, one JSON object each.

native/<workspace>      real programs run in it, within these bounds: {"limits": {"processes": 100}}
configs/<workspace>     its configuration file: {"file": "/home/ada/ramet.yaml", "text": "mounts: ..."}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ramet.core.errors import RametError
from ramet.store.objects.objects import Objects


class WorkspaceOptions:
    """Options of one kind by workspace; they say what one wants, the opening process whether it can."""

    def __init__(self, objects: Objects, kind: str) -> None:
        self._objects, self._kind = objects, kind

    def of(self, name: str) -> Mapping[str, Any] | None:
        """Return the options of a workspace; None for one without."""
        place = f"{self._kind}/{name}"
        try:
            found = json.loads(self._objects.get(place))
        except KeyError:
            return None
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise RametError("store_corrupt", f"{place} is damaged", "Remove it, and create it again.")
        return found

    def set(self, name: str, options: Mapping[str, Any]) -> None:
        self._objects.put(f"{self._kind}/{name}", json.dumps(dict(options), sort_keys=True).encode())

    def clear(self, name: str) -> None:
        self._objects.delete(f"{self._kind}/{name}")
