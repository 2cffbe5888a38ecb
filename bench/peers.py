"""The peers, each in an environment of its own, asked over a pipe to run scripts and to tell how long they took."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

from bench.harness import Measure

ENVIRONMENTS = Path(__file__).parent / "envs"
PACKAGES = {"mirage-ai": "mirage-ai==0.0.7", "bashkit": "bashkit==0.20.1", "just-bash": "just-bash==0.2.1"}

_SERVE = """
import asyncio, json, sys, time
async def main():
    await start()
    print("ready", flush=True)
    for line in sys.stdin:
        script = json.loads(line)
        try:
            run = await start()
            began = time.perf_counter()
            result = await run(script)
            spent = time.perf_counter() - began
            print("failed" if getattr(result, "exit_code", 0) else spent, flush=True)
        except Exception as error:
            print("failed", type(error).__name__, flush=True)
asyncio.run(main())
"""
_STARTS = {
    "mirage-ai": """
async def start():
    from mirage import Workspace
    from mirage.types import MountMode
    from mirage.vfs.ram import RAMVFS
    ws = Workspace({"/": (RAMVFS(), MountMode.WRITE)})
    return ws.shell
""",
    "bashkit": """
async def start():
    import bashkit
    shell = bashkit.Bash(max_commands=10**9, max_loop_iterations=10**9, timeout_seconds=600)
    return shell.execute
""",
    "just-bash": """
async def start():
    import just_bash
    from just_bash.types import ExecutionLimits
    shell = just_bash.Bash(limits=ExecutionLimits(1000, 10**9, 10**9, 10**9, 10**9))
    return shell.exec
""",
}


class Peer:
    """One running peer. A script that it cannot run is reported as not a number, which no comparison passes."""

    def __init__(self, name: str) -> None:
        python = installed(name)
        self._process = subprocess.Popen(
            [str(python), "-c", _STARTS[name] + _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.usable = self._process.stdout.readline().strip() == "ready"

    def seconds(self, script: str) -> float:
        if not self.usable:
            return float("nan")
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(script) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        try:
            return float(answer)
        except ValueError:
            return float("nan")

    def measure(self, script: str) -> Measure:
        return lambda: self.seconds(script)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def installed(name: str) -> Path:
    """The interpreter of the peer's environment, which is made when it is not there."""
    home = ENVIRONMENTS / name
    python = home / "bin" / "python"
    if not (home / ".installed").exists():
        print(f"  installing {PACKAGES[name]} ...", file=sys.stderr)
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", PACKAGES[name]], check=True)
        (home / ".installed").touch()
    return python


def start_all() -> dict[str, Peer]:
    """Every peer that can be installed here."""
    peers: dict[str, Peer] = {}
    for name in PACKAGES:
        try:
            peers[name] = Peer(name)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"  {name} is left out: {error}", file=sys.stderr)
    return peers
