"""awk: parsed to a tree, analyzed, written as Python source, compiled once and run over blocks of records."""

from ramet.commands.awk.command import COMMANDS

__all__ = ["COMMANDS"]
