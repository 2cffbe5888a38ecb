"""Short scripts that are dense with expansions, over odd values and every IFS: what `generate --dense` compares.

They find what is left, so not all of them agree: what differs is looked at by a person.
"""

from __future__ import annotations

from random import Random
from typing import Final

HEAD: Final = (
    "declare -A m=([k]=v ['a b']='c d'); a=(one 'two x' '' 3); s=abc t='x y' e= n=7 star='*' nl=$'p\\nq' ref=a[1]\n"
    "pp=s q=\"it's\" bs='a\\b'; declare -n nr=t; declare -i int=5; declare -u up=low; readonly ro=R\n"
    "set -- p 'q r' '' z; touch f1 f2 .h 'g h'; fn() { printf '{%s}' \"$@\"; echo; }\n"
)
TAIL: Final = '\necho "end $?"; declare -p a m s t; declare -p u\n'
_words: Final = str.split
_NAMES: Final = _words(
    "s t e n star nl u a a[1] a[@] a[*] a[-1] m[k] m[@] m[*] @ * 1 2 3 9 nr up int q bs # ? a[9] ro a[$n-6] m[$u] ref"
)
_PATTERNS: Final = _words(
    "* ? a* *b [a-c] [!a] x \"$s\" $star \\* '' [[:alpha:]] *[xyz] $'\\n' ?(a) +(a|b) !(a) [a ] \\\\ $e $u ~"
)
_IFS: Final = (
    "",
    "",
    "IFS=,; ",
    "IFS=; ",
    "IFS=' x'; ",
    "IFS=$'\\n'; ",
    "unset IFS; ",
    "IFS=:; ",
    "IFS=b; ",
    "IFS=1; ",
)
_OPTIONS: Final = (
    *("",) * 4,
    *(f"shopt -s {name}; " for name in ("extglob", "nullglob", "nocasematch", "failglob", "dotglob")),
    *(f"set {flag}; " for flag in ("-f", "-u", "-e", "-o posix")),
    "shopt -u patsub_replacement; ",
)
_PLAIN: Final = _words("x 'a_b' \"c_d\" \\$ $'t\\t' * ~ {1,2} '' \"\" a=b -n f* [g]* é ~+ % ! } ab 12 x:y foo a,b")
_MANY: Final = (
    "$*",
    "$@",
    '"$@"',
    '"$*"',
    "${a[@]}",
    '"${a[@]}"',
    "{1..3}",
    "{c..a}",
    "{01..03}",
    "{a,b}{1,2}",
    "{,x}",
)
_TICKED: Final = ("echo a b", "echo '$s'", 'echo "$t"', "printf '%s' \\\\x", "echo \\$s")
_REPLACED: Final = ("", "/", "/_", "/&", "/[&]", "/\\&", "/$t", '/"$s"', "/'x y'", "/\\/", "/~", "/$star")
_SLICES: Final = ("0", "1", " -1", " -2", "n-6", "1:1", "0:2", "1:-1", "2:0", " -2:1", "9", "0:99", "1+1")
_SEEN_THROUGH: Final = _words("ref pp a[@] m[@] a* s@ nr u 1 # a[*] n")
_OPERANDS: Final = _words("1 n $n a[3] ${#a[@]} 0x10 010 2#11 u int 5 -2 m[z] ${#s}")
_OPERATORS: Final = _words("+ - * / % << >> < >= == != & | ^ && || ,")
_CHANGES: Final = _words("n++ --n n+=2 n<<=1 n=3 x=y=4 n%=4 a[2]=8 m[z]+=1 !n ~n n**2")
_REGEXES: Final = ("^a", "$s", '"$s"', "[a-z]+", "^(.)(.*)$", "a|b", "(x)?y", "\\.", "[[:space:]]", "$star")


