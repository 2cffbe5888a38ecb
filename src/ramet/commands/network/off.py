"""What in-process clients say when the network is off."""

from __future__ import annotations

from typing import Final

from ramet.core.proc import Proc
from ramet.network.door import SessionDoor
from ramet.network.network import REMEDY

OFF: Final = f"the network is off in this workspace; {REMEDY}"


def door_of(proc: Proc) -> SessionDoor | None:
    """The session's door to the network; None where it is off."""
    found = proc.services.network
    return found if isinstance(found, SessionDoor) else None
