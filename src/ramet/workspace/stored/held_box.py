"""Reach the box of a workspace that another process of this machine and user holds open: what listens in it.

The binding of an open workspace names the directories of its box, and the box leaves a note of its network there.
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Final

from ramet.core.errors import RametError
from ramet.native.ports import BoxNetwork, ListeningPort, Ports, read_note
from ramet.network.relay import Connection
from ramet.store.refs.leases import describe_holder
from ramet.store.repository import Repository
from ramet.workspace.stored.recovery import leftover_bindings

START: Final = "Start the program in `ramet shell {0}` or with `ramet exec {0}`, and leave that running meanwhile."


class HeldPorts:
    """Ports of a workspace, whichever process has it open now, and after it was opened again."""

    def __init__(self, repository: Repository, name: str) -> None:
        self._repository, self._name = repository, name
        self._network: BoxNetwork | None = None
        self._ports = Ports(lambda: self._network)

    def listening(self) -> list[ListeningPort]:
        """List the ports at which programs listen; an error says why nothing can."""
        self._network = self._find()
        return self._ports.listening()

    async def connect(self, port: int) -> Connection:
        """Connect to a port; ConnectionRefusedError where nothing listens."""
        if self._network is None or not self._network.alive:
            self._network = await asyncio.to_thread(self._find)
        return Connection(*await asyncio.open_connection(sock=await self._ports.connect(port)))

    def close(self) -> None:
        self._ports.close()

    def _find(self) -> BoxNetwork:
        repository, name = self._repository, self._name
        repository.check_access(name, "readwrite")
        entry = repository.refs.require(name)
        if not entry.holder or not repository.refs.is_held(name):
            raise RametError(
                "not_found", f"nothing runs in {name}: no process has it open", START.format(name), {"workspace": name}
            )
        holder = describe_holder(entry.holder)
        for binding in leftover_bindings(repository, name):
            if binding.fence != entry.fence:
                continue
            if binding.host != socket.gethostname():
                raise RametError(
                    "unavailable", f"{name} is open on another machine: {holder}",
                    "Run this there, or with --store URL where a server holds it.",
                )  # fmt: skip
            for root in sorted(binding.boxes):
                found = read_note(root)
                if found is not None:
                    return found
                if os.path.isdir(root) and not os.access(root, os.R_OK):
                    raise RametError(
                        "permission_denied", f"{name} is open for another user: {holder}",
                        "Run this as that user, or with --store URL where a server holds it.",
                    )  # fmt: skip
        raise RametError(
            "not_found", f"no real programs run in {name}, which is held by {holder}",
            "Open it with --native there: only real programs listen.",
        )  # fmt: skip