class Dense:
    """Makes such scripts."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.pick = random.choice

    def word(self, depth: int) -> str:
        kind = self.random.randrange(14)
        if depth <= 0 or kind < 3:
            return self.pick(_PLAIN).replace("_", " ")
        if kind < 8:
            found = self.param(depth)
            return self.pick((found, f'"{found}"', f'" {found}y"'))
        if kind == 8:
            return self.word(depth - 1) + self.word(depth - 1)
        if kind == 9:
            return self.pick(("$({})", '"$({})"')).format(self.command(depth - 1))
        if kind == 10:
            return f"$(({self.arith(2)}))"
        if kind == 11:
            return self.pick(("{%s,%s}", "x{%s,%s}", "{%s,%s}y")) % (self.word(depth - 1), self.word(depth - 1))
        return f"`{self.pick(_TICKED)}`" if kind == 12 else self.pick(_MANY)

    def words(self, depth: int) -> str:
        return " ".join(self.word(depth) for _ in range(self.random.randint(1, 3)))

    def param(self, depth: int) -> str:
        name, pattern = self.pick(_NAMES), self.pick(_PATTERNS)
        return self.pick(
            (
                f"${{#{name}}}",
                f"${{{name}{self.pick((':-', '-', ':+', '+'))}{self.word(depth - 1)}}}",
                f"${{{name}{self.pick(('#', '##', '%', '%%'))}{pattern}}}",
                f"${{{name}{self.pick(('/', '//', '/#', '/%'))}{pattern}{self.pick(_REPLACED)}}}",
                f"${{{name}:{self.pick(_SLICES)}}}",
                f"${{{name}{self.pick(('^', '^^', ',', ',,', '~~'))}{self.pick(('', '', '?', '[a-m]'))}}}",
                f"${{{name}@{self.pick('QEPAaUuLkK')}}}",
                f"${{!{self.pick(_SEEN_THROUGH)}{self.pick(('', '', '-d', '#t', ':1', '@Q'))}}}",
                f"${{{name}}}",
            )
        )

    def arith(self, depth: int) -> str:
        if depth <= 0:
            return self.pick(_OPERANDS)
        left, right = self.arith(depth - 1), self.arith(depth - 1)
        operation = f"{left} {self.pick(_OPERATORS)} {right}"
        return self.pick((operation, operation, f"({left})", f"{left} ? {right} : 5", self.pick(_CHANGES)))

    def test(self, depth: int) -> str:
        left, right = self.word(depth), self.word(depth)
        return self.pick(
            (
                f"[[ {left} {self.pick(('==', '!='))} {self.pick(_PATTERNS) or 'x'} ]]",
                f"[[ {left} =~ {self.pick(_REGEXES)} ]]",
                f"[[ {self.pick(('-n', '-z', '!', '-f'))} {left} ]]",
                f"[[ {left} < {right} && {left} || -z {right} ]]",
                f"[ {left} {self.pick(('=', '!=', '-eq', '-a'))} {right} ]",
                f"(({self.arith(2)}))",
                f"[[ -v {self.pick(('s', 'u', 'a[1]', 'a[9]', 'm[k]', 'a[@]', 'nr', '1', '9'))} ]]",
            )
        )

    def command(self, depth: int) -> str:
        word, pattern = self.word(depth), self.pick(_PATTERNS) or "x"
        name = f"v{self.random.randrange(9)}"
        form = self.pick(("%s|", "%q|", "%b|", "%5s|", "%d|", "%.2s|", "%x|", "%c|"))
        traced = self.command(depth - 1) if depth > 0 else "echo x"
        return self.pick(
            (
                f"fn {self.words(depth)}",
                f"fn {self.words(depth)}",
                f"{self.pick(('s', 'u', 't', 'int', 'up', 'nr', 'a[2]', 'm[z]', 'ro'))}{self.pick(('=', '+='))}{word}",
                f"{self.pick(('a', 'b', 'm'))}{self.pick(('=', '+='))}({self.words(depth)})",
                f"set -- {self.words(depth)}",
                f'for i in {self.words(depth)}; do echo "<$i>"; done',
                f"case {word} in {pattern}) echo 1;; {self.pick(_PATTERNS) or 'y'}) echo 2;; *) echo no;; esac",
                f"{self.test(depth)}; echo $?",
                f"cat <<< {word}",
                f"cat <<E\n{self.param(depth)} {self.param(depth)}\nE\n:",
                f"declare {self.pick(('', '-a ', '-A ', '-i ', '-u ', '-r ', '-n '))}{name}={word}; declare -p {name}",
                f'read {self.pick(("", "-r ", "-d b ", "-n 2 "))}x y <<< {word}; fn "$x" "$y"',
                f"printf '{form}' {self.words(depth)}; echo",
                f"echo {self.words(depth)} | {self.pick(('cat', 'wc -w', 'while read -r l; do fn $l; done'))}",
                f"(set -x; {traced}) 2>&1",
                f"x={word} fn $x {self.word(depth)}",
            )
        )

    def script(self) -> str:
        lines = [self.pick(_IFS) + self.command(2) for _ in range(self.random.randint(3, 6))]
        return HEAD + self.pick(_OPTIONS) + "\n".join(lines) + TAIL
