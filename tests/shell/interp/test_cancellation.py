"""A cancellation is one wherever it arrives: at each place where it waits, a script ends, and its session goes on.

The place is counted in suspensions of the execution, so that every run meets the same ones, whatever the machine does.
"""

from __future__ import annotations

import asyncio
import random
import sys
import traceback
from collections.abc import Coroutine, Generator
from typing import Any

import pytest

from ramet import Workspace

SCRIPTS = {
    "pipelines": "echo a | tr a b | cat; seq 10 | while read x; do echo $x; done | sort",
    "substitutions": "x=$(echo a | cat); y=$(cat <(echo q)); echo $x$y > /tmp/o; cat < /tmp/o",
    "functions": 'f() { local a=$(echo 1); g "$a"; }; g() { cat <<< $1; }; f | cat; f > /tmp/z',
    "process substitutions": "diff <(seq 3) <(seq 4); tee >(cat > /dev/null) <<< x > /dev/null; wait",
    "large words": "printf -v x '%0300000d ' 1 2; echo $x > /dev/null; y=1 echo $x; a=($x); for i in $x; do :; done",
    "texts": "eval 'cat <<< 1'; echo 'cat <<< s' > /tmp/s; . /tmp/s; bash -c 'echo $(cat <<< q | cat)'; bash /tmp/s",
    "assignments": "x=1 cat <<< y; IFS=: read p q < <(sleep 0.01; echo 1:2); x=$(sleep 0.01) eval 'cat <<< z'",
    "reading": "read -t 0.02 x < <(sleep 1); mapfile -t z < <(seq 5; sleep 0.01); mapfile -C 'cat <<<' -c 1 w <<< q",
    "programs": "seq 1000 > /tmp/a; sort -r /tmp/a | head -3; grep 9 /tmp/a | wc -l; find /tmp -name a | xargs tail -1",
    "programs of programs": "timeout 0.02 sleep 1; timeout -k 0.01 0.01 sleep 1; time sleep 0.01; env cat <<< 2",
    "a substitution that lasts": "exec 7< <(cat <<< r; sleep 0.01); cat <&7; exec 7<&-",
    "lastpipe": "shopt -s lastpipe; seq 3 | while read x; do cat <<< $x; done; shopt -u lastpipe",
    "globs": "for i in {1..50}; do : > /tmp/g$i; done; echo /tmp/g*5* | cat; ls /tmp | wc -l; rm /tmp/g*",
    "an array": "a=({1..100000}); b=(${a[@]}); (a[3]=x); echo ${#b[@]}",
    "a large script": "\n".join(f"x{i}=$((x{i} + {i}))" for i in range(3000)),
}
BROAD = r"""
read x < <(sleep 0.03)
mapfile -C 'sleep 0.01; :' -c 1 z <<< $'1\n2\n3'
select x in a b; do sleep 0.01; done <<< $'1\n2'
case $(sleep 0.03) in *) ;; esac
[[ $(sleep 0.03) == a ]]
(( $(sleep 0.03; echo 1) ))
a[$(sleep 0.03; echo 1)]=2; declare -A m=([$(sleep 0.01)k]=1); export e=$(sleep 0.01)
echo ${x:-$(sleep 0.03)} "${x/$(sleep 0.01)/b}"
f() { local -n r=$1; r=$(sleep 0.03); }; f z
{ echo a; sleep 0.03; } > old 2>&1
{ echo a; sleep 0.03 & } > o; wait
sleep 0.03 | cat | cat; cat <<< q | sleep 0.02
yes | head -50000 | wc -l
sleep 0.03 & sleep 0.02 & wait -n; wait
coproc cat; echo a >&${COPROC[1]}; read x <&${COPROC[0]}; exec {COPROC[1]}>&-; wait
exec 8> >(cat > o; sleep 0.02); echo a >&8; exec 8>&-; sleep 0.02
tee >(cat > o) >(sleep 0.02) <<< q
(trap 'sleep 0.03' EXIT; :)
(trap 'sleep 0.03' ERR; false)
(trap 'echo t; sleep 0.03' USR1; kill -USR1 $BASHPID; :)
(set -T; f() { :; }; trap 'sleep 0.01' RETURN; f)
(set -e; (sleep 0.02; false); echo no)
bash -c 'sleep 0.02; :' | cat; echo 'sleep 0.02' | bash; bash -i <<< 'sleep 0.01' 2> /dev/null
seq 4 | xargs -P 2 -I{} bash -c 'sleep 0.0{}'
seq 4 | parallel -j 2 sleep 0.0{}
find . -maxdepth 1 -exec sleep 0.01 \;
awk 'BEGIN { "sleep 0.03; echo a" | getline x; print x | "cat; sleep 0.02" }'
awk 'BEGIN { system("sleep 0.03"); while (i++ < 100000) x++ }'
sed '1e sleep 0.03' <<< a; seq 3000 > n; sed -i 's/1/one/; 5e sleep 0.01' n
jq -n '[range(30000)] | length'; jq -s . < <(sleep 0.02)
sqlite3 q.db 'create table t(a); insert into t values(1); select count(*) from t a, t b'
seq 20000 | sort -r -o n; seq 3000 | shuf | sort -S 1k | tail -1
head -c 300000 /dev/zero | gzip | gunzip | cmp - <(head -c 300000 /dev/zero)
seq 300 > n; tar czf t.tgz n; split -l 50 n p-; cp n c; mv c d; rm p-*; zip -q z.zip n d; diff n <(seq 2 301) > o
mkfifo p; cat p > o & echo a > p; wait; rm p
flock l sleep 0.03; timeout -k 1 0.01 bash -c 'trap : TERM; sleep 0.03'; env -i X=1 sleep 0.01; nohup sleep 0.01
compgen -C 'sleep 0.03; :' x; compgen -W '$(sleep 0.01)'
""".strip().split("\n")
"""Each construct and each family of commands: what waits in them is cancelled at some of its places."""
MOST = 40
"""Places that are tried in one script."""


