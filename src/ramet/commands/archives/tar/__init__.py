"""tar: create, extract, list, append, update, compare, from and to streams; extraction never leaves its directory."""

from ramet.commands.archives.tar.command import COMMANDS

__all__ = ["COMMANDS"]
