"""Tags, addresses, blame, bisect, the picture of a history: the same on every kind of store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from ramet import RametError, RAMResource, Store
from ramet.store.model.address import parse_address, split_steps
from ramet.store.objects.objects import MemoryObjects, Objects
from ramet.workspace.workspace import Settings

START = 1_700_000_000.0


class Clock:
    """Time that goes on by a second whenever it is asked for."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        self.now += 1
        return self.now


def make(objects: Objects, *scripts: str, name: str = "w", store: Store | None = None) -> Store:
    """A workspace with one revision per script."""
    clock = Clock()
    store = store or Store(objects, clock=clock)

    async def act() -> None:
        if name not in store:
            store.create(name)
        for script in scripts:
            async with store.open(name, settings=Settings(clock=clock)) as ws:
                result = await ws.execute(script)
                assert result.exit_code == 0, result.stderr
                await ws.execute("find / -exec touch -h -d 2020-01-01 {} + 2>/dev/null; true")
                await ws.commit(script)

    asyncio.run(act())
    return store


def refused(act: Callable[[], Any]) -> str:
    with pytest.raises(RametError) as caught:
        act()
    assert caught.value.remediation
    return caught.value.code


def test_tags_name_revisions(place: Objects) -> None:
    scripts = ("echo 1 > /f", "echo 2 > /f", "echo 3 > /f")
    store, twin = make(place, *scripts), make(MemoryObjects(), *scripts)
    handle = store["w"]
    manifests = [[r.content_manifest for r in s["w"].log()] for s in (store, twin)]
    assert manifests[0] == manifests[1], "ids do not depend on where the store is"
    tag = handle.tag("v1.0", "head~1", message="the second", author="me")
    assert (tag.name, tag.message) == ("v1.0", "the second")
    assert [t.name for t in Store(place)["w"].tags()] == ["v1.0"]
    assert b"".join(handle.show("/f", "v1.0")) == b"2\n"
    assert handle.tag("v1.0", "head~1", message="the second") == tag, "the same again changes nothing"
    assert refused(lambda: handle.tag("v1.0", "head")) == "already_exists"
    handle.tag("v1.0", "head", force=True)
    assert b"".join(handle.show("/f", "v1.0")) == b"3\n"
    assert store.find("w@v1.0").name == "w-3"
    handle.untag("v1.0")
    assert handle.tags() == [] and refused(lambda: handle.untag("v1.0")) == "not_found"
    assert refused(lambda: handle.find("v1.0")) == "revision_not_found"
    for name in ("head", "HEAD", "12", "w-1", "a/b", "", "a b", ".x"):
        assert refused(lambda name=name: handle.tag(name)) == "invalid_argument"  # type: ignore[misc]


def test_tags_go_with_their_workspace_and_keep_revisions(place: Objects) -> None:
    store = make(place, "echo 1 > /f", "echo 2 > /f")
    store["w"].tag("kept", "1")
    roots = dict(store.repository.roots())
    assert roots == {"w": store.find("w").id, "w@kept": store.find("w@1").id}
    store.rm("w")
    assert dict(store.repository.roots()) == {} and "w" not in store
    assert refused(lambda: store["w"]) == "workspace_not_found"
    store.create("w")
    assert store["w"].tags() == []


def test_every_way_to_name_a_revision(place: Objects) -> None:
    store = make(place, "echo 1 > /f", "echo 2 > /f", "echo 3 > /f")
    handle = store["w"]
    handle.tag("t", "2")
    third, second, first = handle.log()
    ids = (second.id.hex(), second.id.hex()[:8])
    for spec in ("2", "w-2", *ids, "t", "head~", "head~1", "HEAD^", "3~1", "t~0", "w-3^1"):
        assert handle.find(spec).id == second.id, spec
    assert handle.find("head~2").id == handle.find("t~").id == first.id
    assert handle.find(None).id == handle.find("head").id == third.id
    store["w"].fork("1", "other")
    make(place, "echo o > /o", name="other", store=store)
    merged = handle.merge("other").revision
    assert merged is not None and handle.find("head^2").name == "other-2" and handle.find("head^2~2").id == first.id
    assert handle.merge("other@1").revision == merged, "what is merged already changes nothing"
    lone = make(place, "echo x > /x", name="lone", store=store).find("lone")
    codes = {
        "head~9": "revision_not_found", "head^3": "revision_not_found", "99": "revision_not_found",
        "nothing": "revision_not_found", lone.id.hex(): "revision_workspace_mismatch",
    }  # fmt: skip
    assert {spec: refused(lambda spec=spec: handle.find(spec)) for spec in codes} == codes  # type: ignore[misc]
    assert handle.find("lone@head").id == lone.id
    assert {d.path for d in handle.diff("1", "lone@1")} == {"/f", "/x"}