class CancelledAt:
    """An execution that is cancelled when it waits for the n-th time."""

    def __init__(self, work: Coroutine[Any, Any, Any], place: int) -> None:
        self.work, self.left = work, place

    def __await__(self) -> Generator[Any, Any, Any]:
        step: Any = (self.work.send, None)
        while True:
            try:
                waiting = step[0](step[1])
            except StopIteration as stop:
                return stop.value
            self.left -= 1
            if self.left == 0:
                if waiting is not None:
                    waiting._asyncio_future_blocking = False
                    waiting.cancel()
                step = (self.work.throw, asyncio.CancelledError())
                continue
            try:
                yield waiting
                step = (self.work.send, None)
            except BaseException as error:
                step = (self.work.throw, error)


async def cancelled_at(script: str, place: int) -> bool:
    """Cancel a script at a place; False when it does not wait so often."""
    ws = Workspace()
    await ws.execute("keep=1; cd /tmp; kept() { echo $keep; }")

    async def finish() -> Any:
        return await ws.execute(script)

    cancelled = CancelledAt(finish(), place)

    async def run() -> None:
        await cancelled

    running = asyncio.ensure_future(run())
    await asyncio.wait((running,), timeout=20)
    assert running.done(), f"it hangs when it is cancelled at {place}"
    assert running.cancelled() == (cancelled.left <= 0), f"cancelled at {place}, it goes on"
    result = await ws.execute("kept; pwd; (echo $keep | cat); echo $BASH_SUBSHELL ${#FUNCNAME[@]} ${IFS@Q}")
    assert (result.text, result.error_text) == ("1\n/tmp\n1\n0 0 $' \\t\\n'\n", ""), f"cancelled at {place}"
    await ws.close()
    assert len(asyncio.all_tasks()) == 1, f"cancelled at {place}, it leaves tasks behind"
    return cancelled.left <= 0


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_cancelled_wherever_it_waits_a_script_ends_and_its_session_goes_on(script: str) -> None:
    place = 1
    while place < MOST and asyncio.run(cancelled_at(script, place)):
        place += 1
    assert place > 1, "it never waits: nothing was tried"


@pytest.mark.parametrize("script", BROAD)
def test_whatever_it_is_in_a_cancelled_script_ends_and_its_session_goes_on(script: str) -> None:
    for place in sorted(random.Random(script).sample(range(1, 9), 2)):
        asyncio.run(cancelled_at(script, place))


