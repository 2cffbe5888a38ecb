"""What the conformance runner wants: one coroutine that runs a script in a fresh shell. The native runtime is off."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.shell_runner import Helper, run_script


async def run(
    script: str, files: Mapping[str, bytes], env: Mapping[str, str], helpers: Mapping[str, Helper]
) -> tuple[bytes, bytes, int]:
    """stdout, stderr and the exit status of the script."""
    return await run_script(script, files, env, helpers)
