"""Whatever a script has made of its session, a copy of it and one that was plain data in between go on alike."""

from __future__ import annotations

import asyncio
import random
import re

import pytest
from tests.shell.interp.state.test_serialize import _as_data, _run

from ramet.shell.interp.state.serialize import copy

CHOICES = {
    "NAME": ["a", "b", "m", "n", "ref", "x_1"],
    "WORD": ["''", "x", "'a b'", "$'\\n'", "$'\\xff\\x80'", "'*'", '"it\'s"', "7", "-3", "010", "é", "'[1]=2'", "'\\'"],
    "KEY": ["k", "' '", "']'", "'['", "$'\\xfe'", "'$x'", "@", "'*'", "'\"'", '"\'"', "é", "$'\\n'", "'\\'", "1+1"],
    "INDEX": ["0", "1", "3", "100", "1099511627776", "4611686018427387904"],
    "FLAG": ["i", "l", "u", "c", "x", "t", "ix", "ux"],
    "TARGET": ["a", "b", "m[k]", "a[1]", "nosuch"],
    "FUNCTION": ["f", "g", "f-g"],
    "SIGNAL": ["INT", "USR1", "sigterm", "EXIT", "RETURN", "15", "SIGRTMIN+2", "CHLD", "WINCH", "ERR", "DEBUG"],
    "OPTION": [
        "allexport",
        "errexit",
        "errtrace",
        "functrace",
        "hashall",
        "history",
        "keyword",
        "noclobber",
        "noglob",
        "nounset",
        "physical",
        "pipefail",
        "posix",
        "xtrace",
    ],
    "SHOPT": [
        "dotglob",
        "extglob",
        "expand_aliases",
        "lastpipe",
        "localvar_inherit",
        "nullglob",
        "xpg_echo",
        "compat43",
    ],
    "SIGN": ["+", "-"],
    "DIGIT": ["3", "4", "5", "6", "7"],
    "DIRECTORY": ["/tmp", "/", ".", "/dev", "-", ".."],
}
STATEMENTS = r"""
NAME=WORD
NAME+=WORD
declare -FLAG NAME=WORD
declare +FLAG NAME
declare -FLAGa NAME=(WORD WORD)
declare -FLAGA NAME=([KEY]=WORD)
declare -A m; m[KEY]=WORD
NAME[INDEX]=WORD
NAME=({1..5}); unset 'NAME[2]' 'NAME[4]'
unset 'NAME[INDEX]'
unset NAME
unset -n ref
declare -n ref=TARGET
declare -n NAME
readonly rDIGIT=WORD
export NAME
export -n NAME
declare -x noval; declare -i noint; declare -A noassoc; declare -a noarray
q() { local NAME=WORD; declare -g NAME=WORD; }; q
FUNCTION() { echo WORD; case $1 in a|b) : ;; esac; }
FUNCTION() ( cat <<< WORD )
FUNCTION() { for i in a; do [[ $i == b? ]] && (( 1 + 2 )); done; } 2> /dev/null
export -f FUNCTION
declare -ft FUNCTION
unset -f FUNCTION
set SIGNo OPTION
shopt -s SHOPT
shopt -u SHOPT
alias e_=WORD q-q='x y'
BASH_ALIASES[zz]=WORD; BASH_CMDS[zz]=/bin/x
trap 'echo DIGIT' SIGNAL
trap '' SIGNAL
trap - SIGNAL
umask 0DIGITDIGIT
mkdir -p d/e; cd d
mkdir -p real; ln -sfn real link; cd link
cd DIRECTORY > /dev/null
pushd DIRECTORY > /dev/null
popd > /dev/null
hash -p /bin/nope zz
set -- -ab WORD -b; getopts ab:x o
getopts ab:x o
RANDOM=DIGIT; : $RANDOM
SECONDS=DIGIT000
set -- WORD WORD
true | (exit DIGIT) | false
history -s x DIGIT
enable -n test printf
complete -W WORD -o nospace c1
complete -r c1
ulimit -Sn DIGIT0
exec DIGIT> oDIGIT
exec DIGIT>> oDIGIT
printf '1\n2\n3\n' > in; exec 4< in 5<&4; read q <&4
read q <&5
exec DIGIT>&-
echo WORD >&DIGIT
unset RANDOM SECONDS DIRSTACK PWD
IFS=WORD
unset IFS
BASH_ARGV0=WORD
OSTYPE=WORD HOSTTYPE=x BASH_VERSION=1
[[ abc =~ (b)(c)? ]]
: WORD last
exec DIGIT<<< WORD
exec DIGIT<> oDIGIT; echo ab >&DIGIT
exec {v}> ov; echo WORD >&$v
exec {v}>> ov; echo WORD >&$v
exec {v}>&-
exec {v}< in; read q <&$v
(exit DIGIT) & wait "$!"
true & wait
sleep 0.00DIGIT & wait -n; echo $?
NAME=()
declare -A NAME=()
unset 'm[KEY]'
declare -Ar rm=([KEY]=WORD)
declare -ar ra=(WORD)
shopt -s autocd nocasematch globstar failglob cdable_vars
cd d; pushd /tmp; pushd +1; dirs -c; pushd d/e
FUNCTION() { local NAME=WORD; trap 'echo in' RETURN; return DIGIT; }; FUNCTION
echo {1..3} > ov; mapfile -t NAME < ov
history -c
HISTSIZE=DIGIT
exec DIGIT>&1 DIGIT>&2
complete -F f -A file c2; compopt -o nospace c2
PROMPT_COMMAND=WORD PS1=WORD TIMEFORMAT=WORD
OPTIND=1; set -- -x -a; getopts ab:x NAME; getopts ab:x NAME
exit DIGIT
false
""".strip().splitlines()
SHOWN = r"""echo "$? ${PIPESTATUS[*]} $_"
echo "$- $0 $# ${@@Q}"; set +u; trap - RETURN
builtin printf '%s\n' "$SHELLOPTS $BASHOPTS $PWD $OLDPWD ${DIRSTACK[*]} $OPTIND $((SECONDS / 100)) $RANDOM $RANDOM"
declare -p | grep -av 'BASHPID\|EPOCH\|RANDOM\|SECONDS\|PPID\|LINENO'
declare -f; declare -F; alias; trap -p; umask; pwd -P; dirs -v; hash; enable -n; complete -p; ulimit -a; shopt; history
for fd in 3 4 5 6 7; do echo "w$fd" >&$fd && echo "open $fd"; read l <&$fd && echo "read $fd $l"; done 2> /dev/null
for file in {.,..,/tmp}/{o?,in}; do [[ -f $file ]] && { echo "$file"; cat "$file"; }; done
getopts ab:x o; echo "$? $o $OPTIND $OPTARG"; f a b; g; f-g; nosuch
bash -c 'declare -F; declare -x'
echo "$! ${v-} ${!ref} ${#FUNCNAME[@]} $HISTCMD $SHLVL"; wait $!; echo $?; type zz q-q e_ f; hash -t zz; shopt -o
read -u ${v:-9} l; echo "$l"; jobs; caller; echo ~+ ~-"""


def statements(seed: int) -> list[str]:
    chance = random.Random(seed)
    blank = re.compile("|".join(CHOICES))
    found = chance.choices(STATEMENTS, k=12)
    made = [blank.sub(lambda name: chance.choice(CHOICES[name[0]]), statement) for statement in found]
    return ["RANDOM=7", *made]  # without a seed each session draws numbers of its own


@pytest.mark.parametrize("seed", range(10))
def test_a_session_is_all_that_its_script_has_made_of_it(seed: int) -> None:
    first, rest = SHOWN.split("\n", 1)
    steps = [*statements(seed), first, rest]
    plain = asyncio.run(_run(steps, None))
    assert asyncio.run(_run(steps, _as_data)) == plain
    assert asyncio.run(_run(steps, copy)) == plain
