"""bc: arbitrary precision calculator; programs are parsed into closures and run."""

from ramet.commands.math.bc.command import COMMANDS

__all__ = ["COMMANDS"]
