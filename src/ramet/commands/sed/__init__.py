"""sed: `script` parses, `machine` runs without awaiting, `command` feeds it with lines."""

from ramet.commands.sed.command import COMMANDS

__all__ = ["COMMANDS"]
