"""Run `ramet` inside of the test's process, with streams and an environment of its own."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from typing import NamedTuple
from unittest import mock

from ramet.apps.cli.main import run


class Result(NamedTuple):
    """What a command line ended with, and what it wrote: both streams together, and its standard output alone."""

    exit_code: int
    output: str
    stdout: str


class Tee(io.BytesIO):
    """A stream whose bytes go to another one as well."""

    def __init__(self, both: io.BytesIO) -> None:
        super().__init__()
        self._both = both

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        self._both.write(data)
        return super().write(data)


def invoke(words: list[str], stdin: str = "", env: Mapping[str, str | None] | None = None) -> Result:
    both = io.BytesIO()
    out, err = Tee(both), Tee(both)
    changed = {**os.environ, **(env or {})}
    with (
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()))),
        mock.patch.object(sys, "stdout", io.TextIOWrapper(out, write_through=True)),
        mock.patch.object(sys, "stderr", io.TextIOWrapper(err, write_through=True)),
        mock.patch.dict(os.environ, {k: v for k, v in changed.items() if v is not None}, clear=True),
    ):
        try:
            code: object = run(words)
        except SystemExit as end:
            code = end.code
        assert isinstance(code, int | None), code
        return Result(code or 0, both.getvalue().decode(), out.getvalue().decode())
