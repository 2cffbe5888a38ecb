"""Questions of `ask` rules reach the person: over HTTP, at the terminal, by MCP."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp_types import ElicitResult
from tests.apps.server.harness import TOKEN, run, serving

from ramet import Policy, Store, Workspace
from ramet.apps.cli.questions import prompt
from ramet.apps.mcp.server import mcp_server
from ramet.workspace.config import load_config
from ramet.workspace.policy import Request

W = "/v1/workspaces/shop"
TOKENS = {who: f"token-of-{who}-0123456789" for who in ("ada", "bot")}
CONFIG = "name: shop\npolicy: {ask: [{command: rm}]}\nsecrets: {KEY: {value: hidden-word}}\n"
SECONDS = 60


def config(folder: Path, text: str = CONFIG) -> Any:
    file = folder / "ramet.yaml"
    file.write_text(text.replace("{value: hidden-word}", "env:SHOP_KEY"))
    return load_config(file, variables={"SHOP_KEY": "hidden-word"})


async def pending(http: Any, **options: Any) -> list[dict[str, Any]]:
    while not (found := (await http.get(f"{W}/questions", **options)).json().get("questions")):  # noqa: ASYNC110
        await asyncio.sleep(0)
    return list(found)


def test_a_client_answers_a_command_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "hidden-word")

    async def test() -> None:
        store = Store(str(tmp_path / "store"))
        async with serving(store, configs={"shop": config(tmp_path)}) as (http, app):
            await http.post(f"{W}/exec", json={"command": "true"})
            assert (await http.get(f"{W}/questions")).json() == {"questions": []}
            body = {"command": "touch /a /b; rm /a $KEY; rm /b; ls /a /b"}
            running = asyncio.create_task(http.post(f"{W}/exec", json=body))
            (one,) = await pending(http)
            assert (one["kind"], one["name"], one["agent_id"]) == ("command", "rm", "default")
            assert one["subject"].startswith("rm /a ") and "hidden-word" not in one["subject"]
            assert (await http.post(f"{W}/questions/77", json={"allow": True})).status_code == 404
            assert (await http.post(f"{W}/questions/{one['number']}", json={"allow": "host"})).status_code == 400
            assert (await http.post(f"{W}/questions/{one['number']}", json={"allow": True})).status_code == 200
            (two,) = await pending(http)
            assert two["number"] != one["number"]
            await http.post(f"{W}/questions/{two['number']}", json={"allow": False})
            done = (await running).json()
            assert "/b\n" in done["stdout"] and "/a\n" not in done["stdout"].replace("cannot access", "")
            assert "a permission that was not given" in done["stderr"]
            kinds = [event.kind for event in app.api.events._ring if event.kind.startswith("question")]
            assert kinds == ["question.asked", "question.answered"] * 2

    run(test)


def test_a_question_that_nothing_answers_is_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "hidden-word")

    async def test() -> None:
        store = Store(str(tmp_path / "store"))
        async with serving(store, configs={"shop": config(tmp_path)}, answer_seconds=0.01) as (http, _):
            done = (await http.post(f"{W}/exec", json={"command": "touch /a; rm /a; ls /a"})).json()
            assert done["stdout"] == "/a\n" and "not given" in done["stderr"]
            assert (await http.get(f"{W}/questions")).json() == {"questions": []}

    run(test)


def test_a_principal_does_not_answer_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "hidden-word")

    async def test() -> None:
        store = Store(str(tmp_path / "store"))
        principals = {token: who for who, token in TOKENS.items()}
        async with serving(store, configs={"shop": config(tmp_path)}, principals=principals) as (http, _):

            def of(who: str) -> dict[str, str]:
                return {"authorization": f"Bearer {TOKENS.get(who, TOKEN)}"}

            async def ask(answers: str) -> Any:
                body = {"command": "touch /a; rm /a && echo gone"}
                running = asyncio.create_task(http.post(f"{W}/exec", json=body, headers=of("bot")))
                (one,) = await pending(http, headers=of("bot"))
                place = f"{W}/questions/{one['number']}"
                refused = await http.post(place, json={"allow": True}, headers=of("bot"))
                assert refused.status_code == 403 and "own command" in refused.json()["cause"]
                assert (await http.post(place, json={"allow": True}, headers=of(answers))).status_code == 200
                return (await running).json()["stdout"]

            assert await ask("ada") == "gone\n"
            assert await ask("the administrator") == "gone\n"

    run(test)


def test_a_client_of_mcp_is_asked() -> None:
    async def test() -> None:
        asked: list[str] = []
        says = ["once", "no"]

        async def answer(_: Any, params: Any) -> ElicitResult:
            asked.append(params.message)
            return ElicitResult(action="accept", content={"allow": says.pop(0)})

        for able in (True, False):
            policy = Policy.from_dict({"ask": [{"command": "rm"}]})
            async with Workspace(policy=policy) as ws:
                options: dict[str, Any] = {"elicitation_callback": answer} if able else {}
                # A back channel needs the protocol of sessions.
                async with Client(mcp_server(ws), mode="legacy", **options) as client:
                    done = await client.call_tool("bash", {"command": "touch /a /b; rm /a; rm /b; ls /a /b"})
                shown = done.structured_content["stdout"]["text"]
                assert shown == ("/b\n" if able else "/a\n/b\n")
        assert asked == ["Agent default asks to run: rm /a", "Agent default asks to run: rm /b"]

    run(test)


def test_the_terminal_asks(tmp_path: Path) -> None:
    file = tmp_path / "ramet.yaml"
    file.write_text("name: shop\nstore: " + str(tmp_path / "store") + "\npolicy: {ask: [{command: rm}]}\n")
    env = {**os.environ, "RAMET_AGENT": "coder"}
    ours, theirs = os.openpty()
    ramet = [sys.executable, "-m", "ramet.apps.cli", "exec", "--config", str(file), "shop"]
    # The input is a pipe: the question goes to the terminal all the same.
    command = [sys.executable, "-c", TERMINAL, *ramet, "cat > /a; cp /a /b; rm /a; rm /b; ls /a /b"]
    child = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""

    def expect(text: bytes) -> None:
        nonlocal seen
        deadline = time.monotonic() + SECONDS
        while text not in seen:
            assert select.select([ours], [], [], deadline - time.monotonic())[0], seen
            seen += os.read(ours, 4096)
        seen = seen.partition(text)[2]

    try:
        assert child.stdin is not None
        child.stdin.write(b"text")
        child.stdin.close()
        for path, said in ((b"/a", b"y\n"), (b"/b", b"\n")):
            expect(b"agent coder asks to run: rm " + path)
            expect(b"/N] ")
            os.write(ours, said)
        expect(b"\n/b")
        child.wait(SECONDS)
    finally:
        child.kill()
        child.wait()
        os.close(ours)


TERMINAL = """
import fcntl, os, subprocess, sys, termios
os.setsid()
fcntl.ioctl(2, termios.TIOCSCTTY, 0)
sys.exit(subprocess.call(sys.argv[1:]))
"""
"""Gives a command the terminal of its standard error as its own."""


def test_a_subject_cannot_draw_on_the_terminal() -> None:
    request = Request("command", "rm", "", "default", "coder")
    assert "\x1b" not in prompt(request, "rm \x1b[2J") and "rm ü" in prompt(request, "rm ü")
    assert "h=this host" in prompt(Request("network", "GET", "", "default", "coder"), "https://a.example/")
