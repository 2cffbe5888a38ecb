"""`Keys`: what the owner of an encrypted store does with its keys: look, rotate, destroy."""

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
    """Keys of its own."""
    ids: tuple[str, ...]
    """Ids of all its keys in order, also of those that came with a fork or a merge."""
    wrapped_by: tuple[str, ...]
    """Ids of the keys that open it."""
    names: tuple[str, ...]
    """Where those came from when they wrapped it."""
    destroyed: int
    """Keys that it had and that nobody has any more."""


class Keys:
    """The keys of an encrypted store: `store.crypto.wrapping_keys`."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    @property
    def wrapped_by(self) -> str:
        """The id of the key that opened the store."""
        return require_encrypted(self._repository.objects).keychain.rings.key.id

    def show(self) -> list[RingReport]:
        """The keyrings of all workspaces."""
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
        """Let another key open the store, and the one that did open nothing any more. No data is written anew.

        At every moment one of the two opens everything: the old one until the marker of the store says otherwise, the
        new one from then on. A rotation that was interrupted goes on when it is begun again; `old` is for one that was
        interrupted after that moment, while others made workspaces with the old key.
        """
        return require_encrypted(self._repository.objects).rotate(new, old)

    def shred(self, name: str) -> Shredded:
        """Destroy the keys of a workspace: what only they could open is lost for ever."""
        return self._repository.shred(name)
