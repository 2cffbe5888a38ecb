"""What all verbs of the command line share: options, addresses, tables or JSON, and how errors are told."""

from __future__ import annotations

from typing import Annotated

import typer

from ramet.apps.cli.errors import reported as reported
from ramet.apps.cli.output import address as address
from ramet.apps.cli.output import clock as clock
from ramet.apps.cli.output import counted as counted
from ramet.apps.cli.output import described as described
from ramet.apps.cli.output import file_of as file_of
from ramet.apps.cli.output import moment as moment
from ramet.apps.cli.output import say as say
from ramet.apps.cli.output import show as show
from ramet.apps.cli.output import split as split
from ramet.apps.cli.progress import watched as watched
from ramet.apps.cli.verbs.exec import HOME as HOME
from ramet.apps.cli.verbs.exec import anywhere as anywhere
from ramet.apps.cli.verbs.exec import chosen as chosen
from ramet.apps.cli.verbs.exec import configured as configured
from ramet.apps.cli.verbs.exec import opened as opened
from ramet.core.errors import RametError

Where = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="RAMET_HOME",
        help="Directory or URL of the store, or of a server (http://, unix:).",
        show_default=True,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON (also when the output is piped).")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def known_names(incomplete: str) -> list[str]:
    """Workspaces whose names begin so, for the shell's completion."""
    import os

    try:
        names = anywhere(os.environ.get("RAMET_HOME") or HOME).ls()
    except (OSError, RametError):
        return []
    return [name for name in names if name.startswith(incomplete)]


Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Name of a workspace; NAME@REVISION where a revision makes sense.",
        autocompletion=known_names,
    ),
]

ConfigFile = Annotated[
    str | None, typer.Option("--config", envvar="RAMET_CONFIG", help="File that describes the workspace.")
]
