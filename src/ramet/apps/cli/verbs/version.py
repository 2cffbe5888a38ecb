"""`ramet version`: print the version."""

from __future__ import annotations

from ramet.apps.cli.options import AsJson
from ramet.apps.cli.output import say


def version(as_json: AsJson = False) -> None:
    """Print the version."""
    from ramet import __version__

    say({"version": __version__}, __version__, as_json)
