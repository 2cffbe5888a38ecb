"""Ask a real bash, in a box of its own for each row, what the commands of `cases/` do.

python -m tests.workspace.native.record           records rows that have no expectation yet
python -m tests.workspace.native.record --all     records every row again
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from tests.spec.table import Row, dump, load
from tests.workspace.native.conftest import NATIVE, SECONDS

from ramet.workspace.result import IOResult
from ramet.workspace.workspace import Workspace

CASES = Path(__file__).parent / "cases"
TABLES = sorted(CASES.glob("*.spec"))
PROJECT = (CASES / "setup.sh").read_text()
"""A project in /proj, and a repository in /origin."""


async def run_row(row: Row, *, native: bool | None) -> IOResult:
    """Run a row in a new workspace: by the box's bash, or (`native=None`) by the shell of the workspace."""
    async with Workspace(native=NATIVE) as ws:
        await ws.execute(PROJECT, native=True, timeout=SECONDS)
        return await ws.execute(row.script, native=native, timeout=SECONDS)


def main() -> None:
    for path in TABLES:
        rows = load(path)
        for place, row in enumerate(rows):
            if row.status is None or "--all" in sys.argv:
                found = asyncio.run(run_row(row, native=True))
                rows[place] = replace(row, status=found.exit_code, stdout=found.stdout)
        path.write_bytes(dump(rows).encode())


if __name__ == "__main__":
    main()
