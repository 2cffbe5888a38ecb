"""find: the tree is walked, one scan per directory; what is done to each file is compiled to closures once."""

from ramet.commands.search.find.command import COMMANDS

__all__ = ["COMMANDS"]
