"""sort: keys are computed once per line, lines sort as latin-1 text (byte order at C speed), big inputs spill to runs.

Collation is by bytes, as in the C and C.UTF-8 locales.
"""

from ramet.commands.text.sort.command import COMMANDS

__all__ = ["COMMANDS"]
