"""`Victim`: a child process with bounded memory that runs hostile scripts, each within a time."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterable
from typing import NamedTuple

MEMORY = 1536 << 20
"""Bytes of address space of the child."""
SECONDS = 5.0
"""Processor seconds that one script may take before the child counts as hung."""
FULL = os.environ.get("RAMET_SWEEP") == "full"
"""Whether the sweeps run in full size."""


class Outcome(NamedTuple):
    """What a script did: its status, or `hung` or `died`; processor seconds of held loop; bytes of memory more."""

    script: str
    status: int | str
    error: str = ""
    held: float = 0.0
    grown: int = 0

    @property
    def harmless(self) -> bool:
        """An error or an answer, without more than a second of held loop or 200 MB."""
        return isinstance(self.status, int) and self.status not in (-1, 70) and self.held < 1 and self.grown < 200e6


class Victim:
    def __init__(self, memory: int = MEMORY) -> None:
        self._memory = memory
        self._child: subprocess.Popen[bytes] | None = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "tests.support.attack_child", str(self._memory)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        return self._child

    def run(self, script: str, wall_time: float = 0.5) -> Outcome:
        """Run one script; a child that does not answer is killed, and the next script gets a new one."""
        child = self._started()
        assert child.stdin is not None and child.stdout is not None
        try:
            child.stdin.write(json.dumps((script, wall_time)).encode() + b"\n")
            child.stdin.flush()
        except BrokenPipeError:
            self.close()
            return Outcome(script, "died")
        spent = processor_seconds(child.pid)
        waited = 0
        while not select.select([child.stdout], [], [], 0.5)[0]:
            waited += 1
            if processor_seconds(child.pid) - spent > SECONDS or waited > 120:
                self.close()
                return Outcome(script, "hung")
        answer = child.stdout.readline()
        if not answer:
            self.close()
            return Outcome(script, "died")
        return Outcome(script, **json.loads(answer))

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            for stream in (self._child.stdin, self._child.stdout):
                assert stream is not None
                stream.close()
            self._child.wait()
            self._child = None


def processor_seconds(pid: int) -> float:
    """Processor time of a process, all its threads."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def harmful(scripts: Iterable[str], wall_time: float = 0.5) -> list[Outcome]:
    """Run all scripts; return the outcomes that are not harmless."""
    victim = Victim()
    try:
        return [outcome for script in scripts if not (outcome := victim.run(script, wall_time)).harmless]
    finally:
        victim.close()
