"""Parameters that several verbs share: the workspace, the store, the output format."""

from __future__ import annotations

from typing import Annotated

from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.stores import any_store
from ramet.core.errors import RametError

Where = Annotated[
    str,
    Option("--store", envvar="RAMET_HOME", help="Directory or URL of the store, or of a server (http://, unix:)."),
]
AsJson = Annotated[bool, Option("--json", envvar="RAMET_OUTPUT=json", help="Print JSON.")]
Message = Annotated[str, Option("--message", "-m", help="Message of the revision.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Show no progress.")]


def known_names(prefix: str, store: str) -> list[str]:
    """List the workspaces whose names start with `prefix`, for completion."""
    try:
        names = any_store(store).ls()
    except (OSError, RametError):
        return []
    return [name for name in names if name.startswith(prefix)]


Name = Annotated[str, Argument(help="Workspace: NAME, or NAME@REVISION for verbs that read.", complete=known_names)]

ConfigFile = Annotated[str | None, Option("--config", envvar="RAMET_CONFIG", help="Configuration of the workspace.")]
