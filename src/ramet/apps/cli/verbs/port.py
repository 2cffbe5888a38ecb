"""`ramet port`: list what listens in a workspace, and forward a port of this machine to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any, Final

from ramet.apps.cli.addresses import name_only
from ramet.apps.cli.listen_port import listen
from ramet.apps.cli.options import AsJson, Where, known_names
from ramet.apps.cli.output import show
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.stores import HOME, any_store
from ramet.core.errors import RametError

if TYPE_CHECKING:
    from ramet.native.ports import ListeningPort

HOST: Final = "127.0.0.1"
LOOK_SECONDS: Final = 0.5
"""Between two looks at what listens."""
PRIVILEGED: Final = 1024


def port(
    name: Annotated[str, Argument(help="Name of the workspace.", complete=known_names)],
    port: Annotated[
        str | None, Argument(help="Port in the workspace to forward to. Default: list what listens there.")
    ] = None,
    store: Where = HOME,
    local: Annotated[
        int | None, Option(help="Port of this machine; 0 picks a free one. Default: the same number, if it is free.")
    ] = None,
    wait: Annotated[float, Option(value="SECONDS", help="Seconds to wait until a program listens.")] = 0.0,
    as_json: AsJson = False,
) -> None:
    """List what listens in a workspace, or forward a port of this machine to it.

    The workspace must be open elsewhere meanwhile: in `ramet shell`, `exec`, `bind`, `ui` or `serve` of this user,
    or on the server of --store. The port answers on 127.0.0.1 only, for every protocol over TCP, until Ctrl-C.
    """
    handle = any_store(store)[name_only(name)]
    if port is None:
        if local is not None:
            raise RametError("invalid_argument", "--local needs a port", f"ramet port {name} PORT --local {local}")
        found = _wait_for(handle, None, wait)
        rows = [{"port": one.port, "address": one.address, "program": one.program} for one in found]
        show(rows, ("port", "address", "program"), as_json, empty=f"nothing listens in {name}")
        return
    number = int(port) if port.isdecimal() and port.isascii() else 0
    if not 0 < number < 65536:
        raise RametError("invalid_argument", f"{port!r} is not a port", "use 1 to 65535")
    if all(one.port != number for one in _wait_for(handle, number, wait)):
        listed = ", ".join(str(one.port) for one in handle.ports())
        raise RametError(
            "not_found", f"nothing listens at port {number} of {name}",
            f"Listening there: {listed}." if listed else f"Start the program, or wait for it: --wait {wait or 60:g}.",
        )  # fmt: skip
    asyncio.run(_forward(handle, name, number, _listener(number, local), as_json))


def _wait_for(handle: Any, number: int | None, seconds: float) -> list[ListeningPort]:
    """Return what listens, after waiting for a port, or for any."""
    until = time.monotonic() + seconds
    while True:
        try:
            found: list[ListeningPort] = handle.ports()
        except RametError as error:
            if error.code != "not_found" or time.monotonic() >= until:
                raise
            found = []
        if (found if number is None else any(one.port == number for one in found)) or time.monotonic() >= until:
            return found
        time.sleep(LOOK_SECONDS)


def _listener(number: int, local: int | None) -> socket.socket:
    """Listen at the port that was asked for, else at the same number, else at a free one."""
    if local is not None:
        try:
            return listen(HOST, local)
        except RametError as error:
            raise RametError(error.code, error.cause, error.remediation.replace("--port", "--local")) from None
    if number >= PRIVILEGED:
        with contextlib.suppress(RametError):
            return listen(HOST, number)
    return listen(HOST, 0)


async def _forward(handle: Any, name: str, number: int, listener: socket.socket, as_json: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stop.set)
    printed = ""

    def failed(error: Exception) -> None:
        nonlocal printed
        cause = error.cause if isinstance(error, RametError) else getattr(error, "strerror", None) or str(error)
        if cause != printed:
            printed = cause
            print(f"ramet: {cause}", file=sys.stderr)

    async with handle.forward(number, listener, failed=failed) as forward:
        if as_json:
            found = {"host": HOST, "local": forward.port, "port": number, "workspace": name}
            print(json.dumps(found), flush=True)
        else:
            print(f"{HOST}:{forward.port} leads to port {number} of {name}. Press Ctrl-C to stop.", flush=True)
        await stop.wait()
