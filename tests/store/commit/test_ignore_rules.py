"""Credentials that never enter a revision, from memory and from disk, and how to allow one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ramet import DiskResource, RAMResource, Store
from ramet.store.commit.ignore_rules import IgnoreRules

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n"
WITHHELD = {
    ".env": "A=1", ".env.local": "A=1", "id_rsa": "x", "id_ed25519": "x", "id_ecdsa": "x", ".pypirc": "x",
    ".docker/config.json": "{}", ".kube/config": "x", ".config/gcloud/token": "x", "a/b/prod.tfstate": "{}",
    "server.pem": KEY, "tls.key": KEY, "deep/.env": "A=1",
}  # fmt: skip
KEPT = {
    ".env.example": "A=", ".env.sample": "A=", ".env.template": "A=", ".env.dist": "A=", "cert.pem": "CERTIFICATE",
    "answers.key": "1 b", "environment": "x", ".kube/cache": "x", "config.json": "{}", "id_rsa.pub": "x",
}  # fmt: skip


@pytest.mark.parametrize("kind", ["ram", "disk"])
def test_credentials_stay_out_and_are_named(tmp_path: Path, kind: str) -> None:
    store = Store("memory:")
    store.create("w")
    for name, text in {**WITHHELD, **KEPT}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    async def act() -> None:
        memory = RAMResource()
        async with store.open("w", mounts={"/m": DiskResource(tmp_path) if kind == "disk" else memory}) as ws:
            if kind == "ram":
                ws.mount("/from", DiskResource(tmp_path), "read")
                await ws.execute("cp -r /from/. /m/")
                await (await ws.unmount("/from")).close()

    asyncio.run(act())
    head = store["w"].find()
    named = {path.removeprefix("/m/") for path in head.withheld}
    assert named == {".config/gcloud" if name.startswith(".config") else name for name in WITHHELD}
    for name in KEPT:
        assert b"".join(store["w"].show(f"/m/{name}")) == KEPT[name].encode()


def test_a_pattern_after_an_exclamation_mark_allows() -> None:
    store = Store("memory:")
    store.create("w")

    async def act() -> None:
        async with store.open("w", withhold=["!.env", "!.env.*", "!*.pem", "!.kube/config", "*.secret"]) as ws:
            files = "/.env /.env.ci /k.pem /k.key /.kube/config /a.secret"
            await ws.execute(f"mkdir /.kube; printf %s '{KEY}' | tee {files}")

    asyncio.run(act())
    assert store["w"].find().withheld == ("/a.secret", "/k.key")


def test_a_file_is_judged_by_its_content_at_each_commit(tmp_path: Path) -> None:
    store = Store("memory:")
    store.create("w")

    async def act(text: str) -> tuple[str, ...]:
        async with store.open("w", mounts={"/d": DiskResource(tmp_path)}) as ws:
            await ws.execute(f"printf '%s' '{text}' | tee /d/x.key > /x.key")
            return (await ws.commit()).withheld

    assert asyncio.run(act("public")) == ()
    assert asyncio.run(act(KEY)) == ("/d/x.key", "/x.key")
    assert asyncio.run(act("public again")) == ()


def test_a_wrong_pattern_is_refused() -> None:
    with pytest.raises(Exception, match="cannot be withheld"):
        IgnoreRules(["!"])
