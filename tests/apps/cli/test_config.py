"""`--config` and `ramet config`: workspaces that a file describes, from a terminal and behind a server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from tests.apps.server.harness import Process

CONFIG = """\
name: proj
store: ./store
mounts:
  /data: {resource: disk, mode: read, config: {root: data}}
env: {WHO: "${WHO:-world}"}
secrets: {TOKEN: env:TOKEN}
policy:
  deny: [{command: rm, reason: not here}]
server: {durable: close, idle: 60}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "f").write_text("from disk\n")
    (tmp_path / "ramet.yaml").write_text(CONFIG)
    return tmp_path


def ramet(folder: Path, *words: str, status: int = 0, env: dict[str, str] | None = None) -> str:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RAMET_")}
    done = subprocess.run(
        [sys.executable, "-m", "ramet.apps.cli", *words], cwd=folder, input="", capture_output=True, text=True,
        env={**plain, "HOME": str(folder), "TOKEN": "tok-12345", **(env or {})}, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stderr + done.stdout
    return done.stdout + done.stderr


def test_exec_with_a_file(folder: Path) -> None:
    command = "cat /data/f; echo $WHO $TOKEN; echo kept >> /kept; cat /kept"
    assert ramet(folder, "exec", "--config", "ramet.yaml", command) == "from disk\nworld tok-12345\nkept\n"
    said = ramet(folder, "exec", command, env={"WHO": "you", "RAMET_CONFIG": "ramet.yaml"})
    assert said.endswith("you tok-12345\nkept\nkept\n")
    assert "not here" in ramet(folder, "exec", "other", "rm /x", "--config=ramet.yaml", status=126)
    assert json.loads(ramet(folder, "ls", "--json", "--store", "store"))[0]["workspace"] == "other"
    assert "missing argument COMMAND" in ramet(folder, "exec", "lonely", status=2)


def test_exec_without_a_name_leaves_nothing(folder: Path) -> None:
    (folder / "plain.json").write_text('{"env": {"A": "1"}}')
    assert ramet(folder, "exec", "--config", "plain.json", "echo $A > /f; cat /f") == "1\n"
    assert not (folder / ".ramet").exists()


def test_shell_with_a_file(folder: Path) -> None:
    env = {**os.environ, "TOKEN": "tok-12345"}
    words = [sys.executable, "-m", "ramet.apps.cli", "shell", "--config", "ramet.yaml"]
    done = subprocess.run(words, cwd=folder, input="echo $WHO\n", capture_output=True, text=True, env=env, check=False)
    assert (done.stdout, done.stderr) == ("world\n", "")


def test_check_and_show(folder: Path) -> None:
    assert ramet(folder, "config", "check") == "ramet.yaml: 1 mount, no problem\n"
    assert json.loads(ramet(folder, "config", "check", "--json", "--connect"))[0]["detail"] == "has f"
    shown = {row["setting"]: row for row in json.loads(ramet(folder, "config", "show", "--json", "--resolved"))}
    assert shown["env.WHO"] == {"setting": "env.WHO", "value": "world", "from": "default of ${WHO}"}
    assert shown["secrets.TOKEN"]["value"] == "<REDACTED>" and "tok-12345" not in str(shown)
    assert shown["server.port"] == {"setting": "server.port", "value": 8750, "from": "default"}
    plain = {row["setting"]: row for row in json.loads(ramet(folder, "config", "show", "--json"))}
    assert plain["env.WHO"] == {"setting": "env.WHO", "value": "${WHO:-world}", "from": "ramet.yaml:5"}
    assert plain["secrets.TOKEN"]["value"] == "env:TOKEN" and "server.port" not in plain


def test_what_is_wrong_is_reported(folder: Path) -> None:
    (folder / "bad.yaml").write_text("nmae: x\nmounts: {/d: {resource: dsk}}\n")
    told = ramet(folder, "config", "check", "bad.yaml", status=1)
    assert "bad.yaml:1:1: unknown setting 'nmae'; did you mean name?" in told and "bad.yaml:2:25:" in told
    problem = json.loads(ramet(folder, "config", "check", "bad.yaml", "--json", status=1))["error"]
    assert [row["line"] for row in problem["context"]["problems"]] == [1, 2]
    (folder / "ramet.yaml").unlink()
    assert "ramet config init" in ramet(folder, "config", "check", status=3)
    assert "No such file" in ramet(folder, "exec", "--config", "none.yaml", "true", status=3)


def test_what_init_writes_is_sound(folder: Path) -> None:
    assert ramet(folder, "config", "init", "new.yaml", "--name", "fresh") == "new.yaml\n"
    assert "no problem" in ramet(folder, "config", "check", "new.yaml")
    assert "file exists" in ramet(folder, "config", "init", "new.yaml", status=4)
    assert json.loads(ramet(folder, "config", "schema"))["title"] == "A Ramet workspace"
    assert Path(ramet(folder, "config", "schema", "--path").strip()).is_file()


def test_serve_with_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "tok-12345")
    server = Process(folder, "--config", str(folder / "ramet.yaml"))
    try:
        with server.client() as client:
            assert [row["name"] for row in client.get("/v1/workspaces").json()["workspaces"]] == ["proj"]
            body = {"command": "cat /data/f; echo $WHO $TOKEN; rm /x"}
            answer: httpx2.Response = client.post("/v1/workspaces/proj/exec", json=body)
            said = answer.json()
            assert said["stdout"] == "from disk\nworld tok-12345\n" and "not here" in said["stderr"]
            made = client.post("/v1/workspaces", json={"name": "m", "kind": "memory"})
            assert made.status_code == 201
    finally:
        server.kill()


