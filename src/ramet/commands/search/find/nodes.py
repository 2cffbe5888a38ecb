"""Nodes of a find expression: visited file, settings, operators; synchronous where nothing awaits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ramet.concurrency.recursion import in_new_task, with_room
from ramet.core.paths import Path
from ramet.core.stat import Stat


class Found:
    """A visited file."""

    __slots__ = ("depth", "path", "stat", "word")

    def __init__(self, word: str, path: Path, stat: Stat, depth: int) -> None:
        self.word, self.path, self.stat, self.depth = word, path, stat, depth

    @property
    def name(self) -> str:
        return self.word.rstrip("/").rpartition("/")[2] or "/"


@dataclass
class Settings:
    """Global options, and results of an evaluation for the walk."""

    follow: str = "P"
    max_depth: int = 1 << 30
    min_depth: int = 0
    depth_first: bool = False
    deletes: bool = False
    prunes: bool = False
    one_system: bool = False
    day_start: bool = False
    files0: str | None = None
    regex_type: str = "emacs"
    top: str = ""
    pruned: bool = False
    quit: bool = False
    status: int = 0
    names_only: bool = False
    """The expression needs names and types only, so no stat."""


class FindQuit(Exception):
    """-quit: ends the walk and the evaluation."""


Now = Callable[[Found], bool]
Later = Callable[[Found], Awaitable[bool]]


@dataclass(frozen=True)
class Node:
    """One part of the expression: `now` if it never awaits, else `later`; `acts`: no implied -print."""

    now: Now | None
    later: Later | None = None
    acts: bool = False

    async def run(self, found: Found) -> bool:
        if self.now is not None:
            return self.now(found)
        assert self.later is not None
        return await self.later(found)


def both(a: Node, b: Node) -> Node:
    acts = a.acts or b.acts
    if a.now is not None and b.now is not None:
        first, second = a.now, b.now
        return Node(lambda f: first(f) and second(f), acts=acts)

    async def later(found: Found) -> bool:
        return await a.run(found) and await b.run(found)

    return Node(None, later, acts)


def all_of(nodes: list[Node]) -> Node:
    """Evaluate nodes until one is false."""
    return _row(nodes, False)


def any_of(nodes: list[Node]) -> Node:
    """Evaluate nodes until one is true."""
    return _row(nodes, True)


def _row(nodes: list[Node], settles: bool) -> Node:
    if len(nodes) == 1:
        return nodes[0]
    acts = any(node.acts for node in nodes)
    tests = [node.now for node in nodes if node.now is not None]
    if len(tests) < len(nodes):

        async def later(found: Found) -> bool:
            for node in nodes:
                if bool(await node.run(found)) is settles:
                    return settles
            return not settles

        return Node(None, later, acts)
    if len(tests) == 2:
        first, second = tests
        if settles:
            return Node(lambda f: first(f) or second(f), acts=acts)
        return Node(lambda f: first(f) and second(f), acts=acts)

    def now(found: Found) -> bool:
        for test in tests:
            if bool(test(found)) is settles:
                return settles
        return not settles

    return Node(now, acts=acts)


def on_own_stack(node: Node) -> Node:
    """Evaluate a deeply nested node without exhausting the stack."""
    if node.now is not None:
        return Node(with_room(node.now), acts=node.acts)
    assert node.later is not None
    return Node(None, in_new_task(node.later), node.acts)


def listed(a: Node, b: Node) -> Node:
    async def later(found: Found) -> bool:
        await a.run(found)
        return await b.run(found)

    return Node(None, later, a.acts or b.acts)


def negated(a: Node) -> Node:
    if a.now is not None:
        test = a.now
        return Node(lambda f: not test(f), acts=a.acts)

    async def later(found: Found) -> bool:
        return not await a.run(found)

    return Node(None, later, a.acts)


TRUE = Node(lambda f: True)
