"""The syntax tree of an awk program: frozen nodes without behaviour."""

from __future__ import annotations

from dataclasses import dataclass, field


class AwkError(Exception):
    """A program that cannot run, or cannot go on; `status` is awk's exit status."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status
        self.warnings: tuple[str, ...] = ()
        """What was dubious in the program before that."""


@dataclass(frozen=True, slots=True)
class Num:
    value: float
    text: str = ""
    """How the program spells it."""


@dataclass(frozen=True, slots=True)
class Str:
    value: str


@dataclass(frozen=True, slots=True)
class Regex:
    source: str


@dataclass(frozen=True, slots=True)
class Typed:
    """`@/.../`: a regular expression as a value."""

    source: str


@dataclass(frozen=True, slots=True)
class Var:
    name: str


@dataclass(frozen=True, slots=True)
class Index:
    name: str
    subscripts: tuple[Expr, ...]
    outer: tuple[tuple[Expr, ...], ...] = ()
    """Subscripts before the last pair of brackets: `a[i][j]` is an element of an array that is an element of `a`."""


@dataclass(frozen=True, slots=True)
class Field:
    number: Expr


@dataclass(frozen=True, slots=True)
class Assign:
    op: str
    target: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Cond:
    test: Expr
    yes: Expr
    no: Expr


@dataclass(frozen=True, slots=True)
class Binary:
    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Unary:
    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Step:
    """++ or --, before or after."""

    amount: int
    target: Expr
    prefix: bool


@dataclass(frozen=True, slots=True)
class Match:
    negated: bool
    text: Expr
    pattern: Expr


@dataclass(frozen=True, slots=True)
class In:
    subscripts: tuple[Expr, ...]
    name: str
    outer: tuple[tuple[Expr, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Grouping:
    """Parentheses: they turn a comparison in `print` into one and keep a list together."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Indirect:
    """`@name(...)`: the variable says which function is meant."""

    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Builtin:
    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Getline:
    kind: str
    """`main`, `file`, `command` or `coprocess`."""
    target: Expr | None = None
    source: Expr | None = None


Expr = (
    Num
    | Str
    | Regex
    | Typed
    | Var
    | Index
    | Field
    | Assign
    | Cond
    | Binary
    | Unary
    | Step
    | Match
    | In
    | Grouping
    | Call
    | Indirect
    | Builtin
    | Getline
)

# ------------------------------------------------------------------------------------------------------ statements


@dataclass(frozen=True, slots=True)
class ExprStmt:
    expr: Expr


@dataclass(frozen=True, slots=True)
class Print:
    args: tuple[Expr, ...]
    formatted: bool = False
    redirect: str = ""
    target: Expr | None = None


@dataclass(frozen=True, slots=True)
class If:
    test: Expr
    yes: Stmt
    no: Stmt | None


@dataclass(frozen=True, slots=True)
class While:
    test: Expr
    body: Stmt


@dataclass(frozen=True, slots=True)
class DoWhile:
    body: Stmt
    test: Expr


@dataclass(frozen=True, slots=True)
class For:
    start: Stmt | None
    test: Expr | None
    step: Stmt | None
    body: Stmt


@dataclass(frozen=True, slots=True)
class ForIn:
    name: str
    array: str
    body: Stmt
    outer: tuple[tuple[Expr, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Switch:
    subject: Expr
    cases: tuple[tuple[Expr | None, tuple[Stmt, ...]], ...]
    """None is the default."""


@dataclass(frozen=True, slots=True)
class Block:
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Simple:
    """next, nextfile, break, continue."""

    word: str


@dataclass(frozen=True, slots=True)
class Exit:
    status: Expr | None


@dataclass(frozen=True, slots=True)
class Return:
    value: Expr | None


@dataclass(frozen=True, slots=True)
class Delete:
    name: str
    subscripts: tuple[Expr, ...] | None
    outer: tuple[tuple[Expr, ...], ...] = ()


Stmt = ExprStmt | Print | If | While | DoWhile | For | ForIn | Switch | Block | Simple | Exit | Return | Delete


@dataclass(frozen=True, slots=True)
class Rule:
    """`kind` is BEGIN, END, BEGINFILE, ENDFILE or empty for one that looks at records."""

    kind: str
    pattern: Expr | None
    until: Expr | None
    body: tuple[Stmt, ...] | None
    """None prints the record."""


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    params: tuple[str, ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Program:
    rules: tuple[Rule, ...]
    functions: dict[str, Function] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    lines: dict[int, int] = field(default_factory=dict, compare=False)
    """In which line of the source a rule, function or statement begins; nodes are known by their identity."""
    odd_escapes: frozenset[str] = frozenset()
    """What is escaped in patterns without meaning anything, which was complained of."""
