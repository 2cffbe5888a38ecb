"""Grants: which principals may read and write a workspace. Without grants, everyone may do both.

    grants/<workspace>/<20-digit number>     {"grants": {principal: "readonly" | "readwrite"}, "by", "time"}

- A workspace with grants always has a principal that may write it.
- A principal without a grant, and a caller without a principal, has no access to such a workspace.
- A server with principals names the caller of each request (`acting_for`), and the repository asks for that one where
  it resolves a name. What a caller creates belongs to it from the start.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal

from ramet.core.errors import RametError
from ramet.store.objects.log import Log
from ramet.store.refs.refs import NAME, not_found

Access = Literal["readonly", "readwrite"]
ACCESS: Final = ("readonly", "readwrite")
TRUSTED: Final = "@trusted"
"""Principal of a server that has checked its own principals."""
ADMINISTRATOR: Final = "@administrator"
"""Principal of the own token of a server whose store has no principal."""
CALLER: Final[ContextVar[str]] = ContextVar("ramet_caller")
"""The principal of the request that a server is answering; unset outside of requests."""
CACHE_SECONDS: Final = 2.0
"""Seconds for which cached grants may be used for reading."""


@contextmanager
def acting_for(principal: str) -> Iterator[None]:
    """Do what is inside, and threads and tasks that it starts, as this principal."""
    before = CALLER.set(principal)
    try:
        yield
    finally:
        CALLER.reset(before)


class Grants:
    """The grants of all workspaces of a store."""

    def __init__(self, log: Log, clock: Callable[[], float]) -> None:
        self._log, self._clock = log, clock
        self._known: dict[str, tuple[float, int, Mapping[str, str]]] = {}

    def of(self, name: str, older: float = 0.0) -> Mapping[str, str]:
        """Return the grants by principal; empty when everyone has full access."""
        return self._last(name, older)[1]

    def check(self, principal: str | None, name: str, access: Access) -> None:
        """Raise `permission_denied` unless the principal has this access; what is not a name is no workspace."""
        if not NAME.fullmatch(name):
            raise not_found(name)
        if principal == TRUSTED:
            return
        granted = self.of(name, CACHE_SECONDS if access == "readonly" else 0.0)
        mine = granted.get(principal or "")
        if not granted or mine == "readwrite" or (mine == "readonly" and access == "readonly"):
            return
        if mine == "readonly":
            raise RametError(
                "permission_denied", f"access denied: {principal!r} may only read {name!r}",
                "fork it, or ask one of its writers for `grant readwrite`", {"workspace": name},
            )  # fmt: skip
        if principal:
            cause = f"access denied: workspace {name!r} needs a grant for {principal!r}"
            raise RametError("permission_denied", cause, "ask one of its writers for a grant", {"workspace": name})
        raise RametError(
            "permission_denied", f"access denied: workspace {name!r} needs a principal",
            "set RAMET_PRINCIPAL, or pass principal=", {"workspace": name},
        )  # fmt: skip

    def allows(self, principal: str | None, name: str, access: Access = "readonly") -> bool:
        try:
            self.check(principal, name, access)
        except RametError as error:
            if error.code not in ("permission_denied", "workspace_not_found"):
                raise
            return False
        return True

    def put(self, name: str, granted: Mapping[str, str], by: str | None) -> None:
        """Replace the grants of a workspace."""
        if not NAME.fullmatch(name):
            raise not_found(name)  # it must not become part of a key
        for principal, access in granted.items():
            if access not in ACCESS:
                raise RametError("invalid_argument", f"unknown access {access!r}", "use readonly or readwrite")
            if not principal or principal == TRUSTED:
                raise RametError("invalid_argument", f"invalid principal {principal!r}", "use another name")
        if granted and "readwrite" not in granted.values():
            raise RametError(
                "invalid_argument",
                f"cannot change the grants of {name!r}: no writer would be left",
                "grant another principal readwrite",
            )
        plain = {"grants": dict(granted), "by": by or "", "time": self._clock()}
        self._append(name, plain, granted)

    def _append(self, name: str, plain: Mapping[str, object], granted: Mapping[str, str]) -> None:
        number = self._last(name, 0.0)[0] + 1
        if not self._log.append(name, number, json.dumps(plain, sort_keys=True).encode()):
            raise RametError("head_moved", f"the grants of {name!r} changed concurrently", "try again")
        self._known[name] = (time.monotonic(), number, dict(granted))

    def clear(self, name: str) -> None:
        """Clear the grants of a removed workspace; the entry remembers them for `removed`."""
        granted = self.of(name)
        if granted:
            self._append(name, {"grants": {}, "removed": dict(granted), "by": "", "time": self._clock()}, {})

    def removed(self, name: str) -> Mapping[str, str]:
        """Return the grants that a removed workspace had."""
        newest = self._log.newest(name) if NAME.fullmatch(name) else None
        return {} if newest is None else _decode(name, newest[1], "removed")

    def allows_removed(self, principal: str | None, name: str, access: Access) -> bool:
        """Return whether a principal had this access to a workspace that was removed."""
        granted = self.removed(name)
        mine = granted.get(principal or "")
        return not granted or principal == TRUSTED or mine == "readwrite" or (mine == access == "readonly")

    def _last(self, name: str, older: float) -> tuple[int, Mapping[str, str]]:
        if not NAME.fullmatch(name):
            return 0, {}  # not a workspace name; it must not become part of a key
        looked, number, granted = self._known.get(name, (-1e9, 0, {}))
        began = time.monotonic()
        if began - looked >= older:
            newest = self._log.newest(name, number)
            if newest is not None:
                number, granted = newest[0], _decode(name, newest[1])
            self._known[name] = (began, number, granted)
        return number, granted


def _decode(name: str, data: bytes, which: str = "grants") -> Mapping[str, str]:
    try:
        plain = json.loads(data)
        granted = plain[which] if which == "grants" else plain.get(which, {})
        if not all(access in ACCESS for access in granted.values()):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        # Fail closed: damaged grants give no access.
        raise RametError("store_corrupt", f"the grants of {name!r} are damaged", "set them again") from None
    found: Mapping[str, str] = granted
    return found
