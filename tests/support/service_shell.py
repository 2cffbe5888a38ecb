"""Scripts in a workspace with services: their output and exit status."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from ramet import Workspace


def run_scripts(mounts: Mapping[str, Any], scripts: Sequence[str]) -> list[tuple[str, str, int]]:
    """Run scripts one after the other in one workspace: standard output, standard error and status of each."""

    async def act() -> list[tuple[str, str, int]]:
        ws = Workspace(mounts)
        try:
            results = [await ws.execute(script) for script in scripts]
        finally:
            await ws.close()
        return [
            (one.stdout.decode(errors="replace"), one.stderr.decode(errors="replace"), one.exit_code) for one in results
        ]

    return asyncio.run(act())