def test_a_past_revision_can_be_opened_by_its_address() -> None:
    store = make(MemoryObjects(), "echo 1 > /f", "echo 2 > /f")
    store["w"].tag("t", "1")

    async def act() -> None:
        for name in ("w@t", "w@head~1", "w@1"):
            async with store.open(name) as ws:
                assert (await ws.execute("cat /f; echo 9 > /f; cat /f")).text == "1\n9\n"
        assert store.find("w").seq == 2

    asyncio.run(act())
    assert refused(lambda: store.open("w@t:/f")) == "invalid_argument"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("w", ("w", None, None)),
        ("w@head~2", ("w", "head~2", None)),
        ("w@v1:/a:b", ("w", "v1", "/a:b")),
        ("w:/a@b", ("w", None, "/a@b")),
    ],
)
def test_addresses(text: str, parts: tuple[str | None, ...]) -> None:
    found = parse_address(text)
    assert (found.name, found.revision, found.path) == parts


@pytest.mark.parametrize("text", ["", "@1", "w@", "w:relative", ":/x"])
def test_addresses_that_are_none(text: str) -> None:
    assert refused(lambda: parse_address(text)) == "invalid_argument"


def test_steps() -> None:
    assert split_steps("a~2^~") == ("a", [("~", 2), ("^", 1), ("~", 1)])
    assert split_steps("a") == ("a", [])


# -------------------------------------------------------------------------------------------------------- blame


def run(act: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(act())  # type: ignore[arg-type]


def test_blame_names_revision_session_and_command(place: Objects) -> None:
    store = Store(place)
    store.create("w")

    async def act() -> None:
        async with store.open("w", commit="command") as ws:
            ws.create_session("s2")
            await ws.execute("printf 'one\\ntwo\\nthree\\n' > /f", agent_id="ada")
            await ws.execute("sed -i 's/two/TWO/' /f", session_id="s2", agent_id="bob")
            await ws.execute("mkdir /d; mv /f /d/g")
            await ws.execute("echo four >> /d/g")

    run(act)
    lines = store["w"].blame("/d/g")
    rows = [(line.text, line.revision.name, line.path, line.author) for line in lines]
    assert rows == [
        (b"one\n", "w-1", "/f", "ada"), (b"TWO\n", "w-2", "/f", "bob"), (b"three\n", "w-1", "/f", "ada"),
        (b"four\n", "w-4", "/d/g", "default"),
    ]  # fmt: skip
    assert [line.writer and line.writer.session_id for line in lines] == ["default", "s2", "default", "default"]
    assert lines[1].writer is not None and lines[1].writer.command == "sed -i 's/two/TWO/' /f"
    assert refused(lambda: store["w"].blame("/nothing")) == "not_found"
    assert refused(lambda: store["w"].blame("/d")) == "not_found"


def test_blame_knows_the_writer_among_many_commands_of_a_revision() -> None:
    store = Store(MemoryObjects())
    store.create("w")

    async def act() -> None:
        async with store.open("w") as ws:
            for number in range(5):
                await ws.execute(f"echo {number} > /f{number}")

    run(act)
    head = store.find("w")
    assert head.ops is not None and (head.ops["first"], head.ops["last"]) == (1, 5)
    for number in range(5):
        (line,) = store["w"].blame(f"/f{number}")
        assert line.writer is not None and line.writer.command == f"echo {number} > /f{number}"


def test_blame_follows_both_sides_of_a_merge_and_renames_with_changes() -> None:
    objects = MemoryObjects()
    store = make(objects, "seq 1 20 > /f")
    store["w"].fork(None, "side")
    make(objects, "sed -i '1s/.*/ours/' /f", store=store)
    make(objects, "sed -i '20s/.*/theirs/' /f", name="side", store=store)
    assert store["w"].merge("side").ok
    make(objects, "sed 's/^10$/ten/' /f > /g; rm /f", store=store)
    found = {line.text: line.revision.name for line in store["w"].blame("/g")}
    assert (found[b"ours\n"], found[b"theirs\n"], found[b"5\n"], found[b"ten\n"]) == ("w-2", "side-2", "w-1", "w-4")


# ------------------------------------------------------------------------------------------------------- bisect


def test_bisect_finds_the_first_bad_revision(place: Objects) -> None:
    store = make(place, *[f"echo {n} > /n; {'touch /bug' if n == 6 else ':'}" for n in range(1, 10)])

    async def act() -> None:
        found = await store["w"].bisect("1", "head", "test ! -e /bug; s=$?; echo changed > /n; exit $s")
        assert found.first_bad is not None and found.first_bad.name == "w-6"
        assert [step.revision.name for step in found.steps[:2]] == ["w-9", "w-1"], "both ends are tried first"
        assert len(found.steps) <= 6 and {step.verdict for step in found.steps} <= {"good", "bad"}
        skipping = await store["w"].bisect("1", "head", "case $(cat /n) in 5|6) exit 125;; esac; test ! -e /bug")
        assert skipping.first_bad is None and [r.name for r in skipping.suspects] == ["w-7", "w-6", "w-5"]

    run(act)
    assert store.find("w").name == "w-9", "nothing was written"


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        ("true", "the command does not fail in w-3, which was given as the bad revision"),
        ("exit 7", "the command fails in w-1 with status 7, which was given as the good revision"),
        ("test ! -e /bug || exit 125", "the command cannot tell how w-3 is: it ended with status 125"),
        ("test -e /bug && exit 1; exit 125", "the command cannot tell how w-1 is: it ended with status 125"),
    ],
)
def test_bisect_believes_no_end_that_it_has_not_tried(command: str, cause: str) -> None:
    store = make(MemoryObjects(), "echo 1 > /n", "touch /bug", "echo 3 > /n")

    async def act() -> None:
        with pytest.raises(RametError) as caught:
            await store["w"].bisect("1", None, command)
        assert (caught.value.code, caught.value.cause) == ("invalid_argument", cause)

    run(act)


