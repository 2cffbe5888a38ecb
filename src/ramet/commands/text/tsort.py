"""tsort: sort topologically, with the loops that GNU tsort reports."""

from __future__ import annotations

from itertools import islice

from ramet.commands.framework.command import Command, called
from ramet.commands.framework.inputs import Inputs
from ramet.commands.framework.stdin_errors import StdinError
from ramet.concurrency.sizes import BATCH
from ramet.core.paths import decode
from ramet.core.proc import Proc


async def tsort(proc: Proc, o: object, operands: list[str]) -> int:
    inputs = Inputs(proc, operands)
    words: list[bytes] = []
    async for block in inputs.joined_lines():
        words += block.split()
    if inputs.status:
        return inputs.status
    name = "-" if not operands else operands[0]
    if len(words) % 2:
        proc.complain(f"{called(name)}: input contains an odd number of tokens")
        return 1
    after: dict[bytes, list[bytes]] = {}
    before: dict[bytes, int] = {}
    for begin in range(0, len(words), 2 * BATCH):
        part = words[begin : begin + 2 * BATCH]
        for a, b in zip(part[::2], part[1::2], strict=True):
            after.setdefault(a, [])
            before.setdefault(a, 0)
            before.setdefault(b, 0)
            if a != b:
                after[a].append(b)
                before[b] += 1
        await proc.budget.yield_turn()
    out: list[bytes] = []
    ready: list[bytes] = []
    names = iter(before)
    while part := list(islice(names, 2 * BATCH)):
        ready += [node for node in part if not before[node]]
        await proc.budget.yield_turn()
    ready.sort()
    status = 0
    while True:
        begin = len(out)
        out += ready
        while begin < len(out):
            # Newly ready names go to the end of the queue, newest edge first.
            for follower in reversed(after.pop(out[begin], ())):
                before[follower] -= 1
                if before[follower] == 0:
                    out.append(follower)
            begin += 1
            if not begin & 1023:
                await proc.budget.yield_turn()
        if len(out) == len(before):
            break
        status = 1
        left = sorted(n for n, c in before.items() if c > 0)
        proc.complain(f"{called(name)}: input contains a loop:")
        for node in _break_loop(after, before, left):
            proc.complain(decode(node))
        ready = [n for n in left if before[n] == 0]
        await proc.budget.yield_turn()
    for begin in range(0, len(out), 2 * BATCH):
        await proc.emit(b"\n".join(out[begin : begin + 2 * BATCH]) + b"\n")
        await proc.budget.yield_turn()
    return status


def _break_loop(after: dict[bytes, list[bytes]], before: dict[bytes, int], names: list[bytes]) -> list[bytes]:
    """Find a loop by walking against the edges from the first name, and remove the edge that closes it.

    Names are tried in order, round after round, as GNU walks its tree: the reported loop depends on it.
    """
    newest, towards = names[0], dict[bytes, bytes]()
    turn = 1
    while True:
        name = names[turn % len(names)]
        turn += 1
        if newest not in after.get(name, ()):
            continue
        if name not in towards:
            towards[name] = newest
            newest = name
            continue
        loop = [newest]
        while loop[-1] != name:
            loop.append(towards[loop[-1]])
        edges = after[name]
        del edges[len(edges) - 1 - edges[::-1].index(newest)]
        before[newest] -= 1
        return loop


COMMANDS = [
    Command(
        "tsort",
        tsort,
        summary="Write totally ordered list consistent with the partial ordering in FILE.",
        usage="[FILE]",
        max_operands=1,
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("", "standard input: {}", status=0),
    ),
]
