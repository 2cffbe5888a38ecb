"""Stored trees as the lower layers of native programs: how to write them, and which ones a commit has stored."""

from __future__ import annotations

from ramet.core.errors import RametError
from ramet.native.lowers import Checkout, StoredTrees
from ramet.store.crypto.codec import as_encrypted
from ramet.store.model.ids import TreeId
from ramet.store.model.revisions import Revision
from ramet.store.repository import Repository


def tree_checkout(repository: Repository, tree: TreeId | None) -> Checkout | None:
    """Return how to write a tree to a directory. No plain copy of an encrypted store outlives its workspace."""
    if tree is None:
        return None
    wanted = tree

    def fill(target: str) -> None:
        from ramet.store.checkout.directory import checkout

        found = checkout(repository.packs, wanted, target)
        if found.problems:
            raise RametError(
                "store_corrupt", f"cannot read {found.problems[0]} from the store",
                "Run `ramet verify`, then `ramet repair`.",
            )  # fmt: skip

    return Checkout(tree.hex(), fill, kept=as_encrypted(repository.objects) is None)


def stored_trees(made: Revision, began: int) -> StoredTrees | None:
    """Return the trees of a commit that began at a time; None where it left something out."""
    if made.withheld or made.outputs:
        return None
    return StoredTrees({mount.prefix: mount.tree.hex() for mount in made.mounts if mount.tree is not None}, began)
