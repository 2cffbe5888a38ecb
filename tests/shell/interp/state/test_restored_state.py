"""Cancelled wherever it waits, a script leaves nothing of what it had set up for a while: locals, frames, redirections.

The place is counted in suspensions, as in test_cancellation; some places of each script are tried.
"""

from __future__ import annotations

import asyncio
import random
from functools import cache
from typing import Any

import pytest
from tests.shell.interp.test_cancellation import CancelledAt

from ramet import Workspace

BEFORE = r"""
cd /tmp; x=outer; declare -i n=3; a=(1 2 3); declare -A m=([k]=v); set -- p 'q r'; umask 027; exec 9> /tmp/nine
trap 'echo usr' USR1; trap 'echo bye' EXIT; shopt -s extglob; set -o pipefail; alias ll='ls -l'
pushd / > /dev/null; popd > /dev/null
one() { sleep 0.001; "$@"; sleep 0.001; }
leaf() { local x=leaf n=x; cat <<< "$x" > /dev/null; sleep 0.001; }
echo 'shift; sleep 0.001; leaf; sleep 0.001' > /tmp/sourced
echo 'local y=1; sleep 0.001; . /tmp/sourced c d' > /tmp/around
"""
SCRIPTS = {
    "locals": "f() { local x=1 a=(9) m; local -i n=7; local -n r=x; r=2; sleep 0.001; leaf; g; }; "
    "g() { local x=3; sleep 0.001; }; f 1 2",
    "local options": "f() { local -; set -efux; set +o pipefail; sleep 0.001; leaf; } 2> /dev/null; f; f",
    "positional parameters": "f() { set -- $(sleep 0.001; echo 7 8 9); shift; sleep 0.001; leaf; }; f a b c",
    "sourced files": ". /tmp/sourced a b; f() { . /tmp/around; }; f 1; . /tmp/around 2> /dev/null",
    "assignments before commands": "IFS=: read v1 v2 < <(sleep 0.001; echo 1:2); x=1 n=5 leaf; x=2 one :; "
    "IFS=, eval 'sleep 0.001; leaf'; PATH=/usr/bin x=7 sleep 0.001",
    "redirections": "{ sleep 0.001; } 5> five 6>&1 > o; f() { sleep 0.001; } 7> seven 2>&1; f; if sleep 0.001; then :; "
    "fi 8< /tmp/nine; while read l; do sleep 0.001; done < <(echo 1; sleep 0.001; echo 2) 5<&0; exec 9>&9; "
    "(exec 9> other; sleep 0.001); case 1 in 1) sleep 0.001;; esac 9> o; [[ $(sleep 0.001) ]] 9> o",
    "loops": "for i in 1 2; do while :; do until false; do sleep 0.001; break 2; done; done; done; for ((j = 0; j < 2; "
    "j++)); do sleep 0.001; continue; done; select z in a; do sleep 0.001; break; done <<< 1 2> /dev/null",
    "conditions": "if ! one false; then sleep 0.001; fi; one true && sleep 0.001 || :; ! sleep 0.001; while one : && "
    "false; do :; done",
    "traps": "(f() { trap 'sleep 0.001' RETURN; sleep 0.001; }; f; trap 'sleep 0.001' EXIT ERR; false); kill -USR1 $$; "
    "sleep 0.001; (trap leaf USR2; kill -USR2 $BASHPID; sleep 0.001)",
    "expansions": 'v1="${u:-$(sleep 0.001)}${x/$(sleep 0.001)/z}"; v2=("$(sleep 0.001)" $(sleep 0.001)); '
    "v3=(${a[@]/1/$(sleep 0.001)}); (( q = $(sleep 0.001; echo 1) )); printf -v w %s $(sleep 0.001); : {1..3}$(leaf)",
    "pipelines": "leaf | one cat | (sleep 0.001; cat); shopt -s lastpipe; leaf | leaf; shopt -u lastpipe; "
    "time -p sleep 0.001",
    "evaluation": "eval 'eval \"sleep 0.001; leaf\"; f() { local x; leaf; }; f'; bash -c 'cd /; x=1; sleep 0.001'; "
    "command eval 'sleep 0.001'; builtin eval 'x2=1 sleep 0.001'; mapfile -C 'sleep 0.001; :' -c 1 l <<< 1",
    "deep": "f() { local x=$1; (($1)) && f $(($1 - 1)) || sleep 0.001; }; f 90; "
    "g() { (($1)) && eval 'g $(($1 - 1))' || leaf; }; g 50",
    "directories": "f() { local OLDPWD PWD=/nowhere HOME=/; sleep 0.001; }; f; "
    "(cd /; pushd /usr; umask 0; sleep 0.001) > /dev/null",
    "jobs": "sleep 0.001 & wait; { sleep 0.001; leaf; } & wait -n; leaf & wait %%",
}
AFTER = r"""
echo "$x $n ${a[*]} ${m[*]} $* $# $PWD $OLDPWD $(umask) ${IFS@Q} $- $HOME"
echo "${#FUNCNAME[@]} ${#BASH_SOURCE[@]} ${#BASH_LINENO[@]} $BASH_SUBSHELL ${y-unset} ${r-unset}"
declare -p x n a m; trap -p; shopt extglob; set -o | grep -e pipefail -e errexit -e noglob -e xtrace
false; echo $? ${PIPESTATUS[@]}; ! true; echo $?; true | false; echo ${PIPESTATUS[@]}; dirs; alias ll
local z; echo $?; return 3; echo $?; break; continue; echo $?
declare -F; echo nine >&9; f2() { local x=5; echo $x $FUNCNAME $#; }; f2 1; echo $x; (exit 3); echo $?; wait; echo $?
kill -USR1 $$; echo /proc/self/fd/*; leaf; . /tmp/sourced a; echo $*; case a in @(a|b)) echo matched;; esac
"""
"""All that is to be as it was, and that still works."""


MOST = 10
"""Places that are tried in one script."""
NOWHERE = 1 << 40


async def tried(script: str, place: int) -> tuple[int, str]:
    """How often a script waits until it is cancelled at a place, and what its session says afterwards."""
    async with Workspace() as ws:
        await ws.execute(BEFORE)

        async def finish() -> Any:
            return await ws.execute(script)

        cancelled = CancelledAt(finish(), place)

        async def run() -> None:
            await cancelled

        await asyncio.wait((asyncio.ensure_future(run()),), timeout=20)
        await ws.execute("unset -f f g")
        result = await ws.execute(AFTER)
        return place - cancelled.left, f"{result.text}\n{result.error_text}"


@cache
def otherwise() -> str:
    return asyncio.run(tried(":", 1))[1]


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_cancelled_anywhere_a_script_leaves_nothing_that_it_set_up_for_a_while(script: str) -> None:
    places, said = asyncio.run(tried(script, NOWHERE))
    assert said == otherwise(), "it leaves something also where it is not cancelled"
    for place in sorted(random.Random(script).sample(range(1, places + 1), min(places, MOST))):
        _, said = asyncio.run(tried(script, place))
        assert said == otherwise(), f"cancelled at {place} of {places}"
