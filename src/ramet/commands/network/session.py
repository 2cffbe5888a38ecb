"""The door of the session that a command runs in."""

from __future__ import annotations

from typing import Final

from ramet.core.proc import Proc
from ramet.network.door import SessionDoor

REACH: Final = "Without a network policy it reaches only the loopback of a native workspace. See docs/network.md."


def door_of(proc: Proc) -> SessionDoor | None:
    """The session's door to the network; None where it is off."""
    found = proc.services.network
    return found if isinstance(found, SessionDoor) else None
