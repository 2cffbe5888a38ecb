"""`ramet doctor`: every promise of Ramet is looked at, what is absent says what it costs, what is broken what to do."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import re
from pathlib import Path

import pytest
from tests.apps.cli.runner import invoke

from ramet import Store
from ramet.apps.cli.verbs.doctor import EXTRAS, NATIVE, PACKAGES
from ramet.concurrency.watchdog import Hold, Watchdog


def examined(*words: str, store: Path) -> tuple[int, dict[str, tuple[str, str]]]:
    done = invoke(["doctor", "--json", "--store", str(store), *words])
    return done.exit_code, {row["check"]: (row["state"], row["detail"]) for row in json.loads(done.stdout)}


def filled(place: Path, *commands: str) -> Store:
    store = Store(str(place))
    store.create("p")

    async def work() -> None:
        async with store.open("p") as ws:
            for command in commands:
                await ws.execute(command)
            await ws.commit("made")

    asyncio.run(work())
    return store


def test_everything_that_is_installed_is_looked_at(tmp_path: Path) -> None:
    status, rows = examined(store=tmp_path)
    assert status == 0
    assert {"python", "shell", "heads", "integrity", "git", *PACKAGES, *NATIVE} <= rows.keys()
    assert rows["python"][0] == rows["shell"][0] == rows[f"store {tmp_path}"][0] == rows["heads"][0] == "ok"
    for check, (state, detail) in rows.items():
        assert state in ("ok", "absent", "skipped"), check
        assert state == "ok" or detail, check


def test_the_commands_that_held_the_event_loop_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watchdog = Watchdog()
    monkeypatch.setattr("ramet.concurrency.watchdog.WATCHDOG", watchdog)
    assert examined(store=tmp_path)[1]["event loop"] == ("ok", "no command held it for more than 1 s")
    watchdog.counts["awk"] = 2
    watchdog.recent.append(Hold("awk", 2.5, "awk.py:7 (run)"))
    told = "held for more than 1 s by awk (2 times); last for 2.5 s at awk.py:7 (run)"
    assert examined(store=tmp_path)[1]["event loop"] == ("ok", told)


def test_every_extra_and_every_dependency_is_in_the_tables() -> None:
    about = importlib.metadata.metadata("ramet")
    assert set(about.get_all("Provides-Extra") or ()) == set(EXTRAS)
    needed = {
        re.split(r"[\s<>=!~;\[]", line)[0] for line in about.get_all("Requires-Dist") or () if "extra ==" not in line
    }
    assert needed - {"backports.zstd", "backports-zstd", "stringzilla"} == set(PACKAGES), "those are not for everybody"


def test_an_extra_that_is_absent_says_what_it_costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    status, rows = examined(store=tmp_path)
    assert status == 0
    for name, extra in EXTRAS.items():
        assert rows[f"extra {name}"] == ("absent", f"{extra.cost}; pip install 'ramet[{name}]'")


@pytest.mark.parametrize("there", [False, True])
def test_programs_say_what_they_are_for(there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}" if there else None)
    _, rows = examined(store=tmp_path)
    assert rows["git"][0] == rows["CRIU"][0] == ("ok" if there else "absent")


def test_a_missing_device_costs_remote_mounts_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramet.native.fuse.DEVICE", "/dev/no-such-device")
    status, rows = examined(store=tmp_path)
    if rows.get("native box", ("",))[0] != "ok":
        pytest.skip("no native programs here")
    assert status == 0 and rows["native FUSE"][0] == "absent"
    assert "/dev/no-such-device" in rows["native FUSE"][1] and "--device /dev/fuse" in rows["native FUSE"][1]


def test_a_store_that_is_sound(tmp_path: Path) -> None:
    filled(tmp_path, "echo one > /a")
    assert examined(store=tmp_path)[1]["integrity"][0] == "skipped"
    status, rows = examined("--full", store=tmp_path)
    assert (status, rows["integrity"]) == (0, ("ok", "no damage"))
    assert rows["heads"] == ("ok", "1 read")


def test_damage_is_bad_and_says_what_to_do(tmp_path: Path) -> None:
    filled(tmp_path, "echo one > /a")
    for pack in (tmp_path / "packs").rglob("*"):
        if pack.is_file():
            pack.unlink()
    status, rows = examined("--full", store=tmp_path)
    assert status == 1
    assert rows["heads"][0] == rows["integrity"][0] == "bad"
    assert "p: " in rows["heads"][1] and "ramet repair" in rows["heads"][1] and "ramet repair" in rows["integrity"][1]


def test_a_store_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    status, rows = examined(store=tmp_path / "file" / "store")
    assert status == 1 and rows[f"store {tmp_path / 'file' / 'store'}"][0] == "bad"
    assert "heads" not in rows and rows["shell"][0] == "ok"


@pytest.mark.parametrize(("mode", "state"), [(0o600, "ok"), (0o644, "bad")])
def test_the_token_of_a_server_is_its_owners(mode: int, state: str, tmp_path: Path) -> None:
    token = tmp_path / "server-token"
    token.write_text("a-token-that-is-long")
    token.chmod(mode)
    status, rows = examined(store=tmp_path)
    assert rows["server token"][0] == state and status == (state == "bad")
    assert "a-token" not in str(rows)


def test_mounts_of_a_file_are_reached(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "x").write_text("")
    file = tmp_path / "ramet.json"
    mounts = {
        "/there": {"resource": "disk", "config": {"root": str(tmp_path / "there")}},
        "/gone": {"resource": "disk", "config": {"root": str(tmp_path / "there" / "x")}},
        "/far": {"resource": "redis", "config": {"url": "redis://:hush-hush@127.0.0.1:1/0"}},
    }
    file.write_text(json.dumps({"name": "p", "mounts": mounts}))
    status, rows = examined("--config", str(file), store=tmp_path / "store")
    assert status == 1
    assert rows["mount /there"] == ("ok", "has x")
    assert rows["mount /gone"][0] == rows["mount /far"][0] == "bad"
    assert rows["mount /gone"][1] and rows["mount /far"][1]
    assert "hush-hush" not in str(rows)


def test_mounts_that_are_not_in_the_store_have_to_be_brought(tmp_path: Path) -> None:
    from ramet.backends.remote.http import HTTPConfig, HTTPResource

    store = Store(str(tmp_path))
    store.create("p")

    async def work() -> None:
        async with store.open("p", mounts={"/web": HTTPResource(HTTPConfig(base="http://127.0.0.1:1/"))}) as ws:
            await ws.commit("made")

    asyncio.run(work())
    status, rows = examined(store=tmp_path)
    assert status == 0
    assert rows["mounts of p"][0] == "absent" and "/web (http)" in rows["mounts of p"][1]
    file = tmp_path / "ramet.json"
    file.write_text(json.dumps({"mounts": {"/web": {"resource": "disk", "config": {"root": str(tmp_path)}}}}))
    assert "mounts of p" not in examined("--config", str(file), store=tmp_path)[1]
