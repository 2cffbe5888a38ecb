import asyncio
import gc
from collections.abc import Iterator

import pytest

from ramet import Workspace
from ramet.concurrency import collector as collecting
from ramet.concurrency.collector import SELDOM, put_off, spare, work_begins, work_ends

OWN = (700, 10, 10)


@pytest.fixture(autouse=True)
def threshold(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Python's own settings, and nothing of other tests to look through or to wait for."""
    monkeypatch.setattr(collecting, "_at_work", 0)
    monkeypatch.setattr(collecting, "_usual", None)
    found = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.collect()  # which is also when Python learns how little there is
    gc.set_threshold(*OWN)
    yield
    gc.set_threshold(*found)
    gc.unfreeze()


def test_full_passes_are_put_off_until_all_work_ends() -> None:
    work_begins()
    put_off()
    work_begins()
    assert gc.get_threshold() == (700, 10, SELDOM)
    put_off()
    work_ends()
    assert gc.get_threshold() == (700, 10, SELDOM)
    work_ends()
    assert gc.get_threshold() == OWN


def test_work_that_is_soon_done_changes_nothing() -> None:
    work_begins()
    assert gc.get_threshold() == OWN
    work_ends()
    put_off()  # nobody would put it back
    assert gc.get_threshold() == OWN


def test_what_the_host_decides_holds() -> None:
    gc.set_threshold(700, 10, 50)
    work_begins()
    put_off()
    assert gc.get_threshold() == (700, 10, 50)
    work_ends()
    gc.set_threshold(*OWN)
    work_begins()
    put_off()
    gc.set_threshold(5000, 20, 20)  # meanwhile
    work_ends()
    assert gc.get_threshold() == (5000, 20, 20)


@pytest.mark.parametrize(
    "script",
    [
        "f() { f; }; f",
        'x=\'a=1 b=2\'; for i in {1..16}; do x="$x;$x"; done; eval "$x"',
    ],
    ids=["calls", "statements"],
)
def test_no_full_pass_in_the_middle_of_a_large_script(script: str) -> None:
    passes = 0

    def count(phase: str, info: dict[str, int]) -> None:
        nonlocal passes
        passes += phase == "start" and info["generation"] == 2

    async def run() -> None:
        async with Workspace() as ws:
            await ws.execute("echo")
            gc.callbacks.append(count)
            try:
                await ws.execute(script)
            finally:
                gc.callbacks.remove(count)
            while collecting._at_work:  # noqa: ASYNC110 - what the script consisted of is taken apart
                await asyncio.sleep(0)
            assert gc.get_threshold() == OWN

    asyncio.run(run())
    assert not passes


def test_very_many_objects_of_work_are_left_out_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.unfreeze()  # nobody else has left out anything
    monkeypatch.setattr(collecting, "_MANY", -1)
    monkeypatch.setattr(collecting, "_spared", 0)
    spare()
    assert not gc.get_freeze_count()  # nothing is at work
    work_begins()
    put_off()
    for _ in range(2 * collecting._OFTEN):
        spare()
    assert collecting._spared == collecting._OFTEN
    assert gc.get_freeze_count()
    work_ends()
    assert not gc.get_freeze_count()


def test_what_the_host_has_left_out_stays_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "_MANY", -1)
    monkeypatch.setattr(collecting, "_spared", 0)
    left_out = gc.get_freeze_count()
    assert left_out
    work_begins()
    put_off()
    spare()
    work_ends()
    assert gc.get_freeze_count()
    assert not collecting._spared
