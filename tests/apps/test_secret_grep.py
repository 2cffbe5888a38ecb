"""Secrets that are planted wherever there may be some are found nowhere: not in the store, events, logs, errors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.apps.test_git_server import TOKEN, settings, url
from tests.support.cmdlines import command_lines

from ramet import AgentRun, DiskResource, RametError, Store
from ramet.store.objects.objects import DirectoryObjects
from ramet.store.packs.reader import PackReader
from ramet.workspace.stored.events import JsonLines

__all__ = ["url"]
PLANTED = {name: f"planted-{name}-5f0c9d17" for name in ("env", "netrc", "ssh", "aws", "user", "gh", "npm")}


def everything(root: Path) -> Iterator[tuple[str, bytes]]:
    """Every file as it is, and everything that is compressed in packs as it was."""
    for path in root.rglob("*"):
        if path.is_file():
            yield str(path), path.read_bytes()
    for store in {path.parent for path in root.rglob("packs") if path.is_dir()}:
        reader = PackReader(DirectoryObjects(str(store)))
        reader.refresh()
        for name in reader.packs():
            for key in reader.index(name).ids():
                yield f"{name}/{key.hex()}", reader.read(key)


def plant(top: str) -> str:
    places = {
        "netrc": ".netrc", "ssh": ".ssh/id", "aws": "deep/er/.aws/credentials", "gh": ".config/gh/hosts.yml",
        "npm": "pkg/.npmrc", "user": "certs/server.pem",
    }  # fmt: skip
    lines = [f"mkdir -p {top}/{Path(path).parent}; cat /planted/{name} > {top}/{path}" for name, path in places.items()]
    return "; ".join(lines)


def test_nothing_that_was_planted_is_found_anywhere(
    url: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    planted = tmp_path / "planted"
    planted.mkdir()
    for name, value in PLANTED.items():
        (planted / name).write_text(value)
    disk = tmp_path / "disk"
    disk.mkdir()
    told: list[str] = []
    with command_lines() as lines:
        store = Store(str(tmp_path / "kept" / "store"))
        store.create("disk")

        async def on_disk() -> None:
            mounts: Any = {"/dir": DiskResource(str(disk)), "/planted": (DiskResource(str(planted)), "read")}
            secrets = {"API_KEY": PLANTED["env"]}
            async with store.open(
                "disk", mounts=mounts, secrets=secrets, withhold=["*.pem", "planted", *PLANTED]
            ) as ws:
                done = await ws.execute(plant("/dir") + "; echo $API_KEY; echo kept > /dir/kept")
                told.append(done.text)

        asyncio.run(on_disk())
        run = AgentRun(store=store)
        run.create_workspace("p")
        for token in ("wrong" + TOKEN, TOKEN):
            sandbox = run.sandbox(
                workspace="p", git=settings(url), git_secrets={"creds": {"token": token}},
                secrets={"API_KEY": PLANTED["env"]},
            )  # fmt: skip
            sandbox.exec("mkdir -p repo .ssh; date > repo/f; echo $API_KEY > /dev/null; echo $API_KEY")
            sandbox.files.write(".netrc", PLANTED["netrc"])
            sandbox.files.write("repo/.ssh/id", PLANTED["ssh"])
            try:
                sandbox.terminate(outputs=[{"git": {"remote": "rendezvous"}}])
            except RametError as error:
                told.append(str(error) + repr(error.as_dict()))
            told.append(repr(sandbox) + repr(sandbox.pushed) + repr(sandbox.revision))
        (tmp_path / "kept").mkdir(exist_ok=True)
        asyncio.run(store.deliver(JsonLines(str(tmp_path / "kept" / "events")), "sink"))
        assert store.gc(grace=0).kept
    withheld = [path for name in ("disk", "p") for path in (store.find(name).withheld)]
    assert "/dir/.netrc" in withheld and "/workspace/repo/.ssh" in withheld, "what is left out is named"
    secret = [*PLANTED.values(), TOKEN, "wrong" + TOKEN]
    found: list[str] = []
    for where, data in everything(tmp_path / "kept"):
        found += [f"{where}: {one}" for one in secret if one.encode() in data]
    for where, data in everything(tmp_path / "repos"):
        found += [f"{where}: {one}" for one in secret if one.encode() in data]
    texts = [*told[1:], caplog.text, *(line.decode("utf-8", "replace") for line in lines)]
    found += [f"text: {one}" for text in texts for one in secret if one in text]
    assert not found
    assert any(b"push" in line for line in lines)
