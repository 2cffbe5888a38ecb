"""Parse a find expression into closures; a test that never awaits stays synchronous."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable
from dataclasses import dataclass

from ramet.commands.framework.command import UsageError
from ramet.commands.search.find.actions import Actions, ExecBatch
from ramet.commands.search.find.conditions import TIMES, Conditions
from ramet.commands.search.find.nodes import (
    Found,
    Node,
    Now,
    Settings,
    all_of,
    any_of,
    both,
    listed,
    negated,
    on_own_stack,
)
from ramet.commands.search.find.options import FindOptions
from ramet.concurrency.recursion import HOP
from ramet.core.proc import Proc
from ramet.core.streams import Writer


@dataclass
class Expression:
    """A compiled expression with its pending output and commands."""

    proc: Proc
    root: Node
    out: list[bytes]
    batches: list[ExecBatch]
    files: dict[str, Writer]

    @property
    def evaluate_now(self) -> Now | None:
        return self.root.now

    async def evaluate(self, found: Found) -> None:
        await self.root.run(found)

    def push(self) -> None:
        """Flush the output before a message."""
        if self.out:
            self.proc.stdout.write(b"".join(self.out))
            self.out.clear()

    async def flush(self) -> None:
        self.push()
        if self.proc.stdout.full:
            await self.proc.stdout.drain()

    async def finish(self) -> None:
        await self.flush()
        for batch in self.batches:
            await batch.run()
        for writer in self.files.values():
            await self.proc.close(writer)


async def parse_expression(proc: Proc, words: list[str], settings: Settings) -> Expression:
    """Parse the expression of argv; UsageError in find's words."""
    parser = FindParser(proc, words, settings)
    root = await parser.comma() if words else None
    if parser.at < len(words):
        word = words[parser.at]
        if word == ")":
            raise UsageError("you have too many ')'")
        raise UsageError(await parser.misplaced(word))
    if root is None:
        root = Node(None)
        root = parser.print_node(b"\n")
    elif not root.acts:
        root = both(root, parser.print_node(b"\n"))
    return Expression(proc, root, parser.out, parser.batches, parser.files)


class FindParser(Conditions, FindOptions, Actions):
    """Recursive descent over the words of the expression."""

    nested = 0
    """Depth of parentheses."""

    async def comma(self) -> Node:
        node = await self.either()
        while self.peek() == ",":
            self.at += 1
            node = listed(node, await self.either())
        return node

    async def either(self) -> Node:
        nodes = [await self.both()]
        while self.peek() in ("-o", "-or"):
            self.at += 1
            self._operand("-o")
            nodes.append(await self.both())
        return any_of(nodes)

    async def both(self) -> Node:
        nodes = [await self.negation()]
        while (word := self.peek()) is not None and word not in ("-o", "-or", ",", ")"):
            if word in ("-a", "-and"):
                self.at += 1
                self._operand(word)
            nodes.append(await self.negation())
        return all_of(nodes)

    def _operand(self, operator: str) -> None:
        if self.peek() in (None, ")", "-o", "-or", "-a", "-and", ","):
            raise UsageError(f"expected an expression after '{operator}'")

    async def negation(self) -> Node:
        word = self.peek()
        signs = 0
        while word in ("!", "-not"):
            self.at += 1
            if self.peek() is None:
                raise UsageError(f"expected an expression after '{word}'")
            signs += 1
            word = self.peek()
        node = await self.operand(word)
        return negated(node) if signs % 2 else node

    async def operand(self, word: str | None) -> Node:
        if word == "(":
            self.at += 1
            if self.peek() == ")":
                raise UsageError("invalid expression; empty parentheses are not allowed.")
            if self.peek() is None:
                raise UsageError(
                    "invalid expression; expected to find a ')' but didn't see one. "
                    "Perhaps you need an extra predicate after '('"
                )
            self.nested += 1
            if self.nested % HOP:
                node = await self.comma()
            else:
                node = on_own_stack(await asyncio.create_task(self.comma()))
            self.nested -= 1
            if self.peek() != ")":
                raise UsageError("invalid expression; I was expecting to find a ')' somewhere but did not see one.")
            self.at += 1
            return node
        if word in ("-o", "-or", "-a", "-and", ","):
            raise UsageError(f"invalid expression; you have used a binary operator '{word}' with nothing before it.")
        return await self.primary()

    async def misplaced(self, word: str) -> str:
        """Report a path inside the expression; after a pattern, suggest that the shell expanded it."""
        before = self.words[self.at - 2] if self.at >= 2 else ""
        patterns = ("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-lname", "-ilname")
        guess = f"\nfind: possible unquoted pattern after predicate `{before}'?" if before in patterns else ""
        try:
            await self.proc.fs.stat(self.proc.path(word))
        except OSError:
            guess = ""
        return f"paths must precede expression: `{word}'{guess}"

    async def primary(self) -> Node:
        word = self.words[self.at]
        if not word.startswith("-") or word == "-":
            if word == ")":
                raise UsageError("you have too many ')'")
            raise UsageError(await self.misplaced(word))
        self.at += 1
        name = word[1:]
        handler = getattr(self, f"p_{name.replace('-', '_')}", None) if re.fullmatch(r"[a-zA-Z0-9_-]+", name) else None
        if handler is not None:
            result = handler()
            node: Node = await result if isinstance(result, Awaitable) else result
            return node
        if name in TIMES:
            return self.age(name, self.argument(word))
        found = re.fullmatch(r"newer([aBcm])([aBcmt])", name)
        if found is not None:
            return await self.newer(found[1], found[2], self.argument(word))
        unknown = "invalid" if re.fullmatch(r"newer..", name) else "unknown"
        raise UsageError(f"{unknown} predicate `{word}'")
