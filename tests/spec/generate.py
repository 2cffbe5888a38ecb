"""Random scripts from a grammar, for differential tests: deterministic, always ending, touching only their directory.

python -m tests.spec.generate --count 300 --seed 1     compares our shell with bash and shows where they differ
python -m tests.spec.generate --dense                  the same with short scripts full of odd expansions
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from random import Random

from tests.spec.dense import Dense
from tests.spec.record import ask, available
from tests.spec.table import Row
from tests.support.shell_runner import run_script

_NAMES = ["a", "b", "c", "x", "y", "arr", "map"]
_TEXTS = [
    "",
    "a",
    "abc",
    "a b",
    "  lead",
    "x:y:z",
    "A-B",
    "foo.txt",
    "1",
    "42",
    "-7",
    "0",
    "a*c",
    "*",
    "[x]",
    "tab\there",
]
_PATTERNS = ["*", "?", "a*", "*b", "[a-c]*", "*.txt", "x:*", "*[0-9]", '"a b"', "a?c", "$x", "[!a]*", "", "'*'"]


class Scripts:
    """Makes scripts."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.files = 0
        self.inside = False  # a function: it must not call itself

    def pick(self, options: list[str]) -> str:
        return self.random.choice(options)

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def quoted(self, text: str) -> str:
        style = self.random.randrange(3)
        if style == 0 and text.isalnum():
            return text
        if style == 1 and not set(text) & set('"$`\\'):
            return f'"{text}"'
        return "'" + text + "'"

    def pattern(self) -> str:
        return self.pick(_PATTERNS)

    def param(self, depth: int) -> str:
        name = self.pick(["a", "b", "c", "x", "y", "1", "2", "arr[0]", "arr[1]", "arr[-1]", "map[k]", "nope"])
        kind = self.random.randrange(14)
        if kind == 0 and name.isalnum():
            return "$" + name
        if kind == 1:
            return self.pick(["$#", "$?", "$*", "$@", "${arr[@]}", "${arr[*]}", "${#arr[@]}", "${!arr[@]}", "${@:2}"])
        if kind == 2:
            return "${#" + name + "}"
        if kind == 3:
            return "${" + name + self.pick([":-", "-", ":+", "+"]) + self.word(depth - 1, inside=True) + "}"
        if kind == 4:
            return "${" + name + self.pick(["#", "##", "%", "%%"]) + self.pattern() + "}"
        if kind == 5:
            return (
                "${"
                + name
                + self.pick(["/", "//", "/#", "/%"])
                + self.pattern()
                + "/"
                + self.pick(["", "_", "X$b"])
                + "}"
            )
        if kind == 6:
            return "${" + name + ":" + self.pick(["0", "1", "2", " -1", "x"]) + self.pick(["", ":1", ":2", ":0"]) + "}"
        if kind == 7:
            return "${" + name + self.pick(["^", "^^", ",", ",,", "@Q", "@U"]) + "}"
        if kind == 8:
            return self.pick(["${arr[@]/a/_}", "${arr[*]#?}", "${arr[@]:1}", "${arr[@]^}", "${map[@]}", "${#map[@]}"])
        return "${" + name + "}"

    def arith(self, depth: int) -> str:
        if depth <= 0 or self.chance(3):
            return self.pick(["1", "2", "7", "x", "y", "n", "arr[0]", "$x", "${#a}", "10", "0x1f", "-3"])
        kind = self.random.randrange(6)
        left, right = self.arith(depth - 1), self.arith(depth - 1)
        if kind == 0:
            return f"({left})"
        if kind == 1:
            return f"{left} ? {right} : 5"
        if kind == 2:
            return self.pick(["n++", "++n", "n--", "n += 2", "n = 4", "!n", "~n", "n *= 2"])
        op = self.pick(["+", "-", "*", "%", "/", "<", "==", "&&", "||", "&", "|", "<<", "**", ","])
        if op in "%/":
            right = "3"
        if op in ("<<", "**"):
            right = "2"
        return f"{left} {op} {right}"

    def word(self, depth: int, inside: bool = False) -> str:
        kind = self.random.randrange(10)
        if depth <= 0 or kind < 3:
            text = self.pick(_TEXTS)
            return text.replace("'", "") if inside and text.isalnum() else self.quoted(text)
        if kind < 6:
            found = self.param(depth)
            return found if self.chance(2) else f'"{found}"'
        if kind == 6:
            return f"$(({self.arith(2)}))"
        if kind == 7:
            return f'"{self.param(depth)}-{self.param(depth)}"'
        if kind == 8:
            return (
                f'$(printf "%s\\n" {self.word(depth - 1)})' if self.chance(2) else f'"$(echo {self.word(depth - 1)})"'
            )
        return self.pick(["{a,b}", "x{1..3}", "{a,{b,c}}d", "$'q\\tr'", "p\\ q", "\"$a\"'$b'", "~nobody"])

    def words(self, depth: int) -> str:
        return " ".join(self.word(depth) for _ in range(self.random.randint(1, 3)))

    def test(self, depth: int) -> str:
        kind = self.random.randrange(7)
        if kind == 0:
            return f'[ "{self.param(1)}" = {self.quoted(self.pick(_TEXTS))} ]'
        if kind == 1:
            return f"[[ {self.word(1)} == {self.pattern() or '*'} ]]"
        if kind == 2:
            return f"(( {self.arith(2)} ))"
        if kind == 3:
            return self.pick(
                ["true", "false", "! true", "[[ -n $a ]]", '[ -z "$b" ]', "[[ -v x ]]", "[[ $x =~ [0-9]+ ]]"]
            )
        if kind == 4:
            return f"{self.test(depth - 1)} && {self.test(depth - 1)}" if depth > 0 else "true"
        if kind == 5:
            return f"[[ {self.word(1)} < {self.word(1)} ]]"
        return "read -r y <<< " + self.word(1)

    def simple(self, depth: int) -> str:
        if self.chance(3):
            return self.builtin(depth) if self.chance(2) else self.operator(depth)
        kind = self.random.randrange(22)
        if kind < 4:
            return f'printf "<%s>" {self.words(depth)}; echo'
        if kind == 4:
            return f"{self.pick(['a', 'b', 'c', 'x', 'y'])}{self.pick(['=', '=', '+='])}{self.word(depth)}"
        if kind == 5:
            return f"arr{self.pick(['=', '+='])}({self.words(depth)})"
        if kind == 6:
            return f"map[{self.pick(['k', 'j', '$x'])}.x]={self.word(depth)}"
        if kind == 7:
            return f"(( n = {self.arith(2)} )); echo n=$n $?"
        if kind == 8:
            return f'set -- {self.words(depth)}; echo $# "$*"'
        if kind == 9:
            ifs = self.pick([":", "''", "' '", ","])
            return f'IFS={ifs} read -r a b <<< {self.word(0)}; echo "$a|$b"'
        if kind == 10:
            name = "f" if self.inside else self.pick(["f", "g"])
            return f"{name} {self.words(depth)}; echo f=$?"
        if kind == 11:
            loop = "while read -r l; do echo [$l]; done"
            return f"echo {self.word(depth)} | {self.pick(['cat', 'tr a-z A-Z', 'wc -l', 'sed s/a/_/', loop])}"
        if kind == 12:
            self.files += 1
            return f"echo {self.word(depth)} > f{self.files}; cat f{self.files}; wc -c < f{self.files}"
        if kind == 13:
            return f"cat <<E\n[{self.param(1)}] $((n + 1)) \\$x\nE"
        return self.rare(kind, depth)

    def operator(self, depth: int) -> str:
        """Expansions that the others leave out, each in a place that shows all of it."""
        name = self.pick(["a", "b", "x", "e", "ref", "arr[@]", "arr[*]", "map[@]", "map[*]", "@", "*", "2", "un"])
        operated = self.pick(
            [
                "${" + name + "@" + self.pick(["Q", "U", "L", "u", "E", "a", "A"]) + "}",
                "${"
                + name
                + self.pick(["/", "//", "/#", "/%"])
                + self.pattern()
                + "/"
                + self.pick(["[&]", "", "$b"])
                + "}",
                "${" + name + self.pick([":1", ":0:2", ": -1", ":9", ":1:1"]) + "}",
                "${" + name + self.pick(["#", "##", "%", "%%", "^", "^^", ","]) + self.pattern() + "}",
                "${" + name + self.pick(["-", ":-", "+", ":+"]) + self.pick(["", "d", "'d e'", '"$a"', "$b$x"]) + "}",
                "${!" + self.pick(["ref", "pp", "arr[@]", "map[@]", "ar*", "a@"]) + "}",
                "${!pp" + self.pick(["", "#t", "/o/0", ":1", "^", "@Q", ":-z"]) + "}",
                "${#" + name + "}",
            ]
        )
        inside = self.pick([operated, f'"{operated}"', f'"<{operated}>"', f"p{operated}s", f'"{operated}${{arr[@]}}"'])
        return self.pick(
            [
                f"printf '[%s]' {inside}; echo",
                f'c={inside}; echo "$c"',
                f"arr=({inside}); echo ${{#arr[@]}}",
                f"cat <<< {inside}",
                f"cat <<E\n{operated}\nE",
                f"case {inside} in {self.pattern() or '*'}) echo hit;; *) echo miss;; esac",
                f"[[ {inside} == {self.pattern() or '*'} ]]; echo c=$?",
                f'for w in {inside}; do echo "<$w>"; done',
            ]
        )

    def builtin(self, depth: int) -> str:
        """Builtins with the options that scripts give them, and what they leave behind."""
        word, plain = self.word(depth), self.quoted(self.pick(_TEXTS))
        flag = self.pick(["-i", "-u", "-l", "-a", "-r", "-x", ""])
        return self.pick(
            [
                f"declare {flag} v{self.random.randrange(99)}={plain}; echo $?",
                f"declare -p {self.pick(['a', 'arr', 'map', 'ref', 'x', 'e'])}",
                f"unset {self.pick(['a', 'arr', chr(39) + 'arr[1]' + chr(39), chr(39) + 'map[k]' + chr(39), 'un'])}",
                f"mapfile {self.pick(['-t', '-n 1', '-s 1', '-d :', '-O 2'])} arr <<< {word}; echo ${{#arr[@]}}",
                f'read {self.pick(["-r", "", "-n 2", "-d :", "-N 3"])} a b <<< {word}; echo "$?|$a|$b"',
                f"printf '%{self.pick(['5s', '-6s', '.2s', 'q', 'b', 'c', '05d', 'x', '+d', '.1f'])}|' {plain} 7; echo",
                'OPTIND=1; while getopts :a:b o -b -a v -z; do echo "$o ${OPTARG-}"; done',
                f'a={plain} eval \'echo "$a"\'; echo "$a"',
                f'x={plain} f q; echo "$x"',
                'h() { local -n r=$1; r="h:$r"; }; h b; echo "$b"; h arr; echo "${arr[*]}"',
                f"( trap 'echo ERR $?' ERR; {self.test(0)}; false; (exit 3) | cat; echo end )",
                f"( set -x; a={plain}; echo $a {word} ) 2>&1",
                f"k=0; while (( k++ < 2 )); do {self.test(0)} && continue; echo k$k; done",
                '{ false; true; } | false; echo "${PIPESTATUS[@]}"',
                f"exec 3> t3; echo {word} >&3; exec 3>&-; cat t3",
                f"type -t {self.pick(['f', 'echo', 'if', 'cat', 'un'])}; echo $?",
                f"bash -c 'echo \"$0|$1|$#\"' {word} {plain}",
                f'set -- {word}; shift; echo $? $# "$*"',
            ]
        )

    def rare(self, kind: int, depth: int) -> str:
        """Builtins and forms that scripts use less often."""
        word = self.word(depth)
        if kind == 14:
            return f"printf -v c '%s-%s' {word} {self.word(0)}; echo \"$c\""
        if kind == 15:
            return 'for k in "${!arr[@]}"; do echo "$k=${arr[k]}"; done; unset \'arr[0]\'; echo ${#arr[@]}'
        if kind == 16:
            return f"IFS={self.pick([':', ',', chr(39) + ' ' + chr(39)])}; set -- $b $c {word}; echo $#; unset IFS"
        if kind == 17:
            return f"( set -{self.pick(['e', 'u', 'f', 'eu'])}; echo {word}; {self.test(0)}; echo in ); echo s=$?"
        if kind == 18:
            inner, outer = self.pick(["1", "$x", "$((n+1))", "${a%c}"]), self.pick(["$a", "${#b}", "x"])
            return f"eval 'y={inner}; echo $y'; eval \"echo {outer}\""
        if kind == 19:
            glob = self.pick(["g*", "g?.x", "g[12].x", "*.none", "[a-z]1.x", "g{1,3}.x"])
            return f"touch g1.x g2.x; echo {glob}; rm -f g?.x"
        if kind == 20:
            pattern = self.pick(["^a", "([a-z]+)", "[0-9]+$", "^(.)(.*)$", " "])
            return f"re='{pattern}'; if [[ {word} =~ $re ]]; then printf '(%s)' \"${{BASH_REMATCH[@]}}\"; echo; fi"
        return (
            f"{{ echo {word}; echo err >&2; }} {self.pick(['2>&1', '2>/dev/null', '2>&1 | sort', '> o1 2>&1; cat o1'])}"
        )

    def statement(self, depth: int) -> str:
        kind = self.random.randrange(12) if depth > 0 else 0
        if kind < 4:
            return self.simple(2)
        if kind == 4:
            other = f"else\n{self.block(depth - 1)}\n" if self.chance(2) else ""
            return f"if {self.test(1)}; then\n{self.block(depth - 1)}\n{other}fi"
        if kind == 5:
            return (
                f"for x in {self.words(2)}; do\n{self.block(depth - 1)}\n{self.pick(['', 'continue', 'break'])}\ndone"
            )
        if kind == 6:
            return f"for ((n = 0; n < {self.random.randint(1, 3)}; n++)); do\nm=$n\n{self.block(0)}\nn=$m\ndone"
        if kind == 7:
            items = "\n".join(
                f"{self.pattern() or '*'}) {self.simple(1)}\n{self.pick([';;', ';;', ';&', ';;&'])}" for _ in range(2)
            )
            return f"case {self.word(2)} in\n{items}\n*) echo other;;\nesac"
        if kind == 8:
            return f"( {self.block(depth - 1)}\n)"
        if kind == 9:
            return f"{{ {self.block(depth - 1)}\n}} {self.pick(['', '| cat', '> out; cat out', '2>&1'])}"
        if kind == 10:
            return f"{self.test(1)} {self.pick(['&&', '||'])} echo yes; echo s=$?"
        self.inside = True
        body = self.block(0)
        self.inside = False
        return f"g() {{\nlocal a={self.word(1)}\n{body}\nreturn {self.random.randint(0, 3)}\n}}"

    def block(self, depth: int) -> str:
        return "\n".join(self.statement(depth) for _ in range(self.random.randint(1, 2)))

    def script(self) -> str:
        head = (
            "declare -A map=([k]=v); arr=(one 'two x' 3); a=abc b='x y' x=5 y=; n=1 e= pp=arr[1]; declare -n ref=b\n"
            "g() { echo g; }\n"
            "f() { echo \"f:$1\" $#; return 2; }\nset -- p 'q r'\n"
        )
        body = "\n".join(self.statement(2) for _ in range(self.random.randint(3, 7)))
        tail = '\necho "$? $# [$a] [$b] [$c] [$x] [$y] $n"; printf "(%s)" "${arr[@]}"; echo "${#map[@]}"\n'
        return head + body + tail


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--count", type=int, default=200)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--show", type=int, default=5)
    arguments.add_argument("--dense", action="store_true", help="scripts of `dense` instead")
    args = arguments.parse_args()
    if not available():
        print("bash 5.2 and bubblewrap are needed", file=sys.stderr)
        return 2
    kind = Dense if args.dense else Scripts
    rows = [Row(f"seed {seed}", kind(Random(seed)).script()) for seed in range(args.seed, args.seed + args.count)]
    wrong = 0
    for row in ask(rows):
        try:
            out, err, status = asyncio.run(asyncio.wait_for(run_script(row.script), 10))
        except TimeoutError:
            out, err, status = b"", b"no answer within ten seconds", -1
        if (out, status) != (row.stdout, row.status):
            wrong += 1
            if wrong <= args.show:
                print(f"--- {row.title}\n{row.script}\nbash {row.status} {row.stdout!r} {row.stderr[-300:]!r}")
                print(f"ours {status} {out!r} {err[-300:]!r}")
    print(f"{wrong} of {len(rows)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
