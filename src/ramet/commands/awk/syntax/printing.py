"""A program printed back as gawk lays it out, with its comments and, after a run, with how often each part ran."""

from __future__ import annotations

from collections.abc import Mapping

from ramet.commands.awk.syntax.spelling import Spelling, quoted
from ramet.commands.awk.syntax.tree import (
    Block,
    Delete,
    DoWhile,
    Exit,
    ExprStmt,
    For,
    ForIn,
    Function,
    If,
    Place,
    Places,
    Print,
    Program,
    Return,
    Rule,
    Simple,
    Stmt,
    Switch,
    While,
)

Counts = Mapping[tuple[int, str], int]
"""How often what happened to a node: `run`, `yes`, `no`, `body`, `test`, or the number of a case."""
_KINDS = ("BEGIN", "BEGINFILE", "", "ENDFILE", "END")
_NOWHERE = Place(0, 0)


def printed(program: Program, counts: Counts | None = None) -> str:
    return _Printer(program, counts).all()


def messages(program: Program, name: str) -> str:
    """The texts that are to be translated, as a template for translators."""
    assert program.places is not None
    out: list[str] = []
    for line, text, plural in sorted(program.places.messages, key=lambda found: found[0]):
        place = f"#: {name}:{line}\n" if name else ""
        rest = f'msgid_plural {quoted(plural)}\nmsgstr[0] ""\nmsgstr[1] ""\n' if plural else 'msgstr ""\n'
        out.append(f"{place}msgid {quoted(text)}\n{rest}\n")
    return "".join(out)


