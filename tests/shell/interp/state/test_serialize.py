"""A session that becomes plain data between any two commands goes on as if it had not."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.spec.table import CASES, load
from tests.support.shell_runner import CWD, ENV

from ramet.backends.local.ram import RAMResource
from ramet.commands.framework.table import COMMANDS
from ramet.core import ops
from ramet.core.paths import ROOT, parse
from ramet.core.proc import User
from ramet.core.streams import BytesReader, Capture
from ramet.shell.interp.main.shell import Shell
from ramet.shell.interp.state.serialize import copy, dump
from ramet.shell.interp.state.serialize import load as put
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.syntax.errors import SyntaxFailure
from ramet.shell.syntax.parser import Parser
from ramet.vfs.dev import DevResource
from ramet.vfs.vfs import VFS
from ramet.workspace.descriptors import dump_descriptors, reopen

STEPS = [
    ["declare -a e; declare -A m", "declare -p e m; e[2]=x; m[k]=v", "declare -p e m"],
    ["declare -i n=3 -x; declare -lr low=AB; declare -n ref=n; declare v", "ref+=4; declare -p n low ref v; low=c"],
    ["export RANDOM; RANDOM=7; echo $RANDOM", "echo $RANDOM; declare -p RANDOM", "echo $RANDOM"],
    ["SECONDS=1000", "echo $((SECONDS >= 1000))"],
    ["unset DIRSTACK IFS BASH_ALIASES", "echo [${DIRSTACK[@]}] ${IFS-none}; DIRSTACK=mine", "echo $DIRSTACK"],
    ["HOSTNAME=there; BASH_ARGV0=me", "echo $HOSTNAME $0; nosuch"],
    ["true | false | true", "echo ${PIPESTATUS[@]}"],
    ["f() { echo ${BASH_SOURCE[0]} $LINENO;\n echo $LINENO\n\n nosuch; g() { caller 0; }; g; }", "f", "f"],
    ["shopt -s extglob\nf() { case $1 in @(a|b)) echo in;; *) echo out;; esac; }", "f a; shopt -u extglob", "f b; f c"],
    ["f() { :; }; readonly -f f; export -f f", "f() { echo; }", "declare -fF; bash -c 'type -t f'"],
    ["hash -p /bin/foo bar; BASH_CMDS[q]=/bin/cat", "hash -l; foo=1; type q"],
    ["ulimit -Sn 100; umask 077", "ulimit -n; umask; ulimit -n 5; ulimit -Hn"],
    ["complete -W 'a b' thing; enable -n test", "complete -p thing; type -t test"],
    ["set -- -ab x; getopts ab: o; echo $o", "getopts ab: o; echo $o $OPTARG", "getopts ab: o; echo $? $OPTIND"],
    ["trap 'echo E' ERR; trap '' INT; trap 'echo R' RETURN", "false; trap -p", "f() { :; }; f; (exit 3); echo $?"],
    ["mkdir -p a/b; pushd a > /dev/null; cd b; PWD=lie", "dirs; pwd; echo $PWD ~- $OLDPWD", "popd; unset PWD", "pwd"],
    ["exec 3>&1 4>&2 5</dev/null 6</; exec {fd}<>both", "echo out >&3; echo err >&4; read x <&5; echo $?; echo q >&$fd",
     "read y <&6; cat both; exec 3>&-; echo gone >&3"],
    ["printf '1\\n2\\n3\\n' > f; exec 3<f 4<&3; read a <&3", "read b <&4", "read c <&3; echo $a$b$c"],
    ["x=$'\\xff\\x80'; declare -A m=([$'\\xfe']=$'\\n')", "declare -p x m | od -c"],
    ["set -euo pipefail; alias ll='echo listed'; shopt -s expand_aliases nullglob", "ll; echo $- $SHELLOPTS *nothing"],
    ["set a 'b c'; : last word", "echo $_ $# $2", "shift; echo $1"],
    ["let 'a[3]=5' b=2; unset 'a[3]'", "declare -p a b; echo ${#a[@]}"],
]  # fmt: skip


@pytest.mark.parametrize("steps", STEPS, ids=lambda steps: steps[0][:40])
def test_what_a_session_has_goes_with_it(steps: list[str]) -> None:
    plain = asyncio.run(_run(steps, None))
    assert asyncio.run(_run(steps, _as_data)) == plain
    assert asyncio.run(_run(steps, copy)) == plain


ALONE = re.compile(r"\$\$|\$!|BASHPID|PPID|EPOCH|\bwait\b|\bjobs\b|& |&$|coproc|\bkill\b|<\(|\btimes?\b", re.MULTILINE)
"""What is not carried with a session: its process number, its jobs, the time that commands take."""


@pytest.mark.parametrize("table", sorted(CASES.glob("*.spec")), ids=lambda path: path.stem)
def test_recorded_scripts_are_carried_from_statement_to_statement(table: Path) -> None:
    rows = [row for row in load(table) if not ALONE.search(row.script)]
    for row in rows[:: max(1, len(rows) // 8)]:
        steps = _statements(row.script)
        plain = asyncio.run(_run(steps, None))
        assert asyncio.run(_run(steps, _as_data)) == plain, row.script
        assert asyncio.run(_run(steps, copy)) == plain, row.script


def _statements(script: str) -> list[str]:
    """The script in pieces: at the ends of its lines, and at semicolons, wherever both sides are whole."""
    found, start = list[str](), 0
    for cut in re.finditer(r"\n|; ", script):
        piece = script[start : cut.start()]
        if "<<" not in script and piece.strip() and _whole(piece) and _whole(script[cut.end() :]):
            found.append(piece)
            start = cut.end()
    return [*found, script[start:]]


def _whole(text: str) -> bool:
    parser = Parser(text)
    try:
        while parser.next() is not None:
            pass
    except SyntaxFailure:
        return False
    return True


def _as_data(old: ShellState, new: ShellState) -> None:
    assert put(new, json.loads(json.dumps(dump(old)))) == []


async def _run(steps: list[str], carry: Callable[[ShellState, ShellState], None] | None) -> tuple[bytes, bytes, int]:
    fs = VFS({ROOT: RAMResource(), parse("/dev"): DevResource()})
    for directory in (CWD, "/bin", "/usr/bin"):
        await ops.make_dirs(fs, parse(directory))
    shell = Shell(fs=fs, commands=dict(COMMANDS), user=User(home="/tmp"))
    session = shell.session(env=ENV, cwd=CWD)
    out, err, status = Capture(), Capture(), 0
    for step in steps:
        status = await shell.run(session, step, stdin=BytesReader(), stdout=out, stderr=err)
        if carry is not None:
            files, lost = dump_descriptors(session)
            assert not lost
            shell = Shell(fs=fs, commands=dict(COMMANDS), user=User(home="/tmp"))
            old, session = session, shell.session(env=ENV, cwd=CWD)
            carry(old, session)
            assert await reopen(session, fs, json.loads(json.dumps(files))) == []
    return out.getvalue(), err.getvalue(), status
