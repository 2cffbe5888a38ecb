"""History, observer, secrets and policy: everything is seen once, nothing secret is seen at all."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile

import pytest

from ramet import DiskResource, RametError, RAMResource, Workspace
from ramet.workspace.policy import Policy, Request, Verdict
from ramet.workspace.sync import SyncWorkspace

SECRET = "s3cr3t-T0KEN-value"


def test_every_command_is_recorded_once() -> None:
    async def act() -> None:
        ws = Workspace({"/m": RAMResource()})
        await ws.execute("echo hello > /m/f", agent_id="writer")
        await ws.execute("cat /m/f; echo oops >&2; exit 3", session_id="default")
        first, second = ws.history
        assert (first.command, first.agent_id, first.exit_code, first.bytes_written) == (
            "echo hello > /m/f", "writer", 0, {"/m": 6})  # fmt: skip
        assert (second.exit_code, second.stdout, second.stderr, second.bytes_read) == (
            3,
            b"hello\n",
            b"oops\n",
            {"/m": 6},
        )
        assert second.number == 2 and second.duration >= 0
        verbs = [(op.verb, op.path, op.bytes, op.agent_id) for op in ws.history.operations() if op.bytes]
        assert verbs == [("write", "/m/f", 6, "writer"), ("read", "/m/f", 6, "default")]

    asyncio.run(act())


def test_the_observer_is_files() -> None:
    async def act() -> None:
        ws = Workspace()
        ws.create_session("agent-1")
        await ws.execute("echo a; echo b", session_id="agent-1")
        await ws.execute("false", session_id="agent-1")
        assert (await ws.execute("ls /.sessions; ls /.sessions/agent-1")).text == (
            "agent-1\ndefault\ncommands.jsonl\noperations.jsonl\n"
        )
        rows = (await ws.execute("cat /.sessions/agent-1/commands.jsonl")).text.splitlines()
        assert [json.loads(row)["exit_code"] for row in rows] == [0, 1]
        assert (await ws.execute("grep -c '' /.sessions/agent-1/commands.jsonl")).text == "2\n"
        assert "Read-only" in (await ws.execute("echo x > /.sessions/agent-1/commands.jsonl")).error_text
        assert (await ws.execute("ls /; find / -name '*.jsonl'")).text == "home\ntmp\n"

    asyncio.run(act())


def test_the_history_is_a_ring() -> None:
    async def act() -> None:
        ws = Workspace()
        ws.history._records.most = 3
        for i in range(5):
            await ws.execute(f"echo {i}")
        assert [record.number for record in ws.history] == [3, 4, 5]
        await ws.execute("seq 100000")
        last = list(ws.history)[-1]
        assert len(last.stdout) == 4096 and last.stdout_bytes == 588895

    asyncio.run(act())


def test_no_secret_is_seen_anywhere(tmp_path: object) -> None:
    async def act() -> None:
        ws = Workspace({"/d": DiskResource(f"{tmp_path}/root", create=True)}, secrets={"API_TOKEN": SECRET})
        assert (await ws.execute("echo $API_TOKEN")).text == f"{SECRET}\n", "the command itself may use it"
        await ws.execute(f"echo using {SECRET} >&2; x=$API_TOKEN; f() {{ echo {SECRET}; }}; alias a='{SECRET}'")
        await ws.execute("echo http://me:hunter22@host/x")
        await ws.execute(f"cat /{SECRET}; touch /{SECRET}; rm /{SECRET}")
        await ws.execute("trap 'curl -H $API_TOKEN' EXIT; declare -A m=([k]=$API_TOKEN); arr=($API_TOKEN)")
        await ws.execute("sleep 5 & true $API_TOKEN & wait %2")
        seen = [repr(ws), repr(ws.secrets), ws._repr_html_(), repr(list(ws.history)), repr(ws.history.operations())]
        seen.append((await ws.execute("cat /.sessions/default/*")).text)
        buffer = io.BytesIO()
        ws.snapshot(buffer)
        seen.append(buffer.getvalue().decode("latin-1"))
        assert all(SECRET not in text and "hunter22" not in text for text in seen)
        buffer.seek(0)
        again = Workspace.load(buffer)
        assert again.restored.problems == [
            "session default: function f could not be restored",  # its text had the secret in it
            "session default: secret variables were not saved: API_TOKEN",
        ]
        buffer.seek(0)
        again = Workspace.load(buffer, secrets={"API_TOKEN": "fresh-one"})
        assert (await again.execute("echo $API_TOKEN")).text == "fresh-one\n"
        with tarfile.open(fileobj=io.BytesIO(buffer.getvalue())) as tar:
            assert "<REDACTED>" in tar.extractfile("manifest.json").read().decode()  # type: ignore[union-attr]
        await ws.close()

    asyncio.run(act())


REFUSED = [
    "cat /keys/id", "cat < /keys/id", "ls /keys", "cp /keys/id /x", "echo x > /log/a", "$(echo rm) /x", "eval rm /x",
    "find / -maxdepth 0 -exec rm {} +", "echo /x | xargs rm", "bash -c 'rm /x'", "env rm /x", "timeout 5 rm /x",
    "command rm /x", "f() { rm /x; }; f", "(rm /x)", "rm /x | cat; exit ${PIPESTATUS[0]}", "/bin/rm /x", "\\rm /x",
]  # fmt: skip


def test_policy_denies_with_a_reason_that_can_be_read() -> None:
    async def act() -> None:
        ws = Workspace(policy={
            "deny": [
                {"command": "rm", "reason": "nothing is deleted here"},
                {"path": "/keys/**"},
                {"path": "/log/**", "access": "write", "reason": "the log is append-only"},
                {"command": "git push *"},
            ],
        })  # fmt: skip
        await ws.fs.mkdir(_p("/keys"))
        await ws.fs.write(_p("/keys/id"), b"key")
        await ws.fs.mkdir(_p("/log"))
        await ws.fs.write(_p("/log/a"), b"entry\n")
        result = await ws.execute("rm /x; echo still running")
        assert "Permission denied: nothing is deleted here" in result.error_text and result.text == "still running\n"
        for command in REFUSED:
            result = await ws.execute(command)
            assert result.exit_code != 0 and "ermission denied" in result.error_text, (command, result)
        assert (await ws.execute("cat /log/a")).text == "entry\n"
        with pytest.raises(PermissionError):
            await ws.dispatch("read", "/keys/id")

    asyncio.run(act())


def test_policy_asks_and_waits_for_the_answer() -> None:
    async def act() -> None:
        asked: list[Request] = []

        async def answer(request: Request) -> bool:
            asked.append(request)
            return request.agent_id == "trusted"

        policy = Policy.from_dict({"ask": [{"command": "deploy"}]})
        policy.answer = answer
        ws = Workspace(policy=policy)
        ws.command("deploy")(lambda proc: "deployed")
        assert (await ws.execute("deploy now", agent_id="trusted")).text == "deployed\n"
        assert (await ws.execute("deploy now", agent_id="other")).exit_code == 126
        assert [r.subject for r in asked] == ["deploy now", "deploy now"]

        policy.answer, policy.interactive = None, True
        task = asyncio.create_task(ws.execute("deploy later"))
        for _ in range(50):
            await asyncio.sleep(0)
        (number,) = policy.pending
        policy.decide(number, True)
        assert (await task).text == "deployed\n"
        with pytest.raises(RametError, match="no question"):
            policy.decide(99, True)

    asyncio.run(act())


def test_policy_may_allow_only_what_it_names() -> None:
    async def act() -> None:
        plain = {"default": "deny", "allow": [{"command": "echo"}, {"command": "cat"}, {"path": "/ok/**"}]}
        ws = Workspace(policy=plain)
        await ws.fs.mkdir(_p("/ok"))
        assert (await ws.execute("echo fine > /ok/f; cat /ok/f")).text == "fine\n"
        assert (await ws.execute("ls /ok")).exit_code == 126
        assert (await ws.execute("echo no > /other")).exit_code != 0
        for rule in ({"colour": "red"}, "/private", 3):
            with pytest.raises(RametError, match="not understood"):
                Policy.from_dict({"deny": [rule]})

    asyncio.run(act())


def test_policy_hides() -> None:
    async def act() -> None:
        plain = {"hide": [{"path": "/keys/**"}, {"path": "/notes.txt", "agent": "guest"}]}
        ws = Workspace(policy=plain)
        for path in ("/keys", "/open"):
            await ws.fs.mkdir(_p(path))
        for path in ("/keys/id", "/open/f", "/notes.txt"):
            await ws.fs.write(_p(path), b"x")
        assert (await ws.execute("ls /; find / -type f | sort; cat /keys/id 2>&1; echo /k*")).text == (
            "home\nnotes.txt\nopen\ntmp\n/notes.txt\n/open/f\ncat: /keys/id: No such file or directory\n/k*\n"
        )
        assert (await ws.execute("ls /", agent_id="guest")).text == "home\nopen\ntmp\n"

    asyncio.run(act())


@pytest.mark.parametrize(
    "way",
    [
        "ln -s /keys /l; cat /l/id", "ln -s /keys/id /l; cat /l", "ln -s / /l; cat /l/keys/id; ls /l | grep keys",
        "ln -s /keys /l; cp -r /l /m; cat /m/id", "mv /top /t; cat /t/keys/id", "ln /top/keys/id /i; cat /i",
        "ln -s /fixed /l; echo lost > /l/f", "ln /fixed/f /g; echo lost > /g", "mv /fixed /h; echo lost > /h/f",
        "ln -s /fixed/f /l; truncate -s 0 /l; sed -i s/kept/lost/ /l", "ln -s /keys /l; tar cf - /l/id | grep -a mine",
        "ln -s /keys /l; cd /l; cat id", "ln -s /keys/id /l; head -n 1 < /l",
        "ln -s /keys /l; find -L /l; grep -r mine /l",
    ],
)  # fmt: skip
def test_no_link_or_move_leads_around_a_policy(way: str) -> None:
    low = {"session": "low"}

    async def act() -> None:
        plain = {
            "hide": [{"path": "/keys/**", **low}, {"path": "/top/keys/**", **low}],
            "deny": [{"path": "/fixed/**", "access": "write", **low}],
        }
        ws = Workspace(policy=plain)
        await ws.execute(
            "mkdir -p /keys /top/keys /fixed; echo mine | tee /keys/id > /top/keys/id; echo kept > /fixed/f"
        )
        ws.create_session("low")
        result = await ws.execute(way, session_id="low")
        assert "mine" not in result.text and "keys\n" not in result.text, result
        assert (await ws.execute("cat /fixed/f")).text == "kept\n"

    asyncio.run(act())


def test_the_points_of_native_programs() -> None:
    policy = Policy.from_dict({
        "hide": [{"path": "/a/keys/**", "session": "low"}, {"path": "**/.env", "native": False}, {"path": "/s3/*/x"}],
        "deny": [{"path": "/b/f", "access": "write", "agent": "guest"}], "allow": [{"path": "/a/keys/public/**"}],
    })  # fmt: skip

    def points(session: str | None, agent: str = "") -> dict[str, str]:
        return {one.path: str(one.reach) for one in policy.points(session, agent, ["/", "/b"], ["/s3"])}

    assert points("other") == {}
    low = {"/": "write", "/a": "write", "/b": "write", "/s3": "write", "/a/keys": "hidden"}
    assert points("low") == low
    assert points("other", "guest") == {"/": "write", "/b": "write", "/s3": "write", "/b/f": "read"}
    assert points(None) == {**low, "/b/f": "read"}, "without a session every rule counts"
    policy.default = Verdict.DENY
    assert points("other")["/"] == "denied" and points("other")["/a/keys/public"] == "write"


def test_policy_limits() -> None:
    async def act() -> None:
        plain = {"limit": [{"command": "date", "count": 2}, {"path": "/big", "bytes": 150, "reason": "enough"}]}
        ws = Workspace(policy=plain)
        await ws.fs.write(_p("/big"), b"x" * 100)
        results = [(await ws.execute("date > /dev/null; cat /big | wc -c")).text for _ in range(3)]
        assert results == ["100\n", "100\n", "0\n"]
        last = list(ws.history)[-1]
        assert b"date: Permission denied: its limit is used up (2)" in last.stderr
        assert b"cat: /big: Permission denied: enough" in last.stderr

    asyncio.run(act())


def test_the_network_is_off() -> None:
    result = SyncWorkspace().execute("curl http://127.0.0.1:9/")
    assert result.exit_code != 0 and b"network" in result.stderr


def test_the_synchronous_twin_works_inside_a_running_loop() -> None:
    async def notebook() -> str:
        with SyncWorkspace({"/m": RAMResource()}) as ws:
            ws.execute("echo one > /m/f; x=5")
            twin = ws.copy()
            twin.execute("echo two > /m/f")
            text = ws.execute("cat /m/f; echo $x").text + twin.execute("cat /m/f").text
            assert ws.dispatch("read", "/m/f") == b"one\n"
            twin.close()
            assert "RAMResource" in repr(ws) and "<table>" in ws._repr_html_()
        with pytest.raises(RuntimeError, match="closed"):
            ws.execute("echo")
        return text

    assert asyncio.run(notebook()) == "one\n5\ntwo\n"


def _p(text: str):  # type: ignore[no-untyped-def]
    from ramet.core.paths import parse

    return parse(text)
