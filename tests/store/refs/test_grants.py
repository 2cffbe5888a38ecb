"""Grants: without any everybody may do everything; with them, those who are named may do what is said."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ramet import RametError, Store
from ramet.store.objects.objects import MemoryObjects


def fill(store: Store, name: str, script: str) -> None:
    async def act() -> None:
        async with store.open(name) as ws:
            assert (await ws.execute(script)).exit_code == 0

    asyncio.run(act())


@pytest.fixture
def place() -> MemoryObjects:
    objects = MemoryObjects()
    ada = Store(objects, principal="ada")
    ada.create("w")
    fill(ada, "w", "echo 1 > /x")
    fill(ada, "w", "echo 2 > /x")
    ada["w"].grant("ada", "readwrite")
    ada["w"].grant("bob", "readonly")
    return objects


READS: dict[str, Callable[[Store], object]] = {
    "log": lambda store: store["w"].log(),
    "find": lambda store: store.find("w@1"),
    "show": lambda store: b"".join(store["w"].show("/x")),
    "diff": lambda store: store["w"].diff(),
    "head": lambda store: store["w"].head,
    "tags": lambda store: store["w"].tags(),
    "grants": lambda store: store["w"].grants(),
    "open": lambda store: asyncio.run(_read(store)),
    "fork": lambda store: store["w"].fork("1", "f"),
}
WRITES: dict[str, Callable[[Store], object]] = {
    "open": lambda store: fill(store, "w", "echo 3 > /x"),
    "revert": lambda store: store["w"].revert("1"),
    "tag": lambda store: store["w"].tag("t"),
    "grant": lambda store: store["w"].grant("eve", "readwrite"),
    "hold": lambda store: store.hold("w", "trial"),
    "merge": lambda store: store["w"].merge("w@1"),
    "rm": lambda store: store.rm("w"),
}


async def _read(store: Store) -> str:
    async with store.open("w", readonly=True) as ws:
        return (await ws.execute("cat /x")).text


@pytest.mark.parametrize("who", ["eve", None])
@pytest.mark.parametrize("act", [*READS.values(), *WRITES.values()], ids=[*READS, *(f"w-{name}" for name in WRITES)])
def test_who_has_no_grant_may_do_nothing(place: MemoryObjects, act: Callable[[Store], object], who: str | None) -> None:
    with pytest.raises(RametError) as caught:
        act(Store(place, principal=who))
    assert caught.value.code == "permission_denied" and caught.value.remediation
    assert Store(place, principal=who).ls() == []


@pytest.mark.parametrize("act", READS.values(), ids=READS)
def test_who_may_read_may_read(place: MemoryObjects, act: Callable[[Store], object]) -> None:
    act(Store(place, principal="bob"))


@pytest.mark.parametrize("act", WRITES.values(), ids=WRITES)
def test_who_may_read_may_not_write(place: MemoryObjects, act: Callable[[Store], object]) -> None:
    with pytest.raises(RametError) as caught:
        act(Store(place, principal="bob"))
    assert caught.value.code == "permission_denied"
    assert Store(place, principal="ada").find("w").seq == 2


@pytest.mark.parametrize("act", [*READS.values(), *WRITES.values()], ids=[*READS, *(f"w-{name}" for name in WRITES)])
def test_who_may_write_may_do_everything(place: MemoryObjects, act: Callable[[Store], object]) -> None:
    act(Store(place, principal="ada"))


def test_a_fork_has_the_grants_of_its_source_and_its_maker(place: MemoryObjects) -> None:
    bob = Store(place, principal="bob")
    bob["w"].fork(None, "mine")
    assert dict(bob["mine"].grants()) == {"ada": "readwrite", "bob": "readwrite"}
    fill(bob, "mine", "echo 3 > /x")
    with pytest.raises(RametError):
        Store(place, principal="eve").find("mine")


def test_the_last_grant_cannot_lock_everyone_out(place: MemoryObjects) -> None:
    ada = Store(place, principal="ada")
    acts: list[Callable[[], None]] = [lambda: ada["w"].revoke("ada"), lambda: ada["w"].grant("ada", "readonly")]
    for act in acts:
        with pytest.raises(RametError) as caught:
            act()
        assert caught.value.code == "invalid_argument"
    ada["w"].revoke("bob")
    with pytest.raises(RametError):
        Store(place, principal="bob").find("w")


def test_the_environment_says_who_asks(place: MemoryObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMET_PRINCIPAL", "bob")
    assert Store(place).ls() == ["w"]
    assert Store(place, principal="eve").ls() == [], "what is said goes before the environment"


def test_a_name_that_is_used_again_has_no_grants(place: MemoryObjects) -> None:
    Store(place, principal="ada").rm("w")
    eve = Store(place, principal="eve")
    eve.create("w")
    assert eve["w"].grants() == {}


def test_the_feed_shows_what_may_be_read(place: MemoryObjects) -> None:
    async def names(who: str) -> set[str]:
        return {event.data["workspace"] async for event in Store(place, principal=who).events()}

    Store(place).create("open")
    assert asyncio.run(names("bob")) == {"w"} and asyncio.run(names("eve")) == set()


def test_damaged_grants_grant_nothing(place: MemoryObjects) -> None:
    key = max(place.list("grants/w/"))
    place.put(key, b"{}")
    with pytest.raises(RametError) as caught:
        Store(place, principal="ada").find("w")
    assert caught.value.code == "store_corrupt"


def test_collecting_and_checking_need_no_grant(place: MemoryObjects) -> None:
    assert Store(place).verify().ok
    assert Store(place).gc(grace=0).kept == 2


def test_what_cannot_be_granted(place: MemoryObjects) -> None:
    ada = Store(place, principal="ada")
    acts: dict[str, Callable[[], object]] = {
        "unknown access": lambda: ada["w"].grant("x", "all"),  # type: ignore[arg-type]
        "nobody": lambda: ada["w"].grant("", "readonly"),
        "the server": lambda: ada["w"].grant("@trusted", "readwrite"),
    }
    for act in acts.values():
        with pytest.raises(RametError) as caught:
            act()
        assert caught.value.code == "invalid_argument"
    with pytest.raises(RametError) as caught:
        ada["w"].revoke("stranger")
    assert caught.value.code == "not_found"
    Store(place, principal="ada").create("taken")
    with pytest.raises(RametError) as caught:
        ada["w"].fork(None, "taken")
    assert caught.value.code == "workspace_exists" and ada["taken"].grants() == {}


def test_two_who_grant_at_once(place: MemoryObjects) -> None:
    ada, other = Store(place, principal="ada"), Store(place, principal="ada")
    last = ada.repository.grants._last

    def late(name: str, older: float) -> object:
        found = last(name, older)
        ada.repository.grants._last = last  # type: ignore[method-assign]
        other["w"].grant("eve", "readonly")
        return found

    granted = dict(ada["w"].grants())
    ada.repository.grants._last = late  # type: ignore[method-assign,assignment]
    with pytest.raises(RametError) as caught:
        ada.repository.grants.put("w", granted, "ada")
    assert caught.value.code == "head_moved" and ada["w"].grants()["eve"] == "readonly"
