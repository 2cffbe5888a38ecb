"""tar: create, extract, list, append, update, compare, from and to streams; extraction never leaves its directory."""

from ramet.commands.tar.command import COMMANDS

__all__ = ["COMMANDS"]
