"""bc: an arbitrary precision calculator whose programs are parsed into closures and then run."""

from ramet.commands.math.bc.command import COMMANDS

__all__ = ["COMMANDS"]
