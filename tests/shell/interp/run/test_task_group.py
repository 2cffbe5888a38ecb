"""Thousands of shells that are cancelled together: they stop at once, end by parts, and leave their session whole."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import shlex
from typing import Any

import pytest
from tests.support.loop_holds import Lateness, longest_hold, too_long

from ramet import Workspace
from ramet.core.errors import RametError
from ramet.shell.interp.run.task_group import TaskGroup
from ramet.shell.interp.state.shell_state import ShellState

MANY = {
    "stages": "eval \"sleep 99 $(printf '| cat %.0s' {1..1500})\"",
    "stages within stages": "f() { (($1)) && f $(($1 - 1)) | cat || sleep 99; }; f 600",
    "process substitutions": "eval \"cat $(printf '<(sleep 99) %.0s' {1..900})\"",
    "process substitutions within each other": "f() { (($1)) && cat <(f $(($1 - 1))) || sleep 99; }; f 900",
    "jobs": "for i in {1..1500}; do sleep 99 & done; wait",
}
WITHIN = {
    "command substitutions": "f() { (($1)) && x=$(f $(($1 - 1))) || sleep 99; }; f 1500",
    "subshells": "f() { (($1)) && ( f $(($1 - 1)) ) || sleep 99; }; f 1500",
    "shells": 'f() { (($1)) && bash -c "f $(($1 - 1))" || sleep 99; }; export -f f; f 600',
    "what xargs starts": "f() { (($1)) && echo $(($1 - 1)) | xargs bash -c 'f $0' || sleep 99; }; export -f f; f 250",
}
"""Shells that wait for each other, few of them in tasks of their own."""


async def begun(ws: Workspace, script: str, tasks: int) -> asyncio.Task[Any]:
    """A script that runs, once it has so many tasks."""

    async def finish() -> Any:
        return await ws.execute(script)

    running = asyncio.ensure_future(finish())
    while len(asyncio.all_tasks()) < tasks:
        assert not running.done(), "it was over before it could be cancelled"
        await asyncio.sleep(0.001)
    return running


@pytest.mark.parametrize("script", (MANY | WITHIN).values(), ids=MANY | WITHIN)
def test_many_shells_are_cancelled_in_a_moment(script: str) -> None:
    tasks = 600 if script in MANY.values() else 40

    async def act() -> float:
        async with Workspace() as ws:
            await ws.execute("keep=1; cd /tmp; cat <(echo a) | cat; echo | xargs bash -c :")
            running = await begun(ws, script, tasks)
            since = Lateness()
            running.cancel()
            await asyncio.wait((running,))
            late = since()
            assert running.cancelled()
            result = await ws.execute("echo $keep $PWD ${#FUNCNAME[@]} $(echo sub | cat)")
            assert (result.text, result.error_text) == ("1 /tmp 0 sub\n", "")
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return late

    assert not too_long(act, 0.05)


@pytest.mark.parametrize("script", (MANY | WITHIN).values(), ids=MANY | WITHIN)
def test_many_shells_end_by_a_time_limit_within_a_script(script: str) -> None:
    async def act() -> float:
        async with Workspace() as ws:
            await ws.execute("timeout 9 bash -c 'cat <(echo a) | cat; echo | xargs bash -c :'")
            since = Lateness()
            result = await ws.execute(f"timeout 0.3 bash -c {shlex.quote(script)}; echo $?")
            assert result.text == "124\n"
            return since(0.3)

    assert not too_long(act, 0.15)


def test_a_job_that_is_killed_ends_with_all_its_shells() -> None:
    async def act() -> float:
        async with Workspace() as ws:
            await ws.execute("cat <(echo a) | cat")
            await ws.execute(f"{{ {MANY['process substitutions within each other']}; }} &")
            while len(asyncio.all_tasks()) < 600:  # noqa: ASYNC110 - nobody else counts them
                await asyncio.sleep(0.001)
            since = Lateness()
            result = await ws.execute("kill -9 $!; wait $!; echo $?")
            late = since()
            assert result.text == "137\n"
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return late

    assert not too_long(act, 0.05)


def test_a_job_that_is_asked_to_end_may_start_shells_for_its_last_words() -> None:
    async def act() -> str:
        async with Workspace() as ws:
            await ws.execute(
                "(trap 'echo bye | cat' EXIT; for i in {1..40}; do sleep 9 | cat; done) > out & sleep 0.05"
            )
            return (await ws.execute("kill $!; wait $!; echo $? $(< out)")).text

    assert asyncio.run(act()) == "143 bye\n"


@pytest.mark.parametrize("script", (MANY | WITHIN).values(), ids=MANY | WITHIN)
def test_shells_that_were_cancelled_are_no_garbage(script: str) -> None:
    """What only Python's collector would find takes it tenths of a second when there are thousands of them."""

    async def act() -> int:
        async with Workspace() as ws:
            await ws.execute("cat <(echo a) | cat; echo | xargs bash -c :")
            running = await begun(ws, script, 40)
            running.cancel()
            await asyncio.wait((running,))
            await ws.execute("kill -9 $(jobs -p) 2> /dev/null; wait")
            await ws.execute(":")  # when those that were left are gone
            found = alive()
            gc.collect()
            return found - alive()

    def alive() -> int:
        return sum(isinstance(one, ShellState) for one in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(act()) < 5
    finally:
        gc.enable()


@pytest.mark.parametrize("script", MANY.values(), ids=MANY)
def test_the_end_of_many_shells_fills_no_turn_of_the_loop(script: str) -> None:
    async def act() -> float:
        async with Workspace() as ws:
            running = await begun(ws, script, 600)

            async def end() -> None:
                running.cancel()
                await asyncio.wait((running,))
                await ws.execute(":")

            return await longest_hold(end())

    assert not too_long(act, 0.02)


def test_what_was_cancelled_makes_no_further_step() -> None:
    async def act() -> None:
        async with Workspace() as ws:
            step = "while :; do echo a >> /tmp/log; sleep 0.001; done"
            running = await begun(ws, f"eval \"cat $(printf '<({step}) %.0s' {{1..300}})\"", 300)
            while not (await ws.execute("cat /tmp/log", session_id=other(ws))).text:
                assert not running.done()
                await asyncio.sleep(0.001)
            running.cancel()
            await asyncio.wait((running,))
            sizes = [(await ws.execute("wc -c < /tmp/log", session_id=other(ws))).text for _ in range(50)]
            await asyncio.sleep(0.05)
            sizes.append((await ws.execute("wc -c < /tmp/log")).text)
            assert len(set(sizes)) == 1, "somebody writes on"

    def other(ws: Workspace) -> str:
        if "other" not in ws.sessions:
            ws.create_session("other")
        return "other"

    asyncio.run(act())


@pytest.mark.parametrize("script", MANY.values(), ids=MANY)
def test_many_shells_at_their_deadline_log_no_warning(script: str) -> None:
    complaints: list[str] = []

    async def act() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(str(context)))
        async with Workspace() as ws:
            result = await ws.execute(script, timeout=0.4)
            assert result.timed_out and result.exit_code == 124
            assert (await ws.execute("echo $?")).text == "124\n"

    asyncio.run(act())
    assert not complaints


