"""`BoundedBody`: bound the request bodies of an ASGI application that reads them as a whole."""

from __future__ import annotations

from typing import Any

from ramet.apps.server.api import problem_for
from ramet.apps.server.request import Call, Receive, Scope, Send, send_reply


class BoundedBody:
    """Answers a larger body with 413, as soon as that many bytes have come."""

    def __init__(self, app: Any, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        messages, size = [], 0
        while True:
            message = await receive()
            messages.append(message)
            size += len(message.get("body", b""))
            if size > self._most:
                reply = problem_for(
                    "limit_exceeded", f"the body has more than {self._most} bytes", "send less at a time"
                )
                await send_reply(reply, Call(scope, receive), send)
                return
            if message["type"] != "http.request" or not message.get("more_body", False):
                break
        waiting = iter(messages)

        async def again() -> Any:
            return next(waiting, None) or await receive()

        await self._app(scope, again, send)
