"""`Renderer`: asks the process of `render.py`, one request after the other, and kills it when it takes too long."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from ramet.apps.server.problems import Refusal

SECONDS: Final = 3.0
"""Time of one request, most of it for the start of the process."""
CHARACTERS: Final = 256 * 1024
"""Largest text that is colored or rendered."""


class Renderer:
    """Syntax colors and Markdown trees. The process starts with the first request."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None
        self._thread = ThreadPoolExecutor(1, "ramet-render")

    async def ask(self, kind: str, name: str, text: str) -> Any:
        """Return what `colors` or `markdown` of `render.py` returns."""
        if len(text) > CHARACTERS:
            raise Refusal("limit_exceeded", f"the text has more than {CHARACTERS} characters", "show it plainly")
        line = json.dumps({"kind": kind, "name": name, "text": text}) + "\n"
        made = await asyncio.get_running_loop().run_in_executor(self._thread, self._ask, line)
        if made is None:
            raise Refusal("limit_exceeded", f"cannot render the text within {self._seconds:g} s", "show it plainly")
        return made

    def _ask(self, line: str) -> Any:
        process = self._process
        if process is None or process.poll() is not None:
            process = self._process = self._start()
        assert process.stdin is not None and process.stdout is not None
        timer = threading.Timer(self._seconds, process.kill)
        timer.start()
        try:
            process.stdin.write(line)
            process.stdin.flush()
            told = process.stdout.readline()
        except BrokenPipeError:
            told = ""  # it ended idle at this moment, or was killed
        finally:
            timer.cancel()
        if not told:
            process.kill()
            process.wait()
            return None
        return json.loads(told)

    def _start(self) -> subprocess.Popen[str]:
        words = [sys.executable, "-P", "-m", "ramet.apps.ui.render"]
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        weakref.finalize(self, _end, process)
        return process


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
