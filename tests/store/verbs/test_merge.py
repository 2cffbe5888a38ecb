"""Merging: disjoint changes combine, text merges, conflicts are data; reverting takes whole trees or single paths."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet import Store
from ramet.store.verbs.merge import conflict_text, merge_text

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n"]), max_size=8).map(b"".join)


@given(LINES, LINES)
def test_one_sided_changes_merge_to_that_side(base: bytes, changed: bytes) -> None:
    assert merge_text(base, base, changed) == changed
    assert merge_text(base, changed, base) == changed
    assert merge_text(base, changed, changed) == changed


@given(LINES, LINES, LINES)
def test_merging_is_symmetric(base: bytes, one: bytes, two: bytes) -> None:
    assert merge_text(base, one, two) == merge_text(base, two, one)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        (b"1\n2\n3\n", b"one\n2\n3\n", b"1\n2\nthree\n", b"one\n2\nthree\n"),
        (b"1\n2\n3\n", b"0\n1\n2\n3\n", b"1\n2\n3\n4\n", b"0\n1\n2\n3\n4\n"),
        (b"1\n2\n3\n", b"1\nX\n3\n", b"1\nY\n3\n", None),
        (b"1\n2\n3\n", b"1\n3\n", b"1\ntwo\n3\n", None),
        (b"1\n", b"1\nA\n", b"1\nB\n", None),
        (b"a\0", b"b\0", b"c\0", None),
    ],
)
def test_text(base: bytes, ours: bytes, theirs: bytes, merged: bytes | None) -> None:
    assert merge_text(base, ours, theirs) == merged


@given(LINES, LINES, LINES)
def test_an_editor_gets_what_merges_merged(base: bytes, one: bytes, two: bytes) -> None:
    text = conflict_text(base, one, two, ("one", "two"))
    merged = merge_text(base, one, two)
    assert text is not None and (text == merged or (merged is None and (b"<<<<<<<" in text or one == two)))


def test_markers_are_around_what_meets_only() -> None:
    base, one, two = (b"1\n2\n3\n4\n5\n", b"one\n2\nX\n4\n5\n", b"1\n2\nY\n4\nfive")
    assert conflict_text(base, one, two, ("a", "b")) == (b"one\n2\n<<<<<<< a\nX\n=======\nY\n>>>>>>> b\n4\nfive")
    assert conflict_text(b"a\0", b"b", b"c", ("a", "b")) is None


async def project(store: Store, name: str, script: str) -> None:
    async with store.open(name) as ws:
        assert (await ws.execute(script)).exit_code == 0


def test_two_attempts_merge_when_they_do_not_meet() -> None:
    async def act() -> None:
        store = Store("memory:")
        store.create("main")
        await project(store, "main", "mkdir /src /docs; seq 9 > /src/n; echo a > /src/a; echo d > /docs/d; touch /gone")
        store["main"].fork(None, "attempt")
        await project(store, "attempt", "sed -i 1s/1/one/ /src/n; echo new > /src/new; rm /gone; chmod +x /src/a")
        await project(store, "main", "sed -i 9s/9/nine/ /src/n; echo more >> /docs/d")
        result = store["main"].merge("attempt")
        assert result.ok and result.revision is not None and len(result.revision.parents) == 2
        async with store.open("main") as ws:
            probe = "head -1 /src/n; tail -1 /src/n; cat /src/new /docs/d; ls /; stat -c %a /src/a"
            assert (await ws.execute(probe)).text == "one\nnine\nnew\nd\nmore\ndocs\nhome\nsrc\ntmp\n755\n"
        assert store["main"].merge("attempt").revision is not None, "merging again changes nothing"
        assert store.verify().ok

    asyncio.run(act())


def test_conflicts_are_data_and_change_nothing() -> None:
    async def act() -> None:
        store = Store("memory:")
        store.create("main")
        await project(store, "main", "echo base > /f; echo base > /g; mkdir /d; echo x > /d/x")
        store["main"].fork(None, "attempt")
        await project(store, "attempt", "echo theirs > /f; rm /g; rm -r /d; echo file > /d")
        await project(store, "main", "echo ours > /f; echo ours > /g; echo y > /d/x")
        before = store["main"].head
        result = store["main"].merge("attempt")
        assert [(c.path, c.why) for c in result.conflicts] == [
            ("/d", "different kinds"), ("/f", "both changed"), ("/g", "changed and removed")]  # fmt: skip
        assert result.revision is None and store["main"].head == before

    asyncio.run(act())


def test_reverting_paths() -> None:
    async def act() -> None:
        store = Store("memory:")
        store.create("w")
        await project(store, "w", "mkdir -p /a/b; echo 1 > /a/b/f; echo 1 > /keep; echo 1 > /a/gone")
        await project(store, "w", "echo 2 > /a/b/f; echo 2 > /keep; rm /a/gone; echo 2 > /a/new")
        revision = store["w"].revert("w-1", paths=["/a/b/f", "/a/gone", "/a/new"])
        assert revision.name == "w-3"
        async with store.open("w") as ws:
            assert (await ws.execute("cat /a/b/f /keep /a/gone; ls /a")).text == "1\n2\n1\nb\ngone\n"

    asyncio.run(act())
