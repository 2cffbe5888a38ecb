"""Whole scripts against what bash 5.2 printed for them, in one table: `==== status`, the script, `----`, its output."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.shell_runner import run_script

TABLE = Path(__file__).with_name("language.txt")


def cases() -> list[tuple[str, str, int]]:
    found = []
    for block in TABLE.read_text().split("==== ")[1:]:
        status, _, rest = block.partition("\n")
        script, _, output = rest.partition("\n----\n")
        found.append((script + "\n", output.removesuffix("\\c\n"), int(status)))
    return found


@pytest.mark.parametrize(("script", "output", "status"), cases())
def test_script_prints_what_bash_prints(script: str, output: str, status: int) -> None:
    out, err, code = asyncio.run(run_script(script, {}, {"TMP": "/tmp/case", "LC_ALL": "C.UTF-8"}, {}))
    assert (out.decode("utf-8", "surrogateescape"), code) == (output, status), err.decode("utf-8", "replace")
