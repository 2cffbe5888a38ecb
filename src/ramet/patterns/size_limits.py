"""Size limits of regular expressions: engines take more than linear time to compile and cannot be interrupted."""

from __future__ import annotations

from typing import Final

from ramet.concurrency.offload import checkpoint
from ramet.patterns.errors import TOO_BIG, PatternError
from ramet.patterns.tree import Char, Node, Repeat, children

LENGTH: Final = 1 << 20
"""Characters of a pattern."""
GROUPS: Final = 1 << 15
"""Groups in a pattern: to remember where each is takes time for each way to match."""
UNITS: Final = 1 << 20
"""Characters, sets and assertions in a pattern, as often as they are repeated."""
OPTIONS: Final = 1 << 15
"""Repetitions that may be left out: the time to compile them grows with their square."""
SLOW_UNITS: Final = 1 << 14
"""The same with back-references, which need a slow engine."""
_DEEPEST: Final = 400
"""Levels of a tree that engines and their writers are to walk."""


def check(tree: Node, most: int = UNITS) -> None:
    """PatternError when the tree is too big."""
    units = options = 0
    todo = [(tree, 1, 1)]
    while todo:
        node, times, depth = todo.pop()
        units += times
        if isinstance(node, Repeat):
            options += 0 if node.high is None else times * (node.high - node.low)
            times *= max(1, node.low if node.high is None else node.high)
        if units > most or options > OPTIONS or depth > _DEEPEST:
            raise PatternError(TOO_BIG)
        if not len(todo) & 255:
            checkpoint()
        rest = [child for child in children(node) if type(child) is not Char]
        units += times * (len(children(node)) - len(rest))
        todo += [(child, times, depth + 1) for child in rest]
