"""The expressions of a program as gawk spells them: its blanks, its parentheses, its escapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ramet.commands.awk.syntax.builtin_names import BUILTINS
from ramet.commands.awk.syntax.lexer import IN_NAMESPACE
from ramet.commands.awk.syntax.tree import (
    Assign,
    Binary,
    Builtin,
    Call,
    Cond,
    Delete,
    Expr,
    ExprStmt,
    Field,
    Getline,
    Grouping,
    In,
    Index,
    Indirect,
    Match,
    Num,
    Print,
    Regex,
    Step,
    Str,
    Typed,
    Unary,
    Var,
)

_BINARY = {
    "^": 13, "*": 10, "/": 10, "%": 10, "+": 9, "-": 9, " ": 8, "<": 7, "<=": 7, "==": 7, "!=": 7, ">": 7, ">=": 7,
    "&&": 4, "||": 3,
}  # fmt: skip
_LEVELS: dict[type, int] = {Field: 14, Step: 12, Unary: 11, Match: 7, Getline: 6, In: 5, Cond: 2, Assign: 1}
_COMPOSED = (Binary, Match, In, Cond, Assign, Getline)
_ESCAPES = {
    7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 0x22: '\\"', 0x5C: "\\\\",
}  # fmt: skip
_ASSUMED: dict[str, tuple[int, Expr]] = {
    "length": (0, Field(Num(0.0, "0"))),
    "sub": (2, Field(Num(0.0, "0"))),
    "gsub": (2, Field(Num(0.0, "0"))),
    "gensub": (3, Field(Num(0.0, "0"))),
    "split": (2, Var("FS")),
    "patsplit": (2, Var("FPAT")),
}
"""What a function works on when it is called with so few arguments."""


def quoted(text: str) -> str:
    """A string constant; whatever is no plain character is spelled by its bytes."""
    spelled = (
        _ESCAPES.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}")
        for byte in text.encode("utf-8", "surrogateescape")
    )
    return f'"{"".join(spelled)}"'


def _slashed(source: str) -> str:
    """A regular expression between slashes; those inside it are escaped where they would end it."""
    out: list[str] = []
    in_set = False
    pos = 0
    while pos < len(source):
        char = source[pos]
        if char == "\\":
            out.append(source[pos : pos + 2])
            pos += 2
            continue
        if char == "[" and not in_set:
            in_set = True
            rest = source[pos + 1 : pos + 3]
            lead = 2 if rest == "^]" else 1 if rest[:1] in ("]", "^") else 0
            out.append(source[pos : pos + 1 + lead])
            pos += 1 + lead
            continue
        if char == "]":
            in_set = False
        out.append("\\/" if char == "/" and not in_set else char)
        pos += 1
    return f"/{''.join(out)}/"


def _level(node: Expr) -> int:
    return _BINARY[node.op] if isinstance(node, Binary) else _LEVELS.get(type(node), 15)


class Spelling:
    """Spells nodes as they are seen from one namespace."""

    def __init__(self, namespace: str = "awk") -> None:
        self.namespace = namespace

    def name(self, name: str) -> str:
        space, found, rest = name.partition(IN_NAMESPACE)
        if not found:
            plain = self.namespace == "awk" or name.isupper() or name in BUILTINS
            return name if plain else f"awk::{name}"
        return rest if space == self.namespace else f"{space}::{rest}"

    def all(self, nodes: tuple[Expr, ...]) -> str:
        return ", ".join(self.expr(node) for node in nodes)

    def expr(self, node: Expr) -> str:
        method: Callable[[Any], str] = getattr(self, f"_{type(node).__name__.lower()}")
        return method(node)

    def held(self, node: Expr, needs: bool) -> str:
        return f"({self.expr(node)})" if needs else self.expr(node)

    def _num(self, node: Num) -> str:
        return node.text or f"{node.value:g}"

    def _str(self, node: Str) -> str:
        return ("_" if node.translated else "") + quoted(node.value)

    def _regex(self, node: Regex) -> str:
        return _slashed(node.source)

    def _typed(self, node: Typed) -> str:
        return "@" + _slashed(node.source)

    def _var(self, node: Var) -> str:
        return self.name(node.name)

    def element(self, name: str, path: tuple[tuple[Expr, ...], ...]) -> str:
        return self.name(name) + "".join(f"[{self.all(subscripts)}]" for subscripts in path)

    def _index(self, node: Index) -> str:
        return self.element(node.name, (*node.outer, node.subscripts))

    def _field(self, node: Field) -> str:
        return f"${self.expr(node.number)}"

    def _assign(self, node: Assign) -> str:
        return f"{self.expr(node.target)} {node.op} {self.expr(node.value)}"

    def _cond(self, node: Cond) -> str:
        return f"{self.expr(node.test)} ? {self.expr(node.yes)} : {self.expr(node.no)}"

    def _binary(self, node: Binary) -> str:
        if node.op == " ":
            return f"{self.joined(node.left)} {self.joined(node.right)}"
        level = _level(node)
        left = self.held(node.left, _level(node.left) < level)
        return f"{left} {node.op} {self.held(node.right, _level(node.right) < level)}"

    def joined(self, node: Expr) -> str:
        """A part of a concatenation."""
        if isinstance(node, Binary) and node.op == " ":
            return self.expr(node)
        return self.held(node, isinstance(node, (*_COMPOSED, Indirect)))

    def _unary(self, node: Unary) -> str:
        same = isinstance(node.operand, Unary) and node.operand.op == node.op != "!"
        operand = self.held(node.operand, same or isinstance(node.operand, _COMPOSED))
        return f"! {operand}" if node.op == "!" else node.op + operand

    def _step(self, node: Step) -> str:
        sign = "++" if node.amount > 0 else "--"
        return sign + self.expr(node.target) if node.prefix else self.expr(node.target) + sign

    def _match(self, node: Match) -> str:
        left = self.held(node.text, isinstance(node.text, _COMPOSED) and not isinstance(node.text, Match))
        return f"{left} {'!~' if node.negated else '~'} {self.held(node.pattern, isinstance(node.pattern, _COMPOSED))}"

    def _in(self, node: In) -> str:
        if len(node.subscripts) > 1:
            what = f"({self.all(node.subscripts)})"
        else:
            what = self.held(node.subscripts[0], isinstance(node.subscripts[0], _COMPOSED))
        return f"{what} in {self.element(node.name, node.outer)}"

    def _grouping(self, node: Grouping) -> str:
        return f"({self.all(node.items)})"

    def _call(self, node: Call) -> str:
        return f"{self.name(node.name)}({self.all(node.args)})"

    def _indirect(self, node: Indirect) -> str:
        return f"@{self.name(node.name)}({self.all(node.args)})"

    def _builtin(self, node: Builtin) -> str:
        few, assumed = _ASSUMED.get(node.name, (-1, None))
        args = (*node.args, assumed) if assumed is not None and len(node.args) == few else node.args
        return f"{node.name}({self.all(args)})"

    def _getline(self, node: Getline) -> str:
        word = "getline" if node.target is None else f"getline {self.expr(node.target)}"
        if node.source is None:
            return word
        source = self.held(node.source, isinstance(node.source, _COMPOSED))
        if node.kind == "file":
            return f"{word} < {source}"
        return f"{source} {'|' if node.kind == 'command' else '|&'} {word}"

    # ------------------------------------------------------------------ statements of one line

    def statement(self, node: Print | Delete | ExprStmt) -> str:
        if isinstance(node, ExprStmt):
            return self.expr(node.expr)
        if isinstance(node, Delete):
            path = node.outer if node.subscripts is None else (*node.outer, node.subscripts)
            return f"delete {self.element(node.name, path)}"
        word, args = "printf" if node.formatted else "print", self.all(node.args)
        if node.target is None:
            return f"{word} {args}".rstrip(" ") if not args else f"{word} {args}"
        if args and not (args[0] == "(" and args[-1] == ")"):
            args = f"({args})"
        return f"{word}{args} {node.redirect} {self.held(node.target, isinstance(node.target, _COMPOSED))}"
