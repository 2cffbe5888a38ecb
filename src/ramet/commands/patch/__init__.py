"""patch: apply unified, context, normal and ed diffs with offsets, fuzz, rejects and backups."""

from ramet.commands.patch.command import COMMANDS

__all__ = ["COMMANDS"]
