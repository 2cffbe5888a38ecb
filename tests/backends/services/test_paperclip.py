"""PaperclipResource against a fake that is written after what others tell of the service; there is no description."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.service_fake import Call, Fake, Reply
from tests.support.service_shell import run_scripts

from ramet.backends import PaperclipConfig, PaperclipResource
from ramet.backends.services.paperclip import rows_of
from ramet.testing import READING, Check, run_check

TOKEN, REFRESH, NEWER = "id-hunter1", "refresh-hunter2", "id-hunter3"
FILES = {
    "/papers/PMC123": "meta.json\ncontent.lines\nsections/\nfigures/\n",
    "/papers/PMC123/sections": "Introduction.lines  Results and more.lines\n",
    "/papers/PMC123/figures": "",
    "/papers/PMC123/meta.json": '{"title": "Needles"}\n',
    "/papers/PMC123/content.lines": "L1: needle\n",
    "/papers/PMC123/sections/Introduction.lines": "L1: intro\n",
    "/papers/PMC123/sections/Results and more.lines": "L7: results\n",
}


class PaperclipFake(Fake):
    def __init__(self) -> None:
        super().__init__()
        self.token = TOKEN
        self.refreshed = 0
        self.commands: list[dict[str, str]] = []
        self.route("POST", "/api/cli/execute", self._execute)
        self.route("POST", "/api/oauth/token", self._refresh)

    def _execute(self, call: Call) -> Reply:
        if call.headers.get("authorization") != f"Bearer {self.token}":
            return Reply(401, {"error": "token expired"})
        given = call.json
        self.commands.append(given)
        match given["command"]:
            case "sql":
                found = "id | title\n---+---\nPMC123 | Needles | in hay\n"
                return Reply(200, {"output": found if "2024-03-01" in given["raw"] else "id | title\n"})
            case "ls" | "cat":
                (path,) = shlex.split(given["raw"])
                known = FILES.get(path.rstrip("/"))
                return Reply(200, {"output": known or "", "error": None if known is not None else "No such file"})
            case _:
                return Reply(200, {"output": f"ran {given['command']}: {given['raw']}\nsecond line\n"})

    def _refresh(self, call: Call) -> Reply:
        assert call.form == {"grant_type": "refresh_token", "refresh_token": REFRESH}
        self.refreshed += 1
        self.token = NEWER
        return Reply(200, {"access_token": NEWER, "expires_in": 3600})


@pytest.fixture
def paperclip() -> Iterator[PaperclipFake]:
    with PaperclipFake() as running:
        yield running


def mounted(paperclip: PaperclipFake, folder: Path, **login: Any) -> PaperclipResource:
    file = folder / "credentials.json"
    file.write_text(json.dumps({"id_token": TOKEN, "id_token_expires_at": 4e9, "refresh_token": REFRESH, **login}))
    return PaperclipResource(PaperclipConfig(base_url=paperclip.base, private=True, credentials_path=str(file)))


def shell(resource: PaperclipResource, *scripts: str) -> list[tuple[str, str, int]]:
    return run_scripts({"/p": resource}, scripts)


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
def test_the_reading_suite(paperclip: PaperclipFake, tmp_path: Path, check: Check) -> None:
    run_check(check, lambda: mounted(paperclip, tmp_path))


def test_papers_are_directories_by_month(paperclip: PaperclipFake, tmp_path: Path) -> None:
    found = shell(
        mounted(paperclip, tmp_path), "ls /p; ls /p/pmc | head -1; ls /p/pmc/2024 | wc -l",
        "ls /p/pmc/2024/03 /p/pmc/2024/03/*",
        "jq -r .title /p/pmc/2024/03/PMC123/meta.json; cat /p/pmc/2024/03/PMC123/sections/*",
        "grep -rl needle /p/pmc/2024/03",
        "ls /p/pmc/2024/04; cat /p/pmc/2024/03/PMC9/meta.json", "echo x > /p/pmc/2024/03/PMC123/meta.json",
    )  # fmt: skip
    assert found[0][0].split() == ["README.md", "biorxiv", "medrxiv", "pmc", "2020", "12"]
    assert found[1][0].split() == [
        "/p/pmc/2024/03:", "PMC123", "/p/pmc/2024/03/PMC123:", "content.lines", "figures", "meta.json", "sections",
    ]  # fmt: skip
    assert found[2][0] == "Needles\nL1: intro\nL7: results\n"
    assert found[3][0] == "/p/pmc/2024/03/PMC123/content.lines\n"
    assert "No such file" in found[4][1] and found[5][2] == 1


def test_a_command_is_asked_by_query(paperclip: PaperclipFake, tmp_path: Path) -> None:
    found = shell(mounted(paperclip, tmp_path), "query -n 1 /p 'search CRISPR off-target'")
    assert found[0] == ("ran search: CRISPR off-target\n", "", 0)


@pytest.mark.parametrize("login", [{"id_token_expires_at": 1}, {"id_token": "ended"}])
def test_a_login_that_has_ended_is_renewed_once(
    paperclip: PaperclipFake, tmp_path: Path, login: dict[str, Any]
) -> None:
    found = shell(mounted(paperclip, tmp_path, **login), "cat /p/pmc/2024/03/PMC123/content.lines")
    assert found[0][0] == "L1: needle\n" and paperclip.refreshed == 1


def test_without_a_login_it_says_what_to_do(paperclip: PaperclipFake, tmp_path: Path) -> None:
    config = PaperclipConfig(base_url=paperclip.base, private=True, credentials_path=str(tmp_path / "none"))
    found = shell(PaperclipResource(config), "ls /p/pmc/2024/03", "cat /p/README.md | head -1")
    assert "run `paperclip login`" in found[0][1] and found[0][2] != 0
    assert found[1][0] == "# Paperclip: papers of biology and medicine\n"


def test_no_token_is_saved_and_a_snapshot_needs_no_override(paperclip: PaperclipFake, tmp_path: Path) -> None:
    resource = mounted(paperclip, tmp_path)
    found = shell(resource, "ls /p/pmc/2024/03; query /p 'fail'")
    seen = repr(resource) + repr(resource.describe()) + repr(found)
    assert not any(secret in seen for secret in (TOKEN, REFRESH, NEWER))
    assert resource.describe().needs_override and not PaperclipConfig().describe().needs_override


@pytest.mark.parametrize(
    "output",
    [
        "id | title\n---|---\na | b\n",
        "| id | title |\n|----|----|\n| a | b |\n",
        "id\ttitle\na\tb\n",
        '[{"id": "a", "title": "b"}]',
    ],
)
def test_tables_of_several_kinds_are_read(output: str) -> None:
    assert rows_of(output) == [{"id": "a", "title": "b"}]
