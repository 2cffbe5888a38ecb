"""Undo: the last change, or what one agent or run did, goes back; everything else stays."""

from __future__ import annotations

import asyncio

import pytest
from tests.store.verbs.test_verbs import refused

from ramet import RAMResource, Store


def run(store: Store, *steps: tuple[str, str], session: str = "default") -> None:
    """Run each (agent, script) as one revision."""

    async def act() -> None:
        for agent, script in steps:
            async with store.open("w") as ws:
                if session not in [one.session_id for one in ws.list_sessions()]:
                    ws.create_session(session)
                assert (await ws.execute(script, session, agent_id=agent)).exit_code == 0

    if "w" not in store:
        store.create("w")
    asyncio.run(act())


def text(store: Store, path: str) -> str:
    return b"".join(store["w"].show(path)).decode()


def test_the_last_change_goes_then_the_one_before() -> None:
    store = Store("memory:")
    run(store, ("a", "echo 1 > /f"), ("a", "echo 2 > /f"), ("a", "echo 3 > /f"))
    done = store["w"].undo()
    assert done.revision is not None and done.revision.lineage == "undo:w-3" and text(store, "/f") == "2\n"
    store["w"].undo()
    assert text(store, "/f") == "1\n"
    assert [one.name for one in store["w"].log()] == ["w-5", "w-4", "w-3", "w-2", "w-1"]


def test_only_what_the_agent_did_goes() -> None:
    store = Store("memory:")
    run(
        store, ("good", "seq 9 > /f; echo g > /g"), ("evil", "sed -i 's/^9/nine/' /f; rm /g; echo e > /e"),
        ("good", "sed -i '1s/1/one/' /f; echo h > /h"),
    )  # fmt: skip
    assert store["w"].undo(agent="evil").ok
    assert text(store, "/f").split() == ["one", *map(str, range(2, 10))]
    assert text(store, "/g") == "g\n" and text(store, "/h") == "h\n"
    assert refused(lambda: store["w"].show("/e")) == "not_found"
    assert refused(lambda: store["w"].undo(agent="evil")) == "not_found"


def test_conflicts_are_data_and_change_nothing() -> None:
    store = Store("memory:")
    run(store, ("good", "echo 1 > /f"), ("evil", "echo 2 > /f"), ("good", "echo 3 > /f"))
    done = store["w"].undo(agent="evil")
    assert done.revision is None and [one.path for one in done.conflicts] == ["/f"]
    assert text(store, "/f") == "3\n" and len(store["w"].log()) == 3


@pytest.mark.parametrize("shared", [False, True])
def test_two_agents_in_one_revision_are_told_apart_by_path(shared: bool) -> None:
    store = Store("memory:")
    store.create("w")

    async def act() -> None:
        async with store.open("w", mounts={"/m": RAMResource()}) as ws:
            await ws.execute("echo g > /m/g; echo s > /s", agent_id="good")
            await ws.execute("echo e > /m/e" + ("; echo e >> /s" if shared else ""), agent_id="evil")

    asyncio.run(act())
    done = store["w"].undo(agent="evil")
    assert [one.path for one in done.conflicts] == (["/s"] if shared else [])
    assert text(store, "/m/g") == "g\n" and text(store, "/s") == ("s\ne\n" if shared else "s\n")
    if not shared:
        assert refused(lambda: store["w"].show("/m/e")) == "not_found"


def test_a_run_is_a_session() -> None:
    store = Store("memory:")
    run(store, ("a", "echo 1 > /f"))
    run(store, ("a", "echo 2 > /g"), session="r7")
    assert store["w"].undo(run="r7").ok and refused(lambda: store["w"].show("/g")) == "not_found"
    assert text(store, "/f") == "1\n"


def test_an_error_leaves_a_draft_that_undo_removes() -> None:
    store = Store("memory:")
    run(store, ("a", "echo 1 > /f"))

    async def act() -> None:
        async with store.open("w") as ws:
            await ws.execute("echo half > /f")
            raise LookupError("the caller failed")

    with pytest.raises(LookupError):
        asyncio.run(act())
    head = store["w"].find()
    assert (head.phase, head.message) == ("Draft", "draft: interrupted by LookupError")
    assert text(store, "/f") == "half\n"
    store["w"].undo()
    assert text(store, "/f") == "1\n" and store["w"].find().phase == "Committed"
