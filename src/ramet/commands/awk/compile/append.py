"""Compile assignments that append to their target: `s = s $0 ","`, `a[$1] = a[$1] $2`.

- Python appends to a string in place while nothing else refers to it. So the variable drops its reference during the
  append, and a text that grows line by line costs linear time.
"""

from __future__ import annotations

from ramet.commands.awk.compile.analyze import walk
from ramet.commands.awk.syntax.tree import (
    Assign,
    Binary,
    Builtin,
    Call,
    Cond,
    Expr,
    ExprStmt,
    Field,
    Getline,
    Grouping,
    If,
    Index,
    Indirect,
    Num,
    Step,
    Str,
    Var,
)

_STEADY = (Num, Str, Var, Field, Index, Grouping, Binary)
"""Nodes of subscripts that can be evaluated repeatedly."""

_CHANGING = frozenset(("sub", "gsub", "split", "patsplit", "match", "asort", "asorti"))


def operands(node: Expr) -> list[Expr]:
    """Return what a concatenation puts together; anything else is alone."""
    found: list[Expr] = []
    todo = [node]
    while todo:
        current = todo.pop()
        if isinstance(current, Binary) and current.op == " ":
            todo += [current.right, current.left]
        else:
            found.append(current)
    return found


def bare(node: Expr) -> Expr:
    """Return an expression without the parentheses around it."""
    while isinstance(node, Grouping) and len(node.items) == 1:
        node = node.items[0]
    return node


def is_quiet(node: Expr) -> bool:
    """Return whether working out an expression changes nothing."""
    loud = (Assign, Step, Call, Indirect, Getline)
    return not any(
        isinstance(part, loud) or (isinstance(part, Builtin) and part.name in _CHANGING) for part in walk(node)
    )


def added(node: Assign) -> list[Expr]:
    """Return what an assignment puts behind that which it assigns to; nothing if it does something else."""
    if node.op != "=" or not _is_steady(node.target):
        return []
    first, rest = _split(node.value)
    return rest if first == node.target else []


def chosen(node: Assign) -> If | None:
    """Split `s = s ? s "," $1 : $1` into two assignments if one of them appends."""
    if node.op != "=" or not _is_steady(node.target):
        return None
    first, rest = _split(node.value)
    if not isinstance(first, Cond):
        return None
    ways = [Assign("=", node.target, _append(way, rest)) for way in (first.yes, first.no)]
    if not any(added(way) or chosen(way) for way in ways):
        return None
    return If(first.test, ExprStmt(ways[0]), ExprStmt(ways[1]))


def _is_steady(target: Expr) -> bool:
    if isinstance(target, Index):
        return not target.outer and all(isinstance(node, _STEADY) for node in walk(target.subscripts))
    return isinstance(target, Var)


def _split(value: Expr) -> tuple[Expr, list[Expr]]:
    """Return the first thing that a text is made of, and the others."""
    first, *rest = operands(bare(value))
    while isinstance(first, Grouping) and len(first.items) == 1:
        first, *more = operands(bare(first))
        rest = more + rest
    return first, rest


def _append(first: Expr, rest: list[Expr]) -> Expr:
    for one in rest:
        first = Binary(" ", first, one)
    return first
