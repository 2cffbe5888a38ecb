"""An estimate runs nothing and brackets what a run then really does."""

from __future__ import annotations

import asyncio

import pytest

from ramet import RAMResource, Workspace
from ramet.workspace.estimate import Range

SETUP = "mkdir -p /d/sub; for i in 1 2 3; do printf '%0100d\\n' $i > /d/$i; done; seq 500 > /d/sub/n; f() { cat /d/1; }"

EXACT = {
    "cat /d/1 /d/2": (2, 202),
    "cat /d/[12]": (2, 202),
    "cat /d/{1,2,3}": (3, 303),
    "for i in 1 2; do cat /d/$i; done": (2, 202),
    "x=/d/1; wc -l $x": (1, 101),
    "cd /d; cat 1 ~/none": (1, 101),
    "cat /d/* 2>/dev/null | wc -l": (3, 303),
    "f": (1, 101),
    "echo hello; true && :": (0, 0),
}


@pytest.mark.parametrize("command", EXACT)
def test_what_is_known_is_exact(command: str) -> None:
    async def act() -> None:
        ws = Workspace()
        await ws.execute(SETUP)
        estimate = (await ws.execute(command, provision=True)).estimate
        assert estimate is not None
        reads, size = EXACT[command]
        assert (estimate.reads, estimate.bytes_read) == (Range(reads, reads), Range(size, size))
        assert estimate.exact

    asyncio.run(act())


READ_ONLY = [
    *EXACT,
    "grep -r 7 /d", "grep -rl nothing /d", "grep 1 /d/1", "head -c 5 /d/sub/n", "cat /d/sub/n | head -1",
    "sed 3q /d/sub/n", "wc -c /d/1",
    "if [ -f /d/1 ]; then cat /d/1; else cat /d/2; fi", "cat /d/1 || cat /d/2", "false && cat /d/1",
    "while read x; do echo $x; done < /d/sub/n", "cat $(ls /d/1)", "for f in /d/*; do head -1 $f; done",
    "case x in y) cat /d/1;; x) cat /d/2;; esac", "sort /d/sub/n | uniq -c | sort -rn | head -3", "cat /no/such",
    "for i in 1 2 3; do cat /d/$i; break; done", "wc -l < /d/sub/n", "tail -1 /d/sub/n", "(cat /d/1; cat /d/2)",
    "eval 'cat /d/1'", "bash -c 'cat /d/1; cat /d/2'", "command cat /d/1", "env A=1 cat /d/1", "timeout 5 cat /d/1",
    "g() { cat /d/2; }; g; g", "exit 3; cat /d/1", "diff -r /d /d/sub", "find /d -maxdepth 1", "find /d -exec cat {} +",
    "awk '{while ((getline l < \"/d/1\") > 0) print l}' /d/2", "sed 'r /d/1' /d/2", "find /d -type f | xargs cat",
    "set -e; false; cat /d/1", "cat /d/1 | tr a b | wc", "f | head -c 1", "cat $x /d/1",
]  # fmt: skip


@pytest.mark.parametrize("command", READ_ONLY)
def test_the_estimate_brackets_the_run(command: str) -> None:
    async def act() -> None:
        ws = Workspace()
        await ws.execute(SETUP)
        estimate = (await ws.execute(command, provision=True)).estimate
        assert estimate is not None
        result = await ws.execute(command)
        assert sum(result.bytes_read.values()) in estimate.bytes_read, (estimate, result)
        assert sum(result.bytes_written.values()) == 0

    asyncio.run(act())


@pytest.mark.parametrize(
    "command",
    ["rm -rf /d", "echo $(rm -rf /d)", "x=`rm -r /d`", "cat <(rm -r /d)", "mv /d /e", "> /d/1", "f() { rm -r /d; }; f",
     "cd /d && rm *", "for f in /d/*; do rm $f; done", "trap 'rm -r /d' EXIT", "echo ${x:=$(rm -r /d)}", "exit 3"],
)  # fmt: skip
def test_nothing_happens(command: str) -> None:
    async def act() -> None:
        ram = RAMResource()
        ws = Workspace({"/": ram})
        await ws.execute(SETUP)
        before = len(ws.history), ws.get_session().cwd, ws.get_session().env
        await ws.execute(command, provision=True)
        assert (len(ws.history), ws.get_session().cwd, ws.get_session().env) == before
        assert (await ws.execute("ls /d")).text == "1\n2\n3\nsub\n"

    asyncio.run(act())


def test_a_syntax_error_is_a_result() -> None:
    async def act() -> None:
        result = await Workspace().execute("if", provision=True)
        assert result.exit_code == 2 and "syntax error" in result.error_text

    asyncio.run(act())


CHANGES = {
    "rm -rf /d": 6, "rm /d/1; cat /d/2": 1, "cp /d/1 /h": 2, "cp -r /d /h": 12, "mv /d/1 /h": 2, "mkdir -p /n/m": 2,
    "touch /a /b": 2, "cat /d/1 > /h; cat /h": 1, "seq 9 | tee /x /y": 2, "ln -s /d/1 /l; cat /l": 3,
}  # fmt: skip


@pytest.mark.parametrize("command", CHANGES)
def test_changes_are_bounded_too(command: str) -> None:
    async def act() -> None:
        ws = Workspace()
        await ws.execute(SETUP)
        estimate = (await ws.execute(command, provision=True)).estimate
        assert estimate is not None and estimate.writes.high is not None
        assert estimate.writes.high == CHANGES[command]
        result = await ws.execute(command)
        assert result.exit_code == 0 and sum(result.bytes_read.values()) in estimate.bytes_read

    asyncio.run(act())
