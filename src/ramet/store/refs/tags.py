"""Tags: permanent names of revisions, each with its own log, which keep their revisions from collection.

tags/<workspace>/<tag>/<20-digit number>     {"target", "message", "author", "time"}; a target of null: deleted
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ramet.core.errors import RametError, wrong_type
from ramet.store.model.ids import RevisionId
from ramet.store.objects.log import Log
from ramet.store.refs.refs import NAME

_NUMBER: Final = re.compile(r"[0-9]+")


@dataclass(frozen=True)
class Tag:
    """A name for a revision of a workspace."""

    workspace: str
    name: str
    target: RevisionId
    message: str = ""
    author: str = ""
    time: float = 0.0


class Tags:
    """The tags of all workspaces of a store."""

    def __init__(self, log: Log, clock: Callable[[], float] = time.time) -> None:
        self._log, self._clock = log, clock

    def find(self, workspace: str, name: str) -> Tag | None:
        return self._last(workspace, name)[1]

    def of(self, workspace: str) -> list[Tag]:
        """List the tags of a workspace, by name."""
        names = [found.partition("/")[2] for found in self._log.names(workspace + "/")]
        return [tag for name in names if (tag := self.find(workspace, name)) is not None]

    def create(
        self, workspace: str, name: str, target: RevisionId, *, message: str = "", author: str = "", force: bool = False
    ) -> Tag:
        """Tag a revision. An existing tag moves only with `force`."""
        check_name(workspace, name)
        number, old = self._last(workspace, name)
        if old is not None and not force:
            if old.target == target and old.message == message:
                return old
            raise RametError(
                "already_exists", f"tag {name!r} of {workspace!r} names another revision",
                "take another name, delete it first, or force it to move",
            )  # fmt: skip
        tag = Tag(workspace, name, target, message, author, self._clock())
        self._append(workspace, name, number + 1, tag)
        return tag

    def delete(self, workspace: str, name: str) -> None:
        number, old = self._last(workspace, name)
        if old is None:
            raise RametError("not_found", f"workspace {workspace!r} has no tag {name!r}", "see `tag` for what there is")
        self._append(workspace, name, number + 1, None)

    def clear(self, workspace: str) -> None:
        """Delete all tags of a removed workspace."""
        for tag in self.of(workspace):
            self.delete(workspace, tag.name)

    def _last(self, workspace: str, name: str) -> tuple[int, Tag | None]:
        if not NAME.fullmatch(name):
            return 0, None
        newest = self._log.newest(f"{workspace}/{name}")
        if newest is None:
            return 0, None
        number, data = newest
        try:
            plain = json.loads(data)
            if plain["target"] is None:
                return number, None
            target = RevisionId(bytes.fromhex(plain["target"]))
            return number, Tag(workspace, name, target, plain["message"], plain["author"], plain["time"])
        except (ValueError, KeyError, TypeError):
            raise RametError(
                "store_corrupt", f"tag {name!r} of {workspace!r} is damaged", "run verify, then repair"
            ) from None

    def _append(self, workspace: str, name: str, number: int, tag: Tag | None) -> None:
        plain = {"target": None, "message": "", "author": "", "time": self._clock()}
        if tag is not None:
            plain = {"target": tag.target.hex(), "message": tag.message, "author": tag.author, "time": tag.time}
        if not self._log.append(f"{workspace}/{name}", number, json.dumps(plain, sort_keys=True).encode()):
            raise RametError("head_moved", f"tag {name!r} of {workspace!r} changed concurrently", "try again")


def check_name(workspace: str, name: str) -> None:
    """Refuse names with another meaning after `NAME@`."""
    if not isinstance(name, str):
        raise wrong_type("the name of a tag", name, "Pass text.")
    taken = name.lower() == "head" or _NUMBER.fullmatch(name) or re.fullmatch(re.escape(workspace) + r"-[0-9]+", name)
    if taken or not NAME.fullmatch(name):
        raise RametError(
            "invalid_argument", f"{name!r} cannot name a tag",
            "use letters, digits, dots, dashes, underscores; not `head`, a number, or a revision's name",
        )  # fmt: skip