def test_a_workspace_keeps_the_file_that_it_was_made_with(folder: Path) -> None:
    assert ramet(folder, "create", "mine", "--config", "ramet.yaml") == "mine\n"
    env = {"RAMET_HOME": str(folder / "store")}
    assert ramet(folder, "exec", "mine", "cat /data/f; echo $WHO $TOKEN", env=env) == "from disk\nworld tok-12345\n"
    assert "not here" in ramet(folder, "exec", "mine", "rm /x", status=126, env=env)
    (folder / "data" / "f").write_text("changed\n")
    assert ramet(folder, "exec", "mine", "cat /data/f", env=env) == "changed\n"
    assert ramet(folder, "commit", "mine", env=env) == "mine-2\nnothing changed\n"
    ramet(folder, "fork", "mine", "other", env=env)
    assert "not here" in ramet(folder, "exec", "other", "rm /data/f", status=126, env=env)
    ramet(folder, "rename", "other", "third", env=env)
    assert "not here" in ramet(folder, "exec", "third", "rm /data/f", status=126, env=env)
    kept = "".join(path.read_text("latin-1") for path in (folder / "store").rglob("*") if path.is_file())
    assert "tok-12345" not in kept and "env:TOKEN" in kept


def test_a_past_revision_has_the_rules_and_not_the_live_mounts(folder: Path) -> None:
    (folder / "ramet.yaml").write_text(CONFIG.replace("mode: read", "mode: write"))
    ramet(folder, "create", "mine", "--config", "ramet.yaml")
    env = {"RAMET_HOME": str(folder / "store")}
    ramet(folder, "exec", "mine", "cat /data/f; date > /x", env=env)
    (folder / "data" / "f").write_text("changed\n")
    assert ramet(folder, "exec", "mine@1", "cat /data/f", env=env) == "from disk\n"
    assert "not here" in ramet(folder, "exec", "mine@1", "rm /data/f", status=126, env=env)


