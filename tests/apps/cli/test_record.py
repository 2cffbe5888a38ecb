"""Who did what, on the command line: `exec --agent`, `history`, `log`, `blame`, `commit`, a held workspace."""

from __future__ import annotations

import getpass
import json
import os
from pathlib import Path

import pytest
from tests.apps.cli.conftest import Ramet
from tests.apps.cli.runner import invoke

from ramet import Store


@pytest.fixture
def filled(ramet: Ramet) -> Ramet:
    ramet("create", "w")
    ramet("exec", "w", "--agent", "ann", "--run", "r1", "--meta", "tokens=812", "--meta", "model=m", "echo 1 > /a")
    ramet("exec", "w", "cat /none; echo 2 > /b", RAMET_AGENT="bob", RAMET_RUN="r2")
    ramet("exec", "w", "cd /tmp; exit 3", "--session", "other", status=3)
    return ramet


def numbers(text: str) -> list[int]:
    return [row["number"] for row in json.loads(text)]


def test_commands_have_an_author(filled: Ramet) -> None:
    rows = json.loads(filled("history", "w", "--json"))
    assert [row["agent"] for row in rows] == ["ann", "bob", getpass.getuser()]
    assert rows[0]["meta"] == {"tokens": 812, "model": "m", "run": "r1"}
    assert json.loads(filled("agents", "w", "--json"))[0]["meta"] == {"tokens": 812}
    assert json.loads(filled("agents", "w", "--by", "run", "--json"))[1]["run"] == "r1"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("--agent", "ann"), [1]),
        (("--run", "r2"), [2]),
        (("--session", "other"), [3]),
        (("--failed",), [3]),
        (("--exit-code", "0"), [1, 2]),
        (("--exit-code", "77"), []),
        (("--principal", "nobody"), []),
        (("--principal", getpass.getuser()), [1, 2, 3]),
        (("--network",), []),
        (("--refused",), []),
        (("--grep", "ECHO"), [1, 2]),
        (("--path", "/b"), [2]),
        (("--path", "/"), [1, 2]),
        (("--path", "/bb"), []),
        (("--since", "1h", "--agent", "bob"), [2]),
        (("--since", "2999-01-01"), []),
        (("--grep", "echo", "-n", "1"), [2]),
    ],
)
def test_history_finds(filled: Ramet, words: tuple[str, ...], found: list[int]) -> None:
    assert numbers(filled("history", "w", "--json", *words)) == found


def test_log_and_blame_name_the_author_and_the_command(filled: Ramet) -> None:
    header, newest, oldest = filled("log", "w").splitlines()
    assert header.split() == ["revision", "id", "time", "by", "files", "message"]
    assert "bob" in newest and "ann" in oldest
    assert filled("blame", "w:/a").splitlines()[1].split() == ["1", "w-1", "ann", "echo", "1", ">", "/a", "1"]


def test_show_without_a_path_shows_a_revision(filled: Ramet) -> None:
    filled("tag", "w@2", "good")
    said = filled("show", "w@2")
    assert said.startswith("revision  w-2 ") and "(good)\nby        bob\n" in said
    assert "\nrecord    2 bob: cat /none; echo 2 > /b -> 0\n" in said and said.endswith("+++ b/b\n@@ -0,0 +1 @@\n+2\n")
    shown = json.loads(filled("show", "w@2", "--json"))
    assert [one["command"] for one in shown["records"]] == ["cat /none; echo 2 > /b"]
    assert shown["changes"] == [{"change": "added", "path": "/b"}]


def test_a_note_is_shown_with_its_revision(filled: Ramet) -> None:
    assert filled("note", "w@1:/a", "why?", "--line", "1") == "w-1: /a:1: why?\n"
    assert f"\nnote      {getpass.getuser()}: /a:1: why?\n" in filled("show", "w@1")
    assert json.loads(filled("show", "w@1", "--json"))["notes"] == ["/a:1: why?"]
    assert "note" not in filled("show", "w@2")


def test_a_long_log_says_what_it_leaves_out(ramet: Ramet, tmp_path: Path) -> None:
    import asyncio

    async def fill() -> None:
        store = Store(str(tmp_path / "home"))
        store.create("w")
        async with store.open("w", commit="command") as ws:
            for number in range(52):
                await ws.execute(f"echo {number} > /n")

    asyncio.run(fill())
    assert "2 older revisions: pass -n 0 to see all" in ramet("log", "w")
    assert len(json.loads(ramet("log", "w", "--json"))) == 52
    assert len(ramet("log", "w", "-n", "0").splitlines()) == 53


def test_commit_without_changes_is_a_note(filled: Ramet) -> None:
    assert filled("commit", "w", "-m", "before lunch").splitlines()[-1] == "w-2"
    assert "note: before lunch" in filled("log", "w", "--oneline", "-n", "1")


