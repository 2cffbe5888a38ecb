"""What our fakes answer, read by clients of others: Langfuse's own, and models of Telegram's and of Discord's API.

Those in Python live in an environment of their own, `.venv-clients`, which `make test-emulators` makes: they need other
versions of the packages that we test with.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.support import discord_fake
from tests.support.descriptions import checked_ports
from tests.support.discord_fake import DiscordFake
from tests.support.langfuse_fake import PUBLIC, SECRET, LangfuseFake
from tests.support.telegram_fake import TOKEN, TelegramFake

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv-clients" / "bin" / "python"
SPEC = ROOT / ".venv-emulators" / "node_modules" / "discord-api-spec"
installed = pytest.mark.skipif(not PYTHON.exists(), reason="no .venv-clients; `make test-emulators` makes it")

LANGFUSE = """
import datetime, json, sys
from langfuse.api.client import LangfuseAPI

base, public, secret = sys.argv[1:]
api = LangfuseAPI(base_url=base, username=public, password=secret)
ever = datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone.utc)
made = api.prompts.create(request={"type": "text", "name": "new", "prompt": "Hi", "labels": ["staging"]})
item = api.dataset_items.create(dataset_name="qa/easy", input={"q": 1})
print(json.dumps({
    "observations": [one.id for one in api.observations.get_many(trace_id="t1").data],
    "roots": [one.trace_id for one in api.observations.get_many(is_root_observation=True, limit=1).data],
    "prompts": [one.name for one in api.prompts.list().data],
    "prompt": api.prompts.get("folder/greet", version=1).prompt,
    "labelled": api.prompts.get("new", label="staging").version,
    "datasets": [one.name for one in api.datasets.list().data],
    "dataset": api.datasets.get("qa/easy").id,
    "items": [one.id for one in api.dataset_items.list(dataset_name="qa/easy").data],
    "made": [made.version, item.id],
    "experiments": [one.name for one in api.experiments.list(from_start_time=ever).data],
    "scores": [one.value for one in api.scores.get_many().data],
}))
"""
TELEGRAM = """
import json, sys
from aiogram.types import Chat, File, Message, Update, User

kinds = {"update": Update, "message": Message, "user": User, "file": File}
for kind, found in json.load(sys.stdin):
    # A model ignores what it does not know; here that is an error.
    model = kinds[kind].model_validate(found)
    given = json.loads(model.model_dump_json(exclude_unset=True, by_alias=True))
    unknown = set(found) - set(given)
    assert not unknown, (kind, unknown)
print("valid")
"""


DISCORD = """
import * as spec from 'discord-api-spec/zod';
import fs from 'node:fs';
for (const [name, value] of JSON.parse(fs.readFileSync(0))) {
  const found = spec[name + 'Schema'].safeParse(value);
  if (!found.success) console.log(name, found.error.issues.map(issue => issue.path.join('.')).join(' '));
}
"""


def run(script: str, *words: str, given: str = "") -> str:
    result = subprocess.run(
        [PYTHON, "-c", script, *words], input=given, capture_output=True, text=True, timeout=120,
        env={"PATH": os.environ["PATH"], "NO_PROXY": "*"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout


@installed
def test_the_client_of_langfuse_reads_our_server() -> None:
    with LangfuseFake(4) as server:
        server.trace("t1", "Ask", session="s")
        server.prompt("folder/greet", "Hello", "production")
        found = json.loads(run(LANGFUSE, server.base, PUBLIC, SECRET))
    assert found == {
        "observations": ["t1-b", "t1-a"], "roots": ["t1"], "prompts": ["folder/greet", "new"], "prompt": "Hello",
        "labelled": 1, "datasets": ["qa/easy"], "dataset": "d1", "items": ["i0"], "made": [1, "i0"],
        "experiments": ["first run"], "scores": [0.5],
    }  # fmt: skip


@installed
def test_the_models_of_aiogram_take_what_our_server_says() -> None:
    with TelegramFake() as server:
        checked_ports[server.port] = None
        first = server.say(-1001, 1777799642, "deploy failed")
        document = {"file_id": "F1", "file_unique_id": "U1", "file_name": "graph.png", "file_size": 3}
        server.say(-1001, 1777799700, "", "bob", caption="two", reply_to_message=first, document=document)
        server.say(-1002, 1777799642, "news")
        server.say(7, 1777799642, "psst")
        server.tell("edited_message", {**first, "text": "twice", "edit_date": 1777799650})

        def call(method: str, **given: Any) -> Any:
            answer = httpx2.post(f"{server.base}/bot{TOKEN}/{method}", json=given)
            assert answer.json()["ok"] is True
            return answer.json()["result"]

        said = [["update", one] for one in call("getUpdates", limit=100)]
        said += [["message", call("sendMessage", chat_id=-1001, text="x")], ["user", call("getMe")]]
        said += [["file", call("getFile", file_id="F1")]]
    assert run(TELEGRAM, given=json.dumps(said)) == "valid\n"


@pytest.mark.skipif(not SPEC.exists(), reason="no discord-api-spec; `make test-emulators` installs it")
def test_the_types_of_discord_take_what_our_server_says() -> None:
    with DiscordFake() as server:
        checked_ports[server.port] = None
        bob, ops = server.users["bob"], "222222222"
        first = server.say(ops, 1777799642.0, "deploy failed", mentions=[bob])
        file = server.attach("graph.png", "1")
        server.say(ops, 1777799702.0, "two", "bob", referenced_message=first, attachments=[file])
        headers = {"Authorization": f"Bot {discord_fake.TOKEN}", "User-Agent": "DiscordBot (ramet, 0.1)"}

        def get(address: str) -> Any:
            answer = httpx2.get(f"{server.base}/api/v10{address}", headers=headers)
            assert answer.status_code == 200
            return answer.json()

        guild = f"/guilds/{discord_fake.GUILD}"
        said = [["MessageResponse", one] for one in get(f"/channels/{ops}/messages?limit=100&before={1 << 62}")]
        said += [["GuildChannelResponse", one] for one in get(f"{guild}/channels")]
        said += [["GuildMemberResponse", one] for one in get(f"{guild}/members?limit=1000&after=0")]
        said += [["MyGuildResponse", one] for one in get("/users/@me/guilds")]
        said += [["ThreadsResponse", get(f"{guild}/threads/active")]]
        said += [["GuildSearchResponse", get(f"{guild}/messages/search?content=deploy&limit=25&offset=0")]]
    assert len(said) == 11
    result = subprocess.run(
        ["node", "--input-type=module", "-e", DISCORD], input=json.dumps(said), capture_output=True, text=True,
        timeout=120, cwd=SPEC.parents[1],
    )  # fmt: skip
    assert (result.stdout, result.stderr) == ("", "")
