"""curl: transfer URLs over HTTP and HTTPS."""

from ramet.commands.network.curl.command import COMMANDS

__all__ = ["COMMANDS"]