@pytest.mark.parametrize("levels", [1, 3, 300])
def test_functions_that_a_cancellation_ends_leave_nothing_of_theirs_behind(levels: int) -> None:
    script = """
        f() {
            local - x=$1 y; local -i z=$1; declare -A m=([$1]=$1); set -f; ((++n))
            if ((n < levels)); then q=$1 f $((x + 1)); else touch /tmp/deep; sleep 100; fi
        }
        g() { local -n x=x; f "$@"; }
        x=outer m=plain q=before; set -- a b c; echo "f 7" > /tmp/s; f 1
    """
    after = (
        """echo $x ${y-unset} ${z-unset} $m $q "$@" "${FUNCNAME[*]}"; [[ $- == *f* ]] && echo noglob; declare -p x m"""
    )

    async def go() -> None:
        async with Workspace() as ws:
            ws.create_session("other")
            for how in ("f 1", ". /tmp/s 8 9", "eval 'x=2 f 1'", "g 1"):
                await ws.execute("rm -f /tmp/deep; n=0")
                call = asyncio.ensure_future(ws.execute(script.replace("f 1", how).replace("levels", str(levels))))
                while (await ws.execute("test -e /tmp/deep", session_id="other")).exit_code:
                    assert not call.done()
                    await asyncio.sleep(0)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
                said = await ws.execute(after)
                told = 'outer unset unset plain before a b c \ndeclare -- x="outer"\ndeclare -- m="plain"\n'
                assert said.stdout.decode() == told, how

    asyncio.run(go())


def test_what_runs_out_of_time_leaves_its_session_and_its_files_whole() -> None:
    async def act() -> None:
        async with Workspace() as ws:
            await ws.execute("cd /tmp; echo old > old; keep=1")
            for script in BROAD:
                result = await ws.execute(script, timeout=0.002)
                assert not result.timed_out or result.exit_code == 124
                result = await ws.execute("cat old; rm -f p; echo $keep $(echo sub | cat) ${#FUNCNAME[@]} $PWD")
                assert result.text in ("old\n1 sub 0 /tmp\n", "a\n1 sub 0 /tmp\n", "1 sub 0 /tmp\n"), script
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(act())


@pytest.mark.parametrize(
    "script",
    [
        "while read x; do :; done < <(sleep 9)",
        "select x in a b; do :; done < <(sleep 9)",
        "{ sleep 9; } > >(sleep 9)",
        "if sleep 9; then :; fi < <(sleep 9)",
        "f() { sleep 9; } < <(sleep 9); f",
        "for i in <(sleep 9); do sleep 9; done",
        "((1)) < <(sleep 9); sleep 9",
        "((1)) > >(sleep 9); sleep 9",
        ": <(sleep 9); { :; } < <(sleep 9); sleep 9",
    ],
)
def test_substitutions_end_with_what_they_were_for(script: str) -> None:
    async def act() -> None:
        async with Workspace() as ws:

            async def finish() -> Any:
                return await ws.execute(script)

            running = asyncio.ensure_future(finish())
            for _ in range(100):
                await asyncio.sleep(0)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(act())


def test_a_regular_expression_that_is_too_big_says_so() -> None:
    async def act() -> None:
        async with Workspace() as ws:
            result = await ws.execute("printf -v r %040000d 0; [[ a =~ ${r//0/(a|b)} ]]; echo $?")
            assert result.text == "2\n" and "Regular expression too big" in result.error_text

    asyncio.run(act())


@pytest.mark.parametrize(
    ("script", "at_work"),
    [
        ("seq 90000 | shuf > /tmp/a; seq 90000 | shuf > /tmp/b; echo; diff /tmp/a /tmp/b", "myers.py"),
        ("echo; bc -l <<< 'scale = 9000; e(1.5)'", "numbers.py"),
    ],
)
def test_no_thread_goes_on_with_what_was_cancelled(script: str, at_work: str) -> None:
    def working() -> bool:
        stacks = [traceback.extract_stack(frame) for frame in sys._current_frames().values()]
        return any(entry.filename.endswith(at_work) for stack in stacks for entry in stack)

    async def act() -> None:
        async with Workspace() as ws:

            async def finish() -> Any:
                return await ws.execute(script)

            running = asyncio.ensure_future(finish())
            while not working():
                assert not running.done(), "it was over before it could be cancelled"
                await asyncio.sleep(0.001)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            patience = asyncio.get_running_loop().time() + 20
            while working():
                assert asyncio.get_running_loop().time() < patience, "its thread goes on"
                await asyncio.sleep(0.01)

    asyncio.run(act())
