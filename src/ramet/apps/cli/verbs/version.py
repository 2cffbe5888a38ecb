"""`ramet version`: print the version."""

from __future__ import annotations


def version() -> None:
    """Print the version."""
    from ramet import __version__

    print(__version__)