def test_bisect_goes_through_merges() -> None:
    objects = MemoryObjects()
    store = make(objects, "echo 1 > /n")
    store["w"].fork(None, "side")
    make(objects, "echo a > /a", "touch /bug", "echo b > /b", name="side", store=store)
    make(objects, "echo 2 > /n", "echo 3 > /n", store=store)
    assert store["w"].merge("side").ok
    make(objects, "echo 4 > /n", store=store)

    async def act() -> None:
        found = await store["w"].bisect("1", None, "test ! -e /bug")
        assert found.first_bad is not None and found.first_bad.name == "side-3"
        found = await store["w"].bisect("w@1", "side@head", "test ! -e /bug")
        assert found.first_bad is not None and found.first_bad.name == "side-3"
        found = await store["side"].bisect("w@3", "head", "test ! -e /bug")
        assert found.first_bad is not None and found.first_bad.name == "side-3", "good need not come before bad"
        with pytest.raises(RametError) as caught:
            await store["w"].bisect("head", "1", "true")
        assert caught.value.code == "invalid_argument"

    run(act)


# -------------------------------------------------------------------------------------------------------- graph


def test_the_picture_of_a_history() -> None:
    objects = MemoryObjects()
    store = make(objects, "echo 1 > /f")
    assert [row.lines for row in store["w"].graph()] == ["*"]
    store["w"].fork(None, "side")
    make(objects, "echo s > /s", name="side", store=store)
    make(objects, "echo 2 > /f", store=store)
    assert store["w"].merge("side").ok
    make(objects, "echo 3 > /f", store=store)
    rows = [(row.lines, row.revision.name if row.revision else "") for row in store["w"].graph()]
    assert [name for _, name in rows if name][:2] == ["w-4", "w-3"]
    assert [name for _, name in rows if name][-1] == "w-1"
    assert ("|\\", "") in rows and any(lines == "|/" for lines, _ in rows)
    assert sum(1 for lines, _ in rows if "*" in lines) == 6


def test_a_directory_of_a_revision_is_listed() -> None:
    store = Store("memory:")
    store.create("w")

    async def act() -> None:
        async with store.open("w", mounts={"/m/n": RAMResource()}) as ws:
            await ws.execute("mkdir /d; echo 12 > /d/f; chmod 600 /d/f; ln -s f /d/l; mkdir /d/s; echo 3 > /m/n/x")
        async with store.open("w") as ws:
            await ws.execute("rm -r /d")

    asyncio.run(act())
    found = [(name, one.kind.value, one.mode, one.size, one.target) for name, one in store["w"].ls("/d", "1")]
    assert found == [
        ("f", "file", 0o600, 3, None), ("l", "link", 0o777, None, "f"), ("s", "dir", 0o755, None, None),
    ]  # fmt: skip
    assert "d" not in dict(store["w"].ls()) and "m" in dict(store["w"].ls())
    assert [list(dict(store["w"].ls(path))) for path in ("/m", "/m/n/")] == [["n"], ["x"]]
    for path, revision in (("/d", None), ("/d/f", "1"), ("/nowhere", None)):
        assert refused(partial(store["w"].ls, path, revision)) == "not_found"
