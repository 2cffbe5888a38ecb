"""`Checkpointer`: interface for saving and resuming images of running processes. None is included.

- A revision holds a reference to an image and its principal, never the bytes.
- An image may contain secrets: it is resumed only for its own principal, and refused to any other.
- When the image is missing, the sandbox starts with its files, and warns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ramet.core.errors import RametError
from ramet.store.model.revisions import MemoryImage, Revision

if TYPE_CHECKING:
    from ramet.workspace.workspace import Workspace


class Checkpointer(Protocol):
    async def save(self, ws: Workspace) -> str:
        """Save an image of the running processes; return its id."""
        ...

    async def exists(self, ref: str) -> bool: ...

    async def resume(self, ref: str, ws: Workspace) -> None:
        """Resume from an image, in a workspace with the files of its revision.

        Reseed random numbers and set the clock: an image may be resumed more than once.
        """
        ...

    async def discard(self, ref: str) -> None: ...


def unavailable_here() -> RametError:
    return RametError(
        "checkpoint_unavailable", "cannot checkpoint: this sandbox has no checkpointer",
        "terminate without checkpoint=True, or give AgentRun a checkpointer",
    )  # fmt: skip


async def wake(head: Revision | None, ws: Workspace, checkpointer: Checkpointer | None, principal: str) -> str | None:
    """Resume the image of a head. None on success or without an image; else the reason why only the files are
    available."""
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
