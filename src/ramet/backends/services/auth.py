"""Authentication of services: a token by value, by variable, or from a function that renews it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping

TokenSource = Callable[[], "str | Awaitable[str | None] | None"]
"""Returns the token to use now. It is called again after the service has refused one."""


class TokenAuth:
    """An `Authorization` header from a token. `scheme` is empty for services that want the bare token."""

    def __init__(self, source: TokenSource, scheme: str = "Bearer") -> None:
        self._source, self._scheme = source, scheme
        self._token: str | None = None
        self._known = False

    async def token(self) -> str | None:
        if not self._known:
            found = self._source()
            self._token = await found if inspect.isawaitable(found) else found
            self._known = True
        return self._token

    async def headers(self) -> Mapping[str, str]:
        token = await self.token()
        return {} if token is None else {"Authorization": f"{self._scheme} {token}".lstrip()}

    async def renew(self) -> bool:
        """After a refusal: whether the source gives another token than the refused one."""
        refused, self._known = self._token, False
        return await self.token() != refused

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may contain."""
        return (self._token,) if self._token else ()
