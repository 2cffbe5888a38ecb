"""The same store on a real S3-compatible server: same ids, few requests, one writer."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from obstore.store import S3Store
from tests.support.servers import S3Server

from ramet import RametError, Store
from ramet.store.objects.log import ObjectLog
from ramet.store.objects.objects import MemoryObjects, Objects, ObstoreObjects, prove_create
from ramet.store.refs.leases import Leases


@pytest.fixture
def server(weed: S3Server) -> S3Server:
    return weed


@pytest.fixture
def objects(server: S3Server, request: pytest.FixtureRequest) -> ObstoreObjects:
    store = S3Store(
        server.bucket, endpoint=server.endpoint, access_key_id=server.key, secret_access_key=server.secret,
        region=server.region, virtual_hosted_style_request=False, client_options={"allow_http": True},
    )  # fmt: skip
    return ObstoreObjects(store, f"tests/{request.node.name}")


class Counted:
    """Counts the requests that pass."""

    def __init__(self, inner: Objects) -> None:
        self._inner, self.calls = inner, Counter[str]()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*arguments: Any) -> Any:
            self.calls[name] += 1
            return found(*arguments)

        return call


def test_objects_are_objects(objects: ObstoreObjects) -> None:
    prove_create(objects)
    objects.put("a/1", b"one")
    objects.put("a/2", b"two")
    assert objects.get("a/1") == b"one" and objects.get_range("a/2", 1, 1) == b"w"
    assert list(objects.list("a/")) == ["a/1", "a/2"] and list(objects.list("a/", "a/1")) == ["a/2"]
    assert not objects.create("a/1", b"other") and objects.get("a/1") == b"one"
    objects.delete("a/1")
    objects.delete("a/1")
    with pytest.raises(KeyError):
        objects.get("a/1")


def test_ten_thousand_files_are_few_requests(objects: ObstoreObjects) -> None:
    async def act() -> None:
        script = "for i in {1..100}; do mkdir /d$i; for j in {1..100}; do echo $i $j > /d$i/f$j; done; done"
        manifests = []
        for where in (Counted(objects), Counted(MemoryObjects())):
            store = Store(where)
            store.create("w")
            async with store.open("w") as ws:
                await ws.execute(f"{script}; find / -exec touch -d 2020-01-01 {{}} +")
                where.calls.clear()
                revision = await ws.commit("all")
                manifests.append(revision.content_manifest)
                assert where.calls["put"] + where.calls["create"] < 50
        assert manifests[0] == manifests[1], "ids do not depend on where the store is"
        cold = Counted(objects)
        async with Store(cold).open("w", readonly=True) as ws:
            assert (await ws.execute("cat /d5/f5")).text == "5 5\n"
        assert sum(cold.calls[verb] for verb in ("get", "get_range", "list", "put", "create", "delete")) < 10
        assert Store(objects).verify().ok

    asyncio.run(act())


def test_two_writers_cannot_both_move_a_head(objects: ObstoreObjects) -> None:
    one, two = Leases(ObjectLog(objects)), Leases(ObjectLog(objects))
    one.create("w", None)
    seen = two.last("w")
    one.move("w", one.last("w"), head=None, kind="commit")
    with pytest.raises(RametError) as caught:
        two.move("w", seen, head=None, kind="commit")
    assert caught.value.code == "head_moved"
    one.acquire("w", "elsewhere/1/2/a")
    with pytest.raises(RametError) as caught:
        two.acquire("w", "here/1/2/b")
    assert caught.value.code == "workspace_busy"