class _Printer:
    def __init__(self, program: Program, counts: Counts | None) -> None:
        assert program.places is not None
        self.program, self.counts = program, counts
        self.places: Places = program.places
        self.out: list[str] = []
        self.depth = 0
        self.spelling = Spelling()
        items: list[Rule | Function] = [*program.rules, *program.functions.values()]
        self.notes: dict[int, list[tuple[int, str]]] = {}
        self.waiting: list[tuple[int, str]] = []
        """Comments of the item that is being printed which have not come by yet."""
        comments = sorted(self.places.comments.items())
        for item in sorted(items, key=lambda item: self.place(item).start):
            end = self.place(item).end
            self.notes[id(item)] = [comment for comment in comments if comment[0] < end]
            comments = comments[len(self.notes[id(item)]) :]
        self.rest = comments

    def place(self, node: object) -> Place:
        return self.places.of.get(id(node), _NOWHERE)

    def count(self, node: object, what: str = "run") -> int:
        return 0 if self.counts is None else self.counts.get((id(node), what), 0)

    def line(self, text: str, count: int = 0) -> None:
        lead = "" if self.counts is None else f"{count:6d}  " if count else "\t"
        self.out.append(lead + "\t" * self.depth + text + "\n")

    def all(self) -> str:
        for name in self.program.libraries:
            self.line(f"@load {quoted(name)}")
        if self.program.libraries:
            self.out.append("\n")
        for kind in _KINDS:
            rules = [rule for rule in self.program.rules if rule.kind == kind]
            if rules and self.counts is not None:
                self.out.append(f"\t# {kind + ' rule(s)' if kind else 'Rule(s)'}\n\n")
            for rule in rules:
                self.rule(rule)
        if self.rest:
            self.waiting = self.rest
            self.comments(len(self.places.text))
        if self.program.functions and self.counts is not None:
            self.out.append("\n\t# Functions, listed alphabetically\n")
        for _, function in sorted(self.program.functions.items()):
            self.function(function)
        return "".join(self.out)

    # ------------------------------------------------------------------ comments

    def comments(self, before: int) -> None:
        """Those that stand before a place, each in a line of its own; between those far apart a line stays empty."""
        last: int | None = None
        while self.waiting and self.waiting[0][0] < before:
            at, text = self.waiting.pop(0)
            if last is not None and self.depth == 0 and self.places.text[last:at].count("\n") > 1:
                self.out.append("\n")
            self.line(text)
            last = at + len(text)

    def beside(self, end: int) -> str:
        """The comment that stands in the same line behind a place."""
        if self.waiting and end >= 0 and self.waiting[0][0] >= end:
            at, text = self.waiting[0]
            if not self.places.text[end:at].strip(" \t;"):
                self.waiting.pop(0)
                return f"\t{text}"
        return ""

    # ------------------------------------------------------------------ rules and functions

    def enter(self, item: Rule | Function) -> Place:
        place = self.place(item)
        self.waiting = self.notes[id(item)]
        if place.namespace != self.spelling.namespace:
            self.spelling = Spelling(place.namespace)
            self.out.append(f"\n@namespace {quoted(place.namespace)}\n\n")
        return place

    def rule(self, rule: Rule) -> None:
        place = self.enter(rule)
        if rule.pattern is not None:
            self.comments(max(place.brace, place.start))
        self.comments(place.start)
        head = rule.kind
        if rule.pattern is not None:
            head = self.spelling.expr(rule.pattern)
            head += f", {self.spelling.expr(rule.until)}" if rule.until is not None else ""
        taken = self.count(rule, "body") if rule.pattern is not None else 0
        head = (f"{head} {{" if head else "{") + (f" # {taken}" if taken else "")
        self.line(head + self.beside(place.brace), self.count(rule, "test") if not rule.kind else 0)
        self.depth += 1
        if rule.body is None:
            self.line("print", taken)
        else:
            self.several(rule.body)
        self.comments(place.end)
        self.depth -= 1
        self.line("}")
        self.out.append("\n")

    def function(self, function: Function) -> None:
        self.out.append("\n")
        place = self.enter(function)
        self.comments(place.brace)
        name = self.spelling.name(function.name)
        self.line(f"function {name}({', '.join(map(self.spelling.name, function.params))})", self.count(function))
        self.line("{")
        self.depth += 1
        self.several(function.body)
        self.comments(place.end)
        self.depth -= 1
        self.line("}")

    # ------------------------------------------------------------------ statements

    def several(self, statements: tuple[Stmt, ...]) -> None:
        for statement in statements:
            self.statement(statement)

    def body(self, node: Stmt) -> None:
        self.depth += 1
        self.statement(node)
        self.depth -= 1

    def opened(self, node: Stmt) -> str:
        """What stands behind the brace that a block begins with."""
        block = isinstance(node, Block) and self.places.text[self.place(node).start : self.place(node).start + 1] == "{"
        return self.beside(self.place(node).start + 1) if block else ""

    def statement(self, node: Stmt) -> None:
        place = self.place(node)
        if isinstance(node, Block):
            self.several(node.body)
            if node.body:
                self.comments(place.end)
            return
        self.comments(place.start)
        s = self.spelling
        if isinstance(node, (ExprStmt, Print, Delete)):
            self.simple(node, s.statement(node))
        elif isinstance(node, Simple):
            self.simple(node, node.word)
        elif isinstance(node, Exit):
            self.simple(node, "exit" if node.status is None else f"exit {s.expr(node.status)}")
        elif isinstance(node, Return):
            self.simple(node, "return" if node.value is None else f"return {s.expr(node.value)}")
        elif isinstance(node, If):
            self.condition(node)
        elif isinstance(node, While):
            self.loop(node, f"while ({s.expr(node.test)})", node.body)
        elif isinstance(node, ForIn):
            self.loop(node, f"for ({s.name(node.name)} in {s.element(node.array, node.outer)})", node.body)
        elif isinstance(node, For):
            self.loop(node, self.turns(node), node.body)
        elif isinstance(node, DoWhile):
            self.loop(node, "do", node.body, f"}} while ({s.expr(node.test)})")
        else:
            self.switch(node)

    def simple(self, node: Stmt, text: str) -> None:
        self.line(text + self.beside(self.place(node).end), self.count(node))

    def turns(self, node: For) -> str:
        s = self.spelling
        start, step = ("" if part is None else self.short(part) for part in (node.start, node.step))
        test = "" if node.test is None else s.expr(node.test)
        if not (start or test or step):
            return "for (;;)"
        return f"for ({start}; {test}; {step})".replace("; ;", ";;").replace("; )", ";)")

    def short(self, node: Stmt) -> str:
        assert isinstance(node, (ExprStmt, Print, Delete))
        return self.spelling.statement(node)

    def loop(self, node: Stmt, head: str, body: Stmt, end: str = "}") -> None:
        self.line(f"{head} {{{self.opened(body)}", self.count(node, "body"))
        self.body(body)
        self.line(end + (self.beside(self.place(node).end) if end != "}" else ""))

    def condition(self, node: If) -> None:
        lead, count = "", self.count(node)
        while True:
            taken = self.count(node, "yes")
            head = f"{lead}if ({self.spelling.expr(node.test)}) {{" + (f" # {taken}" if taken else "")
            self.line(head + self.opened(node.yes), count)
            self.body(node.yes)
            if isinstance(node.no, If):
                node, lead = node.no, "} else "
                count = self.count(node)
                continue
            if node.no is not None:
                self.line(f"}} else {{{self.opened(node.no)}", self.count(node, "no"))
                self.body(node.no)
            self.line("}")
            return

    def switch(self, node: Switch) -> None:
        self.line(f"switch ({self.spelling.expr(node.subject)}) {{", self.count(node))
        for number, (label, body) in enumerate(node.cases):
            if body:
                self.depth += 1
                self.comments(self.place(body[0]).start)
                self.depth -= 1
            head = "default:" if label is None else f"case {self.spelling.expr(label)}:"
            self.line(head, self.count(node, str(number)))
            self.depth += 1
            self.several(body)
            self.depth -= 1
        self.line("}")
