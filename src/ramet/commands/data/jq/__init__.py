"""jq: parsed to a tree, compiled to closures that yield values or paths, and run over a stream of JSON texts."""

from ramet.commands.data.jq.command import COMMANDS

__all__ = ["COMMANDS"]
