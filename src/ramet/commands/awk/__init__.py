"""awk: programs are parsed, analyzed, compiled to Python source and run over blocks of records."""

from ramet.commands.awk.command import COMMANDS

__all__ = ["COMMANDS"]
