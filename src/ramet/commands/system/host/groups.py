"""groups: the groups of the user."""

from __future__ import annotations

from ramet.commands.framework.command import Command
from ramet.commands.system.host.id import groups

COMMANDS = [
    Command("groups", groups, summary="Print group memberships.", usage="[USERNAME]...", original="GNU coreutils 9.1"),
]