def test_commit_takes_what_changed_in_a_directory(ramet: Ramet, tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    config = tmp_path / "ramet.json"
    mount = {"resource": "disk", "config": {"root": str(tmp_path / "dir")}}
    config.write_text(json.dumps({"mounts": {"/data": mount}}))
    ramet("create", "w")
    (tmp_path / "dir" / "f").write_text("from outside\n")
    assert ramet("commit", "w", "--config", str(config), "-m", "by hand") == "w-1\n"
    assert ramet("show", "w:/data/f") == "from outside\n"


def test_a_held_workspace_names_its_holder(ramet: Ramet, tmp_path: Path) -> None:
    store = Store(str(tmp_path / "home"))
    store.create("w")
    with store.repository.writing("w"):
        told = ramet("exec", "w", "true", status=4)
        assert f"held by process {os.getpid()} (" in told and " since 20" in told and "--wait SECONDS" in told
    ramet("exec", "w", "--wait", "5", "true")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ramet show w@", ["w@head", "w@good", "w@2", "w@1"]),
        ("ramet show w:/a", ["w:/a"]),
        ("ramet ls w@1:/ho", ["w@1:/home/"]),
        ("ramet blame nosuch:/", []),
        ("ramet merge other ", ["other", "w"]),
        ("ramet diff w@1 ", ["head", "good", "2", "1", "other", "w"]),
        ("ramet diff w@1 w@h", ["w@head"]),
        ("ramet log w -- /a", ["/a"]),
        ("ramet revert w@1 /h", ["/home/"]),
        ("ramet merge w other --take /a", ["/a="]),
        ("ramet merge w other --take /a=", ["/a=ours", "/a=theirs"]),
        ("ramet undo w --agent a", ["ann"]),
        ("ramet agents nosuch --agent ", []),
    ],
)
def test_addresses_are_completed(filled: Ramet, line: str, found: list[str], tmp_path: Path) -> None:
    filled("tag", "w@1", "good")
    filled("create", "other")
    env = {"_RAMET_COMPLETE": "fish", "_RAMET_LINE": line, "RAMET_HOME": str(tmp_path / "home")}
    assert invoke([], env=env).stdout.split() == found
    typed = line.rpartition(" ")[2]
    begun = max(map(typed.rfind, "@:=")) + 1
    rest = [word[begun:] for word in found]
    assert invoke([], env={**env, "_RAMET_COMPLETE": "bash"}).stdout.split() == rest, "bash completes the last piece"


def test_the_shell_names_its_user_and_shows_who_wrote_what(ramet: Ramet) -> None:
    lines = ("echo one > /f", "!commit first", "cd /tmp", "!show ../f", "!show 1:/f", "!blame /f", "!log", "!log many")
    ramet("create", "w")
    told = ramet("shell", "w", stdin="\n".join(lines) + "\n", RAMET_AGENT="ada")
    assert told.splitlines()[1:3] == ["one", "one"]
    assert "w-1              ada            1 one" in told and "'many' is not a number" in told
    assert json.loads(ramet("history", "w", "--json"))[0]["agent"] == "ada"


def test_bash_gets_names_with_spaces_quoted(filled: Ramet, tmp_path: Path) -> None:
    filled("exec", "w", "echo 1 > '/my file'")
    env = {"_RAMET_COMPLETE": "bash", "RAMET_HOME": str(tmp_path / "home")}
    assert invoke([], env={**env, "_RAMET_LINE": "ramet show w:/my"}).stdout == "/my\\ file\n"
    assert invoke([], env={**env, "_RAMET_LINE": "ramet show w:/my\\ f"}).stdout == "/my\\ file\n"
    assert invoke([], env={**env, "_RAMET_LINE": "ramet show 'w:/my"}).stdout == "/my file\n"


def test_paths_need_no_slash_in_front(filled: Ramet) -> None:
    for paths in (("--", "b"), ("/b",), ("--", "./b", "nosuch")):
        assert filled("log", "w", "--oneline", *paths).startswith("w-2 bob")
        assert filled("diff", "w@head", "--name-only", *paths) == "/b\n"
    assert filled("diff", "w@1", "w@2", "--name-only", "--", "a", "b") == "/b\n"
    filled("revert", "w@1", "b")
    assert "is not in w-3" in filled("show", "w:/b", status=3)


def test_near_names_are_the_one_remedy(filled: Ramet) -> None:
    filled("create", "shop")
    assert filled("log", "shpo", status=3) == "ramet: no workspace 'shpo'\n       did you mean shop?\n"
    assert filled("diff", "w", "shpo", status=3).splitlines()[1:] == ["       did you mean shop?"]
    assert filled("diff", "w", "zzz", status=3).splitlines()[1:] == ["       see the log of 'w'"]


def test_a_rename_there_and_back_keeps_notes_once(filled: Ramet) -> None:
    filled("note", "w@2", "why so?")
    filled("rename", "w", "v")
    filled("rename", "v", "w")
    assert filled("log", "w", "--oneline").count("note: why so?") == 1
    told = filled("show", "w@1", status=3)
    assert "more than one revision '1'" in told and told.count(",") == 1, "ids that tell them apart"
    one = told.split("write one of ")[1].split(",")[0]
    assert filled("show", f"w@{one}").startswith("revision  w-1")


def test_a_timeout_says_how_long_it_was(filled: Ramet) -> None:
    assert filled("exec", "w", "sleep 9", "--timeout", "0.05", status=124) == "ramet: timed out after 0.05 s\n"


def test_directories_are_copied_with_and_without_r(filled: Ramet, tmp_path: Path) -> None:
    filled("exec", "w", "mkdir /d; echo 1 > /d/f")
    for number, flags in enumerate(((), ("-r",))):
        filled("cp", *flags, "w:/d", str(tmp_path / f"out{number}"))
        assert (tmp_path / f"out{number}" / "f").read_text() == "1\n"
