"""`Keys`: list, rotate and shred the keys of an encrypted store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ramet.store.crypto.codec import require_encrypted

if TYPE_CHECKING:
    from ramet.store.crypto.encrypted_objects import Shredded
    from ramet.store.crypto.wrapping_keys import KeySource
    from ramet.store.repository import Repository


@dataclass(frozen=True)
class RingReport:
    """The keyring of one workspace, without any key."""

    workspace: str
    state: str
    """`exists`, `removed` (its keys are still here), or `shredded`."""
    epochs: int
    """Keys created for this workspace."""
    ids: tuple[str, ...]
    """Ids of all its keys in order, including copies from forks and merges."""
    wrapped_by: tuple[str, ...]
    """Ids of the wrapping keys that open it."""
    names: tuple[str, ...]
    """Sources of those keys when they wrapped it."""
    destroyed: int
    """Keys that no workspace has any longer."""


class Keys:
    """The keys of an encrypted store: `store.crypto.wrapping_keys`."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    @property
    def wrapped_by(self) -> str:
        """The id of the key that opened the store."""
        return require_encrypted(self._repository.objects).keychain.rings.key.id

    def show(self) -> list[RingReport]:
        """List the keyrings of all workspaces."""
        living = set(self._repository.ls())
        found: list[RingReport] = []
        rings = require_encrypted(self._repository.objects).keychain.rings.rings()
        held = {identity for ring in rings for identity in ring.ids}
        for ring in rings:
            state = "exists" if ring.workspace in living else "removed" if ring.batches else "shredded"
            wraps = [wrap for batch in ring.batches for wrap in batch.wraps]
            found.append(
                RingReport(
                    ring.workspace, state, sum(batch.own for batch in ring.batches),
                    tuple(identity.hex() for identity in ring.ids), tuple(sorted({wrap.key for wrap in wraps})),
                    tuple(sorted({wrap.name for wrap in wraps})), len(ring.shredded - held),
                )
            )  # fmt: skip
        return found

    def rotate(self, new: KeySource, old: KeySource | None = None) -> int:
        """Replace the key that opens the store, without rewriting data.

        At any time one of the two keys opens everything: the old one until the marker changes, the new one from then
        on. An interrupted rotation continues when it is started again; `old` is needed when others created workspaces
        with the old key after that moment.
        """
        return require_encrypted(self._repository.objects).rotate(new, old)

    def shred(self, name: str) -> Shredded:
        """Destroy the keys of a workspace, which loses its content for good."""
        return self._repository.shred(name)
