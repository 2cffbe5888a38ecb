"""`jobs` in a substitution or at the head of a pipeline shows the jobs of the shell around it."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.shell_runner import run_script


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("sleep 9 & [ $(jobs -p) = $! ] && kill $(jobs -p); wait; echo $?", b"0\n"),
        ("sleep 9 & jobs -p | wc -l; (jobs); { jobs; } | wc -l; kill $!", b"1\n0\n"),
        ("sleep 9 & sleep 9 & echo $(jobs -r | wc -l); kill %1 %2", b"2\n"),
        ("sleep 9 & x=$(sleep 9 & jobs -p | wc -l; kill %1); echo $x; kill %1", b"1\n"),
    ],
)
def test_jobs_are_seen(script: str, expected: bytes) -> None:
    out, err, status = asyncio.run(asyncio.wait_for(run_script(script), 120))
    assert (out, status) == (expected, 0), err
