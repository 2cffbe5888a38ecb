"""`Checkpointer`: the seam to whatever can take images of running processes. None is shipped; who has one plugs it in.

Rules that this file keeps:
- A revision holds a pointer to an image and the principal that it belongs to, never a byte of memory.
- An image holds secrets that were in memory: it is resumed for its own principal, and refused to any other, loudly.
- An image that is gone leaves the files: the sandbox starts with those, and says that it did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ramet.core.errors import RametError
from ramet.store.model.revisions import MemoryImage, Revision

if TYPE_CHECKING:
    from ramet.workspace.workspace import Workspace


class Checkpointer(Protocol):
    async def save(self, ws: Workspace) -> str:
        """Take an image of what runs in this workspace; the id under which it is found again."""
        ...

    async def exists(self, ref: str) -> bool: ...

    async def resume(self, ref: str, ws: Workspace) -> None:
        """Go on from the image, in a workspace that holds the files of its revision.

        A machine that wakes up twice must not draw the same random numbers: reseed them, and set the clock.
        """
        ...

    async def discard(self, ref: str) -> None: ...


def unavailable_here() -> RametError:
    return RametError(
        "checkpoint_unavailable", "cannot checkpoint: this sandbox has no checkpointer",
        "terminate without checkpoint=True, or give AgentRun a checkpointer",
    )  # fmt: skip


async def wake(head: Revision | None, ws: Workspace, checkpointer: Checkpointer | None, principal: str) -> str | None:
    """Resume the image of a head. None when there is nothing to resume or it was; else why only the files are here."""
    image = None if head is None else head.memory
    if image is None:
        return None
    if checkpointer is None or not await checkpointer.exists(image.ref):
        return "the memory image of the head is not available: the sandbox starts with its files"
    if image.principal != principal:
        raise mismatch(image)
    await checkpointer.resume(image.ref, ws)
    return None


def mismatch(image: MemoryImage) -> RametError:
    return RametError(
        "principal_mismatch", f"the memory image of the head belongs to {image.principal or 'no principal'!r}",
        "act as that principal, or start with the files alone: sandbox(..., resume=False)",
    )  # fmt: skip
