"""tar: create, extract, list, append, update and compare archives as streams."""

from ramet.commands.archives.tar.command import COMMANDS

__all__ = ["COMMANDS"]