def test_the_kept_file_is_shown_replaced_and_forgotten(folder: Path) -> None:
    env = {"RAMET_HOME": str(folder / "store")}
    ramet(folder, "create", "--config", "ramet.yaml")
    shown = {row["setting"]: row["value"] for row in json.loads(ramet(folder, "config", "proj", "--json", env=env))}
    assert shown["secrets.TOKEN"] == "env:TOKEN" and shown["env.WHO"] == "${WHO:-world}"
    assert "<REDACTED>" in ramet(folder, "config", "show", "proj", "--resolved", env=env)
    (folder / "ramet.yaml").write_text(CONFIG.replace("world", "moon"))
    assert "has changed since" in ramet(folder, "exec", "proj", "echo $WHO", env=env)
    ramet(folder, "config", "use", "proj", "ramet.yaml", env=env)
    assert ramet(folder, "exec", "proj", "echo $WHO", env=env) == "moon\n"
    ramet(folder, "config", "use", "proj", "--forget", env=env)
    assert "No such file" in ramet(folder, "exec", "proj", "rm /x", status=1, env=env)
    assert "has no configuration" in ramet(folder, "config", "proj", env=env)
    assert "'nope' is neither a file nor a workspace" in ramet(folder, "config", "nope", status=3, env=env)
    assert "did you mean check?" in ramet(folder, "config", "chek", status=3, env=env)
    assert "missing argument FILE" in ramet(folder, "config", "use", "proj", status=2, env=env)


def test_a_secret_in_the_file_is_not_kept(folder: Path) -> None:
    (folder / "bad.yaml").write_text("env: {A: ghp_0123456789abcdefghijklmnopqrstuvwxyzAB}\n")
    told = ramet(folder, "create", "mine", "--config", "bad.yaml", status=1)
    assert "line 1 seems to hold a secret (github" in told and "secret:env:NAME" in told
    assert "no workspaces" in ramet(folder, "ls")


def test_a_removed_workspace_comes_back_with_its_file_and_a_new_one_without(folder: Path) -> None:
    env = {"RAMET_HOME": str(folder / "store")}
    ramet(folder, "create", "mine", "--config", "ramet.yaml")
    ramet(folder, "exec", "mine", "date > /x", env=env)
    ramet(folder, "rm", "mine", env=env)
    assert "no workspace" in ramet(folder, "exec", "mine", "date", status=3, env=env)
    ramet(folder, "restore", "mine", env=env)
    assert ramet(folder, "exec", "mine", "cat /data/f", env=env) == "from disk\n"
    ramet(folder, "rm", "mine", env=env)
    ramet(folder, "create", "mine", env=env)
    assert ramet(folder, "exec", "mine", "echo $WHO", env=env) == "\n"


def test_a_server_opens_a_workspace_with_its_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ramet(folder, "create", "mine", "--config", "ramet.yaml")
    monkeypatch.setenv("TOKEN", "tok-12345")
    server = Process(folder)
    try:
        with server.client() as client:
            body = {"command": "cat /data/f; echo $WHO; rm /x"}
            said = client.post("/v1/workspaces/mine/exec", json=body).json()
            assert said["stdout"] == "from disk\nworld\n" and "not here" in said["stderr"]
            assert client.delete("/v1/workspaces/mine").status_code == 200
            assert client.post("/v1/workspaces/mine/exec", json=body).status_code == 404
    finally:
        server.stop()


def test_a_directory_is_mounted_live_until_it_is_unmounted(folder: Path) -> None:
    place = str(folder / "data")
    ramet(folder, "create", "mine")
    assert "pass --live to mount the directory itself" in ramet(folder, "mount", "mine", "/copy", place)
    ramet(folder, "mount", "mine", "/live", place, "--live")
    ramet(folder, "mount", "mine", "/kept", place, "--live", "--mode", "read")
    ramet(folder, "exec", "mine", "echo new > /live/new; echo more > /copy/more")
    assert sorted(path.name for path in (folder / "data").iterdir()) == ["f", "new"]
    assert "Read-only" in ramet(folder, "exec", "mine", "echo > /kept/x", status=1)
    assert "mounts./kept.mode" in {row["setting"] for row in json.loads(ramet(folder, "config", "mine", "--json"))}
    ramet(folder, "umount", "mine", "/live")
    assert ramet(folder, "exec", "mine", "ls /; cat /kept/new") == "copy\nhome\nkept\ntmp\nnew\n"
    assert "name the directory" in ramet(folder, "mount", "mine", "/x", "--live", status=2)
    ramet(folder, "create", "--config", "ramet.yaml")
    env = {"RAMET_HOME": str(folder / "store")}
    assert "it has the configuration" in ramet(folder, "mount", "proj", "/x", place, "--live", status=1, env=env)
    assert "default" not in {row["agent"] for row in json.loads(ramet(folder, "history", "mine", "--json"))}
