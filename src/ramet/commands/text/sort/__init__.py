"""sort: keys computed once per line, lines compared as latin-1 text, large inputs spilled to runs.

Collation is by bytes, as in the C and C.UTF-8 locales.
"""

from ramet.commands.text.sort.command import COMMANDS

__all__ = ["COMMANDS"]
