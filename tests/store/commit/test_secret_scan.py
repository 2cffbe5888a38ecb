"""Looking for secrets in new content: off by default, told by path and kind, or refused before a byte is written."""

from __future__ import annotations

import asyncio
import random
import string
from pathlib import Path
from typing import Any

import pytest

from ramet import DiskResource, RametError, Store
from ramet.store.commit.secret_scan import FORMS, kinds
from ramet.store.objects.objects import DirectoryObjects, MemoryObjects

ALPHABET = string.ascii_letters + string.digits


def made(start: str, size: int, alphabet: str = ALPHABET) -> str:
    """Something of the right form that opens no door."""
    rng = random.Random(start)
    return start + "".join(rng.choice(alphabet) for _ in range(size))


UPPER = string.ascii_uppercase + string.digits
SAMPLES = {
    "private_key": "-----BEGIN OPENSSH " + "PRIVATE KEY-----",
    "aws_access_key": made("AKIA", 16, UPPER),
    "github_token": made("ghp_", 36),
    "gitlab_token": made("glpat-", 20),
    "slack_token": made("xoxb-", 40),
    "google_key": made("AIza", 35),
    "stripe_key": made("sk_live_", 24),
    "model_key": made("sk-ant-api03-", 60),
    "npm_token": made("npm_", 36),
    "pypi_token": made("pypi-AgEIcHlwaS5vcmc", 60),
    "hugging_face_token": made("hf_", 34),
    "web_token": ".".join((made("eyJ", 20), made("eyJ", 40), made("", 30))),
    "random_value": f'password = "{made("", 24)}"',
}


def test_every_form_has_a_sample() -> None:
    assert set(SAMPLES) == {*FORMS, "random_value"}


@pytest.mark.parametrize("kind", SAMPLES)
def test_known_forms_are_seen(kind: str) -> None:
    assert kind in kinds(f"before\n x = {SAMPLES[kind]} \nafter\n".encode())


@pytest.mark.parametrize(
    "text",
    ["", "hello world\n" * 1000, "token = get_token_from_environment()", "password: ${PASSWORD}", "AKIA is a prefix",
     "secret = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "sk-learn and ghp_ and eyJ", "api_key: your-key-here"],
)  # fmt: skip
def test_what_is_no_secret_is_not_seen(text: str) -> None:
    assert kinds(text.encode()) == []


@pytest.mark.parametrize("where", ["ram", "disk"])
@pytest.mark.parametrize("scan", ["off", "report", "refuse"])
def test_commits_that_are_scanned(where: str, scan: str, tmp_path: Path) -> None:
    token = SAMPLES["github_token"]
    (tmp_path / "root" / "d").mkdir(parents=True)
    mounts: Any = {"/m": DiskResource(str(tmp_path / "root"), create=True)} if where == "disk" else {}
    top = "/m/d" if where == "disk" else "/d"
    place = DirectoryObjects(str(tmp_path / "store"))
    store = Store(place)
    store.create("w")

    async def act() -> None:
        async with store.open("w", mounts=mounts, scan=scan, commit="never") as ws:
            await ws.execute(f"mkdir -p {top}; echo harmless > {top}/a")
            first = await ws.commit("one")
            assert first.suspected == ()
            await ws.fs.write(_path(f"{top}/b"), f"key={token}\n".encode())
            if scan == "refuse":
                with pytest.raises(RametError) as caught:
                    await ws.commit("two")
                assert caught.value.code == "secret_found" and f"{top}/b" in caught.value.cause
                assert token not in str(caught.value) and store.find("w").seq == 1
                await ws.execute(f"rm {top}/b")
                assert (await ws.commit("three")).suspected == ()
                return
            second = await ws.commit("two")
            assert second.suspected == ((f"{top}/b (github_token)",) if scan == "report" else ())
            await ws.execute(f"echo more > {top}/c")
            assert (await ws.commit("three")).suspected == (), "only what is new is told"

    asyncio.run(act())
    assert store.verify().ok
    if scan == "refuse":
        reader = store.repository.packs
        for name in reader.packs():
            for key in reader.index(name).ids():
                assert token.encode() not in reader.read(key), "not even garbage has it"


def _path(text: str) -> Any:
    from ramet.core.paths import parse

    return parse(text)


def test_another_way_to_scan_is_refused() -> None:
    store = Store(MemoryObjects())
    store.create("w")
    with pytest.raises(RametError, match="scan"):
        store.open("w", scan="maybe")
