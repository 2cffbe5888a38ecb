"""jq: programs are parsed, compiled to closures over values or paths, and run on a stream of JSON."""

from ramet.commands.data.jq.command import COMMANDS

__all__ = ["COMMANDS"]
