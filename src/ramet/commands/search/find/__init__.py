"""find: walk a tree and run an expression that is compiled to closures once."""

from ramet.commands.search.find.command import COMMANDS

__all__ = ["COMMANDS"]