@pytest.mark.parametrize("script", ["while :; do :; done", "sleep 99", "sleep 99 | cat", "cat <(sleep 99)", "wait"])
def test_closing_a_workspace_stops_what_runs_in_it(script: str) -> None:
    async def act() -> None:
        ws = Workspace()
        await ws.execute("sleep 99 &")
        running = await begun(ws, script, 3)
        waiting = asyncio.ensure_future(finish(ws))
        await asyncio.sleep(0)
        await ws.close()
        for task in (running, waiting):
            with pytest.raises(RametError, match="closed"):
                await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    async def finish(ws: Workspace) -> Any:
        return await ws.execute("echo")

    asyncio.run(act())


def test_hundreds_of_jobs_that_compute_share_the_loop_with_others() -> None:
    async def act() -> float:
        async with Workspace() as ws:
            running = await begun(ws, "for i in {1..150}; do while :; do :; done & done; wait", 150)
            worst = await longest_hold(asyncio.sleep(0.2))
            assert not running.done()
            ws.create_session("other")
            assert (await ws.execute("seq 3000 | sort | tail -1", session_id="other")).text == "999\n"
            running.cancel()
            await asyncio.wait((running,))
        return worst

    assert not too_long(act, 0.02)


@pytest.mark.parametrize("error", [FileNotFoundError(), asyncio.CancelledError()], ids=["failed", "cancelled"])
def test_a_failure_in_a_wait_stops_no_other_work(error: BaseException) -> None:
    """As an answer does that comes from far away, or a process that was killed."""

    async def act() -> bool:
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def work() -> None:
            with contextlib.suppress(FileNotFoundError, asyncio.CancelledError):
                await answer

        crew = TaskGroup()
        led = crew.lead(work())
        assert led is not None
        if isinstance(error, asyncio.CancelledError):
            asyncio.get_running_loop().call_soon(answer.cancel)
        else:
            asyncio.get_running_loop().call_soon(answer.set_exception, error)
        await led
        return crew.stopped

    assert not asyncio.run(act())
