"""Verbs about Ramet itself: its version, and what it is."""

from __future__ import annotations

import asyncio

from ramet.apps.cli.errors import reported


def version() -> None:
    """Print the version."""
    from ramet import __version__

    with reported():
        print(__version__)


def demo() -> None:
    """Show the whole idea in a few seconds, in a temporary directory."""
    from ramet.apps.cli.verbs.demo import main

    with reported():
        asyncio.run(main())
