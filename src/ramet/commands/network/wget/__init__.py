"""wget: download files, also a site's pages recursively."""

from ramet.commands.network.wget.command import COMMANDS

__all__ = ["COMMANDS"]
