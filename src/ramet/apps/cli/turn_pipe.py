"""`ramet turn` and `ramet rewind` inside the box of a bound directory: a script there, and a pipe to this process.

`/run/ramet/ramet` writes a line to the pipe `/run/ramet/ask`: the name of a pipe for the answer, then its words as
`=` and base64. The answer is the exit status on a line, then what to print. The box needs a shell for that, and
neither Python nor a network. A program of the box may write anything there: it gets no more than these two verbs.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from ramet.apps.cli.addresses import split_name
from ramet.apps.cli.errors import STATUS
from ramet.apps.cli.verb_table import find
from ramet.core.errors import RametError
from ramet.core.paths import Path, parse
from ramet.core.resource import How
from ramet.core.stat import Attrs

if TYPE_CHECKING:
    from ramet.apps.cli.turns import Turns
    from ramet.native.tree import TreeResource

FOLDER: Final = parse("/run/ramet")
ASK: Final = FOLDER / "ask"
LINE_BYTES: Final = 4000
"""Below the size that the kernel writes to a pipe as a whole."""
WAITING: Final = 64
"""Requests that wait; more are dropped."""
READER_SECONDS: Final = 5.0
"""How long the asker may take to open the pipe for its answer."""
SCRIPT: Final = rb"""#!/bin/sh
# Asks the process that has bound this directory for a revision, or to go back to one.
case $1 in turn | rewind) ;; *)
  echo "ramet: only turn and rewind work in a bound directory" >&2
  exit 2 ;;
esac
answer=$(mktemp -u /run/ramet/answer.XXXXXXXXXX) && mkfifo -m 600 "$answer" || exit 1
trap 'rm -f "$answer"' EXIT
trap 'exit 130' INT TERM
line=${answer##*/}
for word; do line="$line =$(printf %s "$word" | base64 -w 0)"; done
if [ ${#line} -gt 4000 ]; then
  echo "ramet: the message is too long" >&2
  exit 2
fi
printf '%s\n' "$line" > /run/ramet/ask
{
  read -r status
  if [ "$status" = 0 ]; then cat; else cat >&2; fi
} < "$answer"
exit "${status:-1}"
"""
_LINE: Final = re.compile(rb"(answer\.[A-Za-z0-9]{10})((?: =[A-Za-z0-9+/]*=*)+)")


class TurnPipe:
    """Answers `ramet turn` and `ramet rewind` of one box; `tree` is what it has at `/`."""

    def __init__(self, tree: TreeResource, turns: Turns, name: str) -> None:
        self._tree, self._turns, self._name = tree, turns, name
        self._asked: asyncio.Queue[bytes] = asyncio.Queue(WAITING)
        self._begun = b""

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        """Put the script and the pipe in the box, and answer."""
        tree = self._tree
        for folder in (FOLDER.parent, FOLDER):
            try:
                await tree.mkdir(folder)
            except FileExistsError:
                continue
        await tree.write(FOLDER / "ramet", _blocks(SCRIPT), How.REPLACE)
        await tree.setattr(FOLDER / "ramet", Attrs(mode=0o755))
        await tree.mkfifo(ASK)
        fd = tree.open_fifo(ASK, os.O_RDWR | os.O_NONBLOCK)  # also for writing: it never ends
        loop = asyncio.get_running_loop()
        loop.add_reader(fd, self._read, fd)
        answering = asyncio.create_task(self._answer_all())
        try:
            yield
        finally:
            loop.remove_reader(fd)
            os.close(fd)
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)

    def _read(self, fd: int) -> None:
        try:
            data = os.read(fd, 65536)
        except BlockingIOError:
            return
        *lines, self._begun = (self._begun + data).split(b"\n")
        self._begun = self._begun[-LINE_BYTES:]
        for line in lines:
            if not self._asked.full():
                self._asked.put_nowait(line)

    async def _answer_all(self) -> None:
        while True:
            found = _LINE.fullmatch(await self._asked.get())
            if found is None:
                continue  # of no script of ours
            words = [base64.b64decode(word[1:]).decode("utf-8", "replace") for word in found[2].split()]
            status, text = await self._act(words)
            await self._tell(FOLDER / found[1].decode(), f"{status}\n{text}\n".encode())

    async def _act(self, words: list[str]) -> tuple[int, str]:
        from ramet.apps.cli.parser import UsageError, parse

        verb = find(words[0])
        if verb is None or verb.name not in ("turn", "rewind"):
            return 2, "ramet: only turn and rewind work in a bound directory"
        command = verb.command()
        if "--help" in words or "-h" in words:
            return 0, f"Usage: {command.usage}\n\n{command.help}"
        try:
            given = parse(command, words[1:], {}, {})
            where, revision = (self._name, None) if given["name"] is None else split_name(given["name"])
            if where != self._name:
                raise RametError("not_found", f"{where} is not bound here", f"This directory is that of {self._name}.")
            if verb.name == "turn":
                name, changed = await self._turns.turn(given["message"])
            else:
                name, changed = await self._turns.rewind(revision)
        except UsageError as wrong:
            return 2, f"ramet: {wrong.cause}\n       {wrong.remedy}"
        except RametError as error:
            return STATUS.get(error.code, 1), f"ramet: {error.cause}\n       {error.remediation}"
        except OSError as error:
            return 1, f"ramet: {error.strerror or error}"
        return 0, json.dumps({"revision": name, "changed": changed}) if given["as_json"] else name

    async def _tell(self, place: Path, data: bytes) -> None:
        """Write to the asker's pipe, if it still reads."""
        try:
            async with asyncio.timeout(READER_SECONDS):
                while (fd := self._writer(place)) < 0:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        except (TimeoutError, OSError):
            return  # it has gone, or this is no pipe
        try:
            os.write(fd, data)
        except OSError:
            return  # it has gone meanwhile
        finally:
            os.close(fd)

    def _writer(self, place: Path) -> int:
        try:
            return self._tree.open_fifo(place, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno == errno.ENXIO and not _is_no_pipe(error):
                return -1  # no reader yet
            raise


def _is_no_pipe(error: OSError) -> bool:
    return error.filename is not None and str(error.filename).startswith(str(FOLDER))


async def _blocks(data: bytes) -> AsyncIterator[bytes]:
    yield data
