"""A workspace as a sandbox of the OpenAI Agents SDK. Importing this package needs the SDK."""

from __future__ import annotations

from ramet.core.errors import missing_extra

try:
    import agents.sandbox  # noqa: F401
except ImportError as error:
    raise missing_extra("openai-agents", "ramet.agents.openai_agents") from error

from ramet.agents.openai_agents.client import RametSandboxClient, RametSandboxClientOptions
from ramet.agents.openai_agents.session import RametSandboxSession, RametSandboxSessionState
from ramet.agents.openai_agents.snapshots import RametSnapshot, RametSnapshotSpec
from ramet.agents.openai_agents.tools import Edit, EditTool, Mounts

__all__ = [
    "Edit",
    "EditTool",
    "Mounts",
    "RametSandboxClient",
    "RametSandboxClientOptions",
    "RametSandboxSession",
    "RametSandboxSessionState",
    "RametSnapshot",
    "RametSnapshotSpec",
]
