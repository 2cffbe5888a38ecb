"""sed: a script is parsed once (`script`) and run by a machine that never waits (`machine`), fed by `command`."""

from ramet.commands.sed.command import COMMANDS

__all__ = ["COMMANDS"]
