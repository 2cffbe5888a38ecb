"""patch: unified, context, normal and ed diffs applied with offsets, fuzz, rejects and backups as GNU patch does."""

from ramet.commands.patch.command import COMMANDS

__all__ = ["COMMANDS"]
