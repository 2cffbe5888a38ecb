"""Open descriptors survive snapshot, copy and branch: same file, same offset, duplicates still sharing it."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable

import pytest

from ramet import Workspace

OPEN = "printf 'one\\ntwo\\nthree\\n' > /f; exec 3</f 4<&3 5>>/log {fd}<>/both; read -u 3 line; echo a >&5"
USE = "read -u 4 x; read -u 3 y; echo $line $x $y; echo b >&5; cat /log; echo 12 >&$fd; cat /both"
EXPECTED = "one two three\na\nb\n12\n"


def through_tar(ws: Workspace) -> Workspace:
    buffer = io.BytesIO()
    ws.snapshot(buffer)
    buffer.seek(0)
    return Workspace.load(buffer, strict=True)


@pytest.mark.parametrize(
    "twin", [through_tar, lambda ws: through_tar(through_tar(ws)), Workspace.copy, Workspace.branch]
)
def test_descriptors_are_open_again(twin: Callable[[Workspace], Workspace]) -> None:
    async def act() -> None:
        ws = Workspace()
        await ws.execute(OPEN)
        again = twin(ws)
        assert (await again.execute(USE)).text == EXPECTED
        assert (await ws.execute(USE)).text == EXPECTED, "the original keeps its own offset"

    asyncio.run(act())


def test_what_leads_to_a_standard_stream_leads_to_that_of_the_next_call() -> None:
    async def act() -> None:
        ws = Workspace()
        await ws.execute("exec 3>&1 4>&2 5<&0")
        for each in (ws, through_tar(ws), ws.copy()):
            result = await each.execute("echo out >&3; echo err >&4; cat <&5", stdin=b"in")
            assert (result.stdout, result.stderr) == (b"out\nin", b"err\n")

    asyncio.run(act())


def test_what_cannot_be_opened_again_is_reported() -> None:
    async def act() -> None:
        ws = Workspace()
        await ws.execute("echo x > /f; exec 3</f; rm /f")
        again = through_tar(ws)
        assert "Bad file descriptor" in (await again.execute("cat <&3")).error_text
        assert again.restored.problems == ["descriptor 3 could not be opened again: /f: No such file or directory"]

    asyncio.run(act())


@pytest.mark.parametrize(
    "data",
    ["x", [1], [{}], [{"fds": [1], "path": "/f", "how": ["READ"], "offset": 0}],
     [{"fds": [3], "path": "f", "how": ["READ"], "offset": 0}], [{"fds": [3], "path": "/f", "how": ["X"], "offset": 0}],
     [{"fds": [3], "path": "/f", "how": ["READ"], "offset": -1}]],
)  # fmt: skip
def test_malformed_descriptors_are_refused(data: object) -> None:
    from ramet.workspace.descriptors import check_descriptors

    with pytest.raises(ValueError):
        check_descriptors(data)
