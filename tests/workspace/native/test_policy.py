"""Path rules of a policy, as native programs meet them: what they cannot read, write, move away or get around."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.workspace.native.conftest import NATIVE, SECONDS, need, reachable

from ramet.backends.local.disk import DiskResource
from ramet.core.errors import RametError
from ramet.native.options import Native
from ramet.workspace.policy import Policy
from ramet.workspace.result import IOResult
from ramet.workspace.workspace import Workspace

SECRET = f"secret-{secrets.token_hex(16)}"
LOW = {"session": "low"}
RULES = {
    "hide": [{"path": "/secrets/**", **LOW}, {"path": "/work/.env", **LOW}],
    "deny": [{"path": "/vault/**", **LOW}, {"path": "/config/deep/**", "access": "write", **LOW}],
}
FILES = f"""mkdir -p /secrets/deep /vault /config/deep/er /work
echo {SECRET} | tee /secrets/key /secrets/deep/key /vault/key > /work/.env
echo kept > /config/deep/er/f; echo open > /work/f"""


async def tries(ws: Workspace, texts: Sequence[str], session: str = "low") -> list[IOResult]:
    return [await ws.execute(text, session_id=session, native=True, timeout=SECONDS) for text in texts]


def confined(texts: Sequence[str], rules: Mapping[str, Any] = RULES, files: str = FILES) -> list[IOResult]:
    """Run texts as a session that the rules are about; the files are those of another session."""

    async def steps() -> list[IOResult]:
        async with Workspace(native=NATIVE, policy=rules) as ws:
            made = await ws.execute(files)
            assert made.exit_code == 0, made
            ws.create_session("low")
            return await tries(ws, texts)

    return asyncio.run(steps())


READS = [
    "cat /secrets/key", "cat /secrets/deep/key", "cat /vault/key", "cat /work/.env", "cat /work/../secrets/key",
    "cat /proc/self/root/secrets/key", "for p in /proc/[0-9]*; do cat $p/root/secrets/key $p/cwd/secrets/key; done",
    "ln -s /secrets /tmp/l; cat /tmp/l/key", "ln -s / /tmp/l; cat /tmp/l/vault/key", "ln /work/.env /tmp/e; cat /tmp/e",
    "ln /secrets/key /tmp/k; cat /tmp/k", "mv /secrets /tmp/s; cat /tmp/s/key", "mv /work /work2; cat /work2/.env",
    "mv /vault/key /tmp; cat /tmp/key", "cp -a /vault /tmp/v; cat /tmp/v/key", "tar cf - / 2>&1",
    "chmod -R 777 /vault /secrets; cat /vault/key", "rm -rf /secrets /vault /work; cat /secrets/key",
    "grep -rs secret- / --include=key --include=.env",
    "cd /vault && cat key", "umount /secrets; cat /secrets/key", "mount --bind / /tmp; cat /tmp/secrets/key",
    "unshare -Urm umount -l /secrets; cat /secrets/key", "nsenter -t 1 -m cat /secrets/key",
    "for fd in /proc/*/fd/*; do cat $fd/secrets/key; done", "cat < /vault/key", "bash -p -c 'cat /vault/key'",
]  # fmt: skip


@pytest.mark.parametrize("way", READS)
def test_what_is_hidden_or_denied_cannot_be_read(native: Native, way: str) -> None:
    (found,) = confined([f"{{ {way}; }} < /dev/null"])
    assert SECRET.encode() not in found.stdout + found.stderr


WRITES = [
    "echo lost > /config/deep/er/f", "rm -f /config/deep/er/f", "mv /config/deep /config/other", "rm -rf /config",
    "mv /config /tmp/c; echo lost > /tmp/c/deep/er/f", "ln /config/deep/er/f /tmp/h; echo lost > /tmp/h",
    "echo lost > /config/deep/er/new", "mkdir /config/deep/new", "truncate -s 0 /config/deep/er/f",
    "chmod 777 /config/deep/er/f; echo lost > /config/deep/er/f", "touch -d 2000-01-01 /config/deep/er/f",
    "ln -s /config/deep /tmp/l; echo lost > /tmp/l/er/f", "mv /tmp/x /config/deep/x",
    "mount -o remount,rw /config/deep; echo lost > /config/deep/er/f",
    "exec 3<> /config/deep/er/f; echo lost >&3", "echo lost > /proc/self/root/config/deep/er/f",
    "mv /config /tmp/c; mkdir -p /config/deep; echo lost > /config/deep/f",
]  # fmt: skip


@pytest.mark.parametrize("way", WRITES)
def test_what_is_read_only_cannot_be_changed(native: Native, way: str) -> None:
    look = "find /config | sort; cat /config/deep/er/f; stat -c %Y-%a /config/deep/er/f"

    async def steps() -> tuple[IOResult, IOResult, IOResult]:
        async with Workspace(native=NATIVE, policy=RULES) as ws:
            await ws.execute(FILES)
            ws.create_session("low")
            before = await ws.execute(look)
            tried = (await tries(ws, [f"{{ {way}; }} 2>&1"]))[0]
            return before, tried, await ws.execute(look)

    before, tried, after = asyncio.run(steps())
    assert after.stdout == before.stdout, tried


def test_the_other_session_has_all_of_it(native: Native) -> None:
    async def steps() -> tuple[IOResult, IOResult]:
        async with Workspace(native=NATIVE, policy=RULES) as ws:
            await ws.execute(FILES)
            ws.create_session("low")
            first = (await tries(ws, ["cat /work/f; echo mine > /work/g; ls -a /secrets; cat /config/deep/er/f"]))[0]
            both = "cat /secrets/key /vault/key /work/.env /work/g; echo new > /config/deep/er/f; cat /config/deep/er/f"
            return first, (await tries(ws, [both], "default"))[0]

    low, high = asyncio.run(steps())
    assert low.stdout == b"open\n.\n..\nkept\n", low
    assert high.stdout == f"{SECRET}\n{SECRET}\n{SECRET}\nmine\nnew\n".encode(), high


def test_a_rule_that_is_replaced_below_holds_for_the_next_program(native: Native) -> None:
    """Another session, which may, exchanges the file and the directory under the mounts."""
    again = f"echo {SECRET} > /work/new; mv /work/new /work/.env; rm -r /secrets; mkdir /secrets"
    again += f"; echo {SECRET} > /secrets/key"

    async def steps() -> list[IOResult]:
        async with Workspace(native=NATIVE, policy=RULES) as ws:
            await ws.execute(FILES)
            ws.create_session("low")
            first = await tries(ws, ["cat /work/.env /secrets/key"])
            await ws.execute(again)
            second = await tries(ws, ["cat /work/.env /secrets/key"])
            await ws.execute("mv /work /old; mkdir /work; echo open > /work/.env; chmod 644 /work/.env", native=True)
            return first + second + await tries(ws, ["cat /work/.env; cat /secrets/key; echo end"])

    found = asyncio.run(steps())
    assert not any(SECRET.encode() in one.stdout for one in found), found
    assert found[-1].stdout == b"end\n"


@pytest.mark.parametrize(
    "way",
    [
        "echo {} > /work/.env", "cp /work/new /work/.env", "mv /work/new /work/.env", "sed -i s/^.*/{}/ /work/.env",
        "tee /work/.env < /work/new", "dd if=/work/new of=/work/.env", "ln -s /work /l; cp /l/new /l/.env",
        "head /work/new | sort -o /work/.env",  "cp -f /work/new /work/.env",
    ],
)  # fmt: skip
def test_a_running_program_does_not_see_what_commands_write_to_a_hidden_file(native: Native, way: str) -> None:
    """The mount that covers the file must stay on it."""
    wait = "(while ! test -e /go; do sleep 0.01; done; cat /work/.env > /got; touch /done) > /dev/null 2>&1 &"

    async def steps() -> tuple[IOResult, IOResult]:
        async with Workspace(native=NATIVE, policy=RULES) as ws:
            await ws.execute("mkdir -p /work; echo before > /work/.env")
            ws.create_session("low")
            await tries(ws, [wait])
            text = f"echo {SECRET} > /work/new; {way.format(SECRET)}; cat /work/.env; touch /go"
            done = await ws.execute(text)
            await ws.execute("while ! test -e /done; do sleep 0.01; done", timeout=SECONDS)
            return done, await ws.execute("cat /got")

    done, got = asyncio.run(steps())
    assert SECRET.encode() in done.stdout and got.stdout == b"", (done, got)


def test_a_directory_that_is_not_there_yet_is_covered(native: Native) -> None:
    rules = {"hide": [{"path": "/later/deep/**", **LOW}], "deny": [{"path": "/fixed/**", "access": "write", **LOW}]}

    async def steps() -> list[IOResult]:
        async with Workspace(native=NATIVE, policy=rules) as ws:
            ws.create_session("low")
            first = await tries(ws, ["echo x > /later/deep/key; mkdir /fixed/x; ls /later /fixed"])
            await ws.execute(f"echo {SECRET} > /later/deep/key")
            return first + await tries(ws, ["cat /later/deep/key; ls /later/deep /fixed"])

    first, second = asyncio.run(steps())
    assert first.stdout == b"/fixed:\n\n/later:\ndeep\n" and first.stderr.count(b"Read-only") == 2, first
    assert SECRET.encode() not in second.stdout


def test_a_file_that_is_not_there_yet_makes_programs_refuse(native: Native) -> None:
    (found,) = confined(["true"], {"hide": [{"path": "/work/later"}]}, "mkdir /work")
    assert found.exit_code == 126 and b"/work/later" in found.stderr and b"native: false" in found.stderr, found


def test_a_link_in_place_of_a_directory_makes_programs_refuse(native: Native) -> None:
    (found,) = confined(["cat /secrets/key"], files=FILES + "; mv /secrets /real; ln -s /real /secrets")
    assert found.exit_code == 126 and b"symbolic link" in found.stderr and found.stdout == b""


@pytest.mark.parametrize(
    "rules",
    [
        {"hide": [{"path": "**/.env"}]}, {"deny": [{"path": "/keys/*.pem"}]},
        {"ask": [{"path": "/a?", "access": "write"}]},
        {"limit": [{"path": "/data/**", "bytes": 10}]}, {"default": "deny", "allow": [{"path": "/work/*.py"}]},
    ],
)  # fmt: skip
def test_a_rule_that_no_mount_can_hold_is_refused_when_it_is_opened(native: Native, rules: dict[str, Any]) -> None:
    with pytest.raises(RametError, match="cannot run native programs: the policy rule") as caught:
        Workspace(native=native, policy=rules)
    assert "native: false" in caught.value.remediation


def test_a_rule_may_be_for_commands_in_process_only(native: Native) -> None:
    rules = {"hide": [{"path": "**/.env", "native": False}], "deny": [{"path": "/vault/**"}]}

    async def steps() -> tuple[IOResult, IOResult]:
        async with Workspace(native=NATIVE, policy=rules) as ws:
            (made,) = await tries(ws, ["mkdir /d; echo open > /d/.env; cat /d/.env; ls /vault"], "default")
            return made, await ws.execute("cat /d/.env")

    natively, inside = asyncio.run(steps())
    assert natively.stdout == b"open\n" and b"Permission denied" in natively.stderr
    assert inside.stdout == b""


def test_a_default_of_deny_leaves_what_is_allowed(native: Native) -> None:
    rules = {
        "default": "deny",
        "allow": [{"command": "**"}, {"path": "/work/**"}, {"path": "/data/in/f", "access": "read"}],
    }
    files = "mkdir -p /work/sub /data/in; echo open > /work/sub/f; echo given > /data/in/f; echo kept > /data/in/g"

    async def steps() -> IOResult:
        policy = Policy.from_dict(rules)
        async with Workspace(native=NATIVE, policy=policy) as ws:
            policy.rules, rest = (), policy.rules
            policy.default, default = type(policy.default)("allow"), policy.default
            await ws.execute(files, native=True, timeout=SECONDS)
            policy.rules, policy.default = rest, default
            text = "ls /; cat /work/sub/f /data/in/f; echo x > /work/sub/g; cat /data/in/g; ls /data /tmp; "
            text += "echo x >> /data/in/f; cat /work/sub/g"
            return (await tries(ws, [text], "default"))[0]

    found = asyncio.run(steps())
    lines = found.stdout.decode().split()
    assert {"work", "usr", "proc"} <= set(lines) and "given" in lines and "open" in lines, found
    assert "kept" not in lines and lines[-1] == "x", found


def test_a_question_is_a_denial_for_programs(native: Native) -> None:
    (found,) = confined(
        ["cat /secrets/key; echo x > /work/f"],
        {"ask": [{"path": "/secrets/**", **LOW}, {"path": "/work/**", "access": "write", **LOW}]},
    )
    assert SECRET.encode() not in found.stdout and found.stderr.count(b"Permission denied") == 1, found
    assert b"Read-only" in found.stderr


def test_directories_of_the_host_keep_their_rules(native: Native, tmp_path: Path) -> None:
    if not reachable(str(tmp_path)):
        pytest.skip("root's box cannot reach this directory")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key").write_text(SECRET)
    (tmp_path / "fixed").write_text("kept")
    rules = {"hide": [{"path": "/host/secrets/**"}], "deny": [{"path": "/host/fixed", "access": "write"}]}

    async def steps() -> IOResult:
        async with Workspace({"/host": DiskResource(tmp_path)}, native=NATIVE, policy=rules) as ws:
            text = "cat /host/secrets/key; echo lost > /host/fixed; mv /host/fixed /host/x; "
            text += "rm -rf /host/secrets; echo new > /host/new"
            return (await tries(ws, [text], "default"))[0]

    found = asyncio.run(steps())
    assert SECRET.encode() not in found.stdout
    assert (tmp_path / "fixed").read_text() == "kept" and (tmp_path / "secrets" / "key").exists()
    assert (tmp_path / "new").read_text() == "new\n"


def test_a_descriptor_is_no_way_to_write_what_may_only_be_read(native: Native) -> None:
    """The shell opens the file in process; the program gets its bytes, not the file."""
    need("python3")
    again = "import os; print(os.read(0, 9)); print(os.path.realpath('/proc/self/fd/0'))"

    async def steps() -> tuple[IOResult, IOResult]:
        async with Workspace(native=NATIVE, policy=RULES) as ws:
            await ws.execute(FILES)
            ws.create_session("low")
            found = await ws.execute(f'python3 -c "{again}" < /config/deep/er/f', session_id="low", timeout=SECONDS)
            return found, await ws.execute("cat /config/deep/er/f")

    found, after = asyncio.run(steps())
    assert found.stdout.startswith(b"b'kept") and b"/config" not in found.stdout, found
    assert after.stdout == b"kept\n"


def test_jobs_and_daemons_live_in_a_view_as_in_the_box(native: Native) -> None:
    async def steps() -> tuple[IOResult, IOResult]:
        async with Workspace(native=NATIVE, policy=RULES) as ws:
            await ws.execute(FILES)
            ws.create_session("low")
            piped = "perl -e 'print qq(b\\na\\n)' | sort | perl -ne 'print'; perl -e 'exit 3'; echo $?; "
            piped += "timeout 0.1 perl -e 'sleep 9'; echo $?"
            first = await ws.execute(piped, session_id="low", timeout=SECONDS)
            killed = await ws.execute("perl -e 'fork; fork; sleep 1000'", session_id="low", timeout=0.5)
            assert killed.timed_out
            return first, (await tries(ws, ["ps -e -o comm= | grep -c perl"]))[0]

    first, left = asyncio.run(steps())
    assert first.stdout == b"a\nb\n3\n124\n", first
    assert left.stdout == b"0\n"


def test_a_session_with_a_view_signals_nothing_outside_of_it(native: Native) -> None:
    """The numbers that its programs see are others."""
    start = "perl -e 'open F, q(>/work/pid); print F $$; close F; sleep 1000' & "
    start += "until [ -s /work/pid ]; do sleep 0.02; done"
    kill = "kill -9 $(cat /work/pid)"

    async def steps() -> tuple[list[IOResult], IOResult]:
        async with Workspace(native=NATIVE, policy=RULES) as ws:
            await ws.execute(FILES)
            await ws.execute(start, timeout=SECONDS)
            ws.create_session("low")
            refused = [await ws.execute(kill, session_id="low", native=how, timeout=SECONDS) for how in (None, True)]
            return refused, await ws.execute(f"{kill}; echo $?; wait; cat /work/pid > /dev/null", timeout=SECONDS)

    (refused, _), ended = asyncio.run(steps())  # a program's `kill` may find one of its own view by that number
    assert refused.exit_code != 0 and b"No such process" in refused.stderr, refused
    assert ended.stdout == b"0\n", ended


def test_a_view_that_was_killed_is_made_again(native: Native) -> None:
    async def steps() -> list[IOResult]:
        async with Workspace(native=NATIVE, policy=RULES) as ws:
            await ws.execute(FILES)
            ws.create_session("low")
            return await tries(ws, ["kill -9 -1", "cat /work/f; cat /secrets/key"])

    assert asyncio.run(steps())[1].stdout == b"open\n"


def test_many_rules_cost_little(native: Native) -> None:
    rules = {"hide": [{"path": f"/d{number}/**"} for number in range(200)]}

    async def steps() -> tuple[IOResult, int]:
        async with Workspace(native=NATIVE, policy=rules) as ws:
            found = (await tries(ws, ["true; ls / | grep -c '^d[0-9]'"], "default"))[0]
            return found, len(os.listdir("/proc/self/fd"))

    found, descriptors = asyncio.run(steps())
    assert found.stdout == b"200\n" and descriptors < 200
