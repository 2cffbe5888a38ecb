"""List what listens in a workspace, and make links to it for browsers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ramet.apps.server import models_maintenance as care
from ramet.apps.server.request import Call, Reply, answer, decode_json

if TYPE_CHECKING:
    from ramet.apps.server.api import Api


async def ports(api: Api, call: Call) -> Reply:
    """List the ports; in a workspace that is not open, nothing runs."""
    hosted = await api.ports.opened(call.parts[0])
    found = [] if hosted is None else await asyncio.to_thread(hosted.ws.ports)
    return answer(care.PortList([care.PortInfo(*one) for one in found]))


async def open_port(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), care.OpenPort)
    return answer(care.PortLink(await api.origins.link(call, call.parts[0], asked.port)))
