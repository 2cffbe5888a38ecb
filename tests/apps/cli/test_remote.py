"""`ramet --store http://...`: verbs against a server do what they do against the store."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.apps.cli.runner import invoke
from tests.apps.server.harness import Process

from ramet.apps.cli import errors as reporting
from ramet.apps.cli import main as cli
from ramet.apps.cli import stores
from ramet.apps.cli.stores import any_store, local_store
from ramet.core.errors import RametError


class Terminal:
    """The `ramet` command with one store."""

    def __init__(self, where: str) -> None:
        self.env: dict[str, str | None] = {"RAMET_HOME": where}

    def __call__(self, *words: str, status: int = 0) -> str:
        result = invoke(list(words), env=self.env)
        assert result.exit_code == status, (words, result.output)
        return result.output

    def rows(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[tuple[Terminal, Terminal]]:
    """One on the server, one on the store behind it."""
    (tmp_path / "git").mkdir()
    server = Process(tmp_path, "--push-to", f"file://{tmp_path}/git")
    try:
        yield Terminal(f"unix:{server.socket}"), Terminal(str(tmp_path / "store"))
    finally:
        server.process.kill()
        server.process.wait()


def test_what_is_said_of_a_store_is_said_of_its_server(terminals: tuple[Terminal, Terminal], tmp_path: Path) -> None:
    there, here = terminals
    assert there("create", "demo") == "demo\n"
    assert there("exec", "demo", "printf 'one\\n' > /f; echo out; exit 3", "-m", "first", status=3) == "out\n"
    assert there("exec", "demo", "printf 'two\\n' >> /f; sleep 0 & wait; cd /tmp") == ""
    for line in (
        "ls", "ls demo:/", "ls demo@1:/", "log demo", "log demo@1", "diff demo", "diff demo demo@1", "blame demo:/f",
        "history demo", "tag demo",
        "history demo --session nobody", "sessions demo@2", "jobs demo@2", "mounts demo", "cost", "retention",
        "retention demo", "pin", "grants demo", "gc --dry-run", "verify", "bisect demo 1 head -- !\\ grep\\ two\\ /f",
    ):  # fmt: skip
        words = [word.replace("\x00", " ") for word in line.replace("\\ ", "\x00").split()]
        at = len(words) - 2 if "--" in words else len(words)
        asked = [*words[:at], "--json", *words[at:]]
        assert json.loads(there(*asked)) == json.loads(here(*asked)), line
    assert there.rows("log", "demo@1")[0]["message"] == "first"
    assert there("log", "demo", "--graph") == here("log", "demo", "--graph")
    assert there("show", "demo@1:/f") == here("show", "demo@1:/f") == "one\n"
    assert there("exec", "demo@1", "cat /f") == "one\n"
    assert there("fork", "demo@1", "other") == "other-1\n" and there("revert", "demo@1") == "demo-3\n"
    assert there("merge", "demo", "other") and there("tag", "demo@1", "good") == "demo@good\n"
    there("tag", "demo", "good", "--delete")
    assert there("note", "demo@2:/f", "why so?", "--line", "2") == "demo-2: /f:2: why so?\n"
    assert here("note", "demo@2", "again") == "demo-2: again\n"
    for terminal in (there, here):
        assert terminal.rows("log", "demo@2")[0]["notes"] == ["/f:2: why so?", "again"]
    there("rm", "other")
    assert [row["workspace"] for row in here.rows("ls")] == ["demo"]


def test_what_is_kept_is_said_to_a_server(terminals: tuple[Terminal, Terminal], tmp_path: Path) -> None:
    there, here = terminals
    there("create", "demo")
    there("exec", "demo", "echo x > /f")
    assert there.rows("retention", "demo", "--keep-last", "7")[0]["keep_last"] == 7
    assert there.rows("retention", "--keep-within", "30d") == here.rows("retention")
    there("hold", "demo", "case 42")
    assert there("hold", "demo") == here("hold", "demo") == "case 42\n"
    there("rm", "demo", status=4)
    there("hold", "demo", "--lift")
    pin = there("pin", "demo@1", "--for", "7d", "--why", "review").strip()
    assert [row["pin"] for row in here.rows("pin")] == [pin]
    there("pin", "--delete", pin)
    there("grant", "demo", "ada", "readwrite")
    here("grants", "demo", status=1)
    assert "encrypted" in there("keys", "show", status=1)
    assert "salvaged" in there("repair") and there.rows("gc")[0]["dry"] is False
    there("sessions", "none", status=3)


def test_what_is_carried_to_and_from_a_server(terminals: tuple[Terminal, Terminal], tmp_path: Path) -> None:
    there, here = terminals
    there("create", "demo")
    there("exec", "demo", "echo x > /f")
    there("snapshot", "demo", str(tmp_path / "demo.tar"), "--compress", "gz")
    assert there("import", "copy", str(tmp_path / "demo.tar")) == "copy-1\n"
    there("export", "demo", str(tmp_path / "plain.tar"), "--tar")
    assert "1 written" in there("checkout", "demo", str(tmp_path / "out")) and (tmp_path / "out" / "f").read_text() == (
        "x\n"
    )
    assert there("export", "demo", str(tmp_path / "repo"), "--git").startswith("1 commit,")
    assert (tmp_path / "repo" / "f").read_text() == "x\n"
    there("export", "demo", str(tmp_path / "stream"), "--git-stream")
    folder = tmp_path / "folder"
    (folder / ".ssh").mkdir(parents=True)
    (folder / ".ssh" / "id").write_text("never")
    (folder / "data").write_text("here")
    assert there("mount", "demo", "/data", str(folder)) == "withheld: /data/.ssh\ndemo-2\n"
    assert there("exec", "demo", "ls -A /data") == "data\n"
    there("mount", "demo", "/data", str(folder), status=4)
    there("mount", "demo", "/empty")
    assert {"/data", "/empty"} <= {row["prefix"] for row in here.rows("mounts", "demo")}
    there("umount", "demo", "/empty")
    assert "/empty" not in {row["prefix"] for row in here.rows("mounts", "demo")}
    remote = tmp_path / "git" / "r.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    assert there.rows("push", "demo", f"file://{remote}", "--branch", "b")[0]["branch"] == "b"
    assert "cannot push there" in there("push", "demo", "https://example.org/x.git", status=1)
    assert there.rows("push", "demo") == []
    assert [json.loads(line)["type"] for line in there("events").splitlines()] == [
        json.loads(line)["type"] for line in here("events").splitlines()
    ]


def test_what_needs_the_store_itself_says_so(terminals: tuple[Terminal, Terminal], tmp_path: Path) -> None:
    there, _ = terminals
    there("create", "demo")
    for words in (
        ("bind", "demo", str(tmp_path / "x"), "--", "true"), ("serve",), ("events", "--forget", "x"),
    ):  # fmt: skip
        assert "cannot do this on a server" in there(*words, status=1)
    assert "ok" in there("doctor")


def test_a_shell_on_a_server(terminals: tuple[Terminal, Terminal]) -> None:
    there, here = terminals
    typed = (
        "echo one > /f\ncd /tmp\npwd\nfor x in 1 2\ndo echo $x\ndone\n!commit by hand\n!diff\n!log\n!mounts\n!tag t\n"
    )
    shown = invoke(["shell", "-c", "demo"], typed + "!fork other\n!nothing\n", there.env)
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith("/tmp\n1\n2\ndemo-") and "demo@t" in shown.output and "other-" in shown.output
    assert "no verb !nothing" in shown.output and "/f" in shown.output
    assert here("show", "demo@t:/f") == "one\n" and {row["workspace"] for row in here.rows("ls")} == {"demo", "other"}
    past = invoke(["shell", "demo@1"], "cat /f\nrm /f\n!commit\n", there.env)
    assert past.output.startswith("one\n") and "cannot change" in past.output


def test_which_token_goes_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RAMET_TOKEN", raising=False)
    (tmp_path / ".ramet").mkdir()
    (tmp_path / ".ramet" / "server-token").write_text("of-this-machine\n")

    def header(where: str) -> str | None:
        store: Any = any_store(where)
        with store:
            found: str | None = store._http.raw.headers.get("authorization")
            return found

    assert header("http://127.0.0.1:8750") == "Bearer of-this-machine"
    assert header("https://ramet.example") is None, "the token of this machine is nobody else's"
    monkeypatch.setenv("RAMET_TOKEN", "said")
    assert header("https://ramet.example") == "Bearer said"
    with pytest.raises(RametError, match="cannot do this on a server"):
        local_store("http://127.0.0.1:8750")


def test_the_token_is_found_where_a_server_of_this_machine_left_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "server-token").write_text("its-token\n")
    monkeypatch.delenv("RAMET_TOKEN", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("RAMET_HOME", str(tmp_path))
    server = "http://127.0.0.1:1"
    assert stores.token_of(server) == "its-token" and stores.token_of("http://example.org") is None
    before = cli.split(["--store", server, "ls"])
    assert (before.words, before.before()) == (["ls"], {"store": server})
    assert stores.token_of(server) == "its-token", "a store before the verb does not hide where the token is"
    monkeypatch.delenv("RAMET_HOME")
    assert stores.token_of(server) is None
    monkeypatch.setenv("RAMET_TOKEN", "mine")
    assert stores.token_of(server) == "mine"


def test_a_request_without_a_token_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), reporting.report_errors():
        raise RametError("unauthenticated", "missing token", "send Authorization: Bearer TOKEN")
    assert "set $RAMET_TOKEN to the token of the server" in capsys.readouterr().err
