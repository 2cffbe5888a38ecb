"""`ramet events`: print or deliver the change feed of a store."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

from ramet.apps.cli.options import Where
from ramet.apps.cli.parameters import Option
from ramet.apps.cli.stores import HOME, any_store, local_store
from ramet.backends.redacted_urls import without_password
from ramet.core.errors import RametError


def events_of(
    store: Where = HOME,
    since: Annotated[str | None, Option(help="Start after the event with this cursor.")] = None,
    follow: Annotated[bool, Option("--follow", "-f", help="Keep printing new events.")] = False,
    cursor: Annotated[bool, Option("--cursor", help="Print each event's cursor before the event.")] = False,
    webhook: Annotated[str | None, Option(help="Deliver new events to this URL, then exit.")] = None,
    secret: Annotated[str | None, Option(envvar="RAMET_WEBHOOK_SECRET", help="Secret that signs deliveries.")] = None,
    private: Annotated[bool, Option("--private", help="Let the webhook's host have a private address.")] = False,
    name: Annotated[str, Option(help="Name of the webhook's saved position in the store.")] = "webhook",
    forget: Annotated[
        str | None, Option(help="Forget the webhook of this name; revisions it has not received may expire.")
    ] = None,
) -> int:
    """Print the changes of all workspaces as CloudEvents, or deliver them to a webhook. One JSON object per line."""

    async def act() -> int:
        if forget is not None:
            local_store(store).forget_sink(forget)
            return 0
        if webhook is not None:
            from ramet.workspace.stored.events import Webhook

            try:
                done = await local_store(store).deliver(Webhook(webhook, secret=secret, private=private), name)
            except ConnectionError as error:
                told = str(error).replace("ConnectError", "it cannot be reached")
                raise RametError(
                    "unavailable",
                    f"{without_password(webhook)}: {told}",
                    "try again later; undelivered events are kept",
                ) from None
            for refusal in done.refused:
                print(f"ramet: refused: {refusal}", file=sys.stderr)
            print(f"{done.sent} delivered, {len(done.refused)} refused")
            return 1 if done.refused else 0
        async for event in any_store(store).events(since, follow=follow):
            if cursor:
                print(event.cursor, end=" ")
            print(event.encode().decode(), flush=True)
        return 0

    try:
        return asyncio.run(act())
    except KeyboardInterrupt:
        return 130
