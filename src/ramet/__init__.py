"""Ramet: every backend as one file tree, a real shell over it, every state saved and versioned.

    from ramet import Workspace, RAMResource, DiskResource, MountMode

Names are imported when they are first used, so that `import ramet` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ramet.apps.client import connect as connect
    from ramet.backends.disk import DiskResource as DiskResource
    from ramet.backends.ram import RAMResource as RAMResource
    from ramet.core.errors import RametError as RametError
    from ramet.core.limits import Limits as Limits
    from ramet.store.retention import Retention as Retention
    from ramet.workspace.agent_run import AgentRun as AgentRun
    from ramet.workspace.config import load_config as load_config
    from ramet.workspace.mounts import MountMode as MountMode
    from ramet.workspace.result import IOResult as IOResult
    from ramet.workspace.store import Store as Store
    from ramet.workspace.workspace import Workspace as Workspace

__version__ = "0.1.0"

_PLACES = {
    "AgentRun": "ramet.workspace.agent_run",
    "DiskResource": "ramet.backends.disk",
    "IOResult": "ramet.workspace.result",
    "Limits": "ramet.core.limits",
    "MountMode": "ramet.workspace.mounts",
    "RAMResource": "ramet.backends.ram",
    "RametError": "ramet.core.errors",
    "Retention": "ramet.store.retention",
    "Store": "ramet.workspace.store",
    "Workspace": "ramet.workspace.workspace",
    "connect": "ramet.apps.client",
    "load_config": "ramet.workspace.config",
}

__all__ = [
    "AgentRun",
    "DiskResource",
    "IOResult",
    "Limits",
    "MountMode",
    "RAMResource",
    "RametError",
    "Retention",
    "Store",
    "Workspace",
    "__version__",
    "connect",
    "load_config",
]


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'ramet' has no attribute {name!r}")
    value = getattr(import_module(place), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
