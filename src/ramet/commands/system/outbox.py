"""Sending of letters through a mount, which `post` and `mail` share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ramet.commands.framework.inputs import slurp
from ramet.core import ops
from ramet.core.fs import Lending
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.resource import Letter, Posting


class Outbox(NamedTuple):
    """A place of a mount that sends."""

    word: str
    """The place as it was typed."""
    path: Path
    power: Posting
    inner: Path


async def outbox_of(proc: Proc, word: str, otherwise: str) -> Outbox | None:
    """The outbox at a place; None after a complaint."""
    path, found = proc.path(word), None
    if isinstance(proc.fs, Lending):
        found = await proc.fs.power(path, Posting, write=True)  # type: ignore[type-abstract]
    if found is None:
        proc.complain(f"{word}: {otherwise}")
        return None
    return Outbox(word, path, *found)


async def content_of(proc: Proc, text: str | None, files: Sequence[str]) -> tuple[bytes, tuple[tuple[str, bytes], ...]]:
    """The text of a letter, given or from standard input, and its attachments."""
    body = encode(text) if text is not None else await slurp(proc, "-")
    found = [(name.rsplit("/", 1)[-1], await ops.read_bytes(proc.fs, proc.path(name))) for name in files]
    return body, tuple(found)


async def send(proc: Proc, outbox: Outbox, letter: Letter, done: str) -> int:
    """Send a letter once and print its id after the word `done`."""
    try:
        number = await outbox.power.post(letter)
    except ValueError as error:
        proc.complain(str(error))
        return 1
    except OSError as error:
        proc.complain(f"{outbox.word}: {error.strerror}")
        return 1
    finally:
        if isinstance(proc.fs, Lending):
            proc.fs.changed(outbox.path)
    await proc.emit(encode(f"{done} {number}\n"))
    return 0
