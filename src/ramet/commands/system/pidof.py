"""pidof, killall and pstree: the processes of the workspace by their whole names, and as the tree that they are."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass

from ramet import patterns
from ramet.commands.framework.command import Command, UsageError, choose, flag, several, value
from ramet.commands.system.env import signal_number
from ramet.commands.system.kill import listed, running, send
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.patterns import PatternError

_LOOK_AGAIN = 0.01
"""Seconds between two looks at what is to end."""


def _comm(line: str) -> str:
    return line.split(" ", 1)[0].rpartition("/")[2]


def _others(proc: Proc) -> list[tuple[int, str, float]]:
    """pid, command line and start of everything but this command."""
    return [(pid, line, start) for pid, _, line, start in running(proc)[:-1]]


# ------------------------------------------------------------------------------------------------------------ pidof


@dataclass(frozen=True, slots=True)
class PidofOptions:
    single: bool = flag("-s", help="only one of them, the newest")
    quiet: bool = flag("-q", help="only the exit status")
    scripts: bool = flag("-x", help="scripts as well, by the name of the shell that runs them")
    separator: str = value("-d", metavar="SEP", default=" ", help="between numbers")
    omit: tuple[str, ...] = several("-o", metavar="PID", help="leave out these; %PPID is the shell")


async def pidof(proc: Proc, o: PidofOptions, operands: list[str]) -> int:
    rows = running(proc)
    omitted = {word for text in o.omit for word in text.split(",")}
    if "%PPID" in omitted:
        omitted.add(str(rows[-1][1]))
    found: list[str] = []
    for word in operands:
        name = word.rpartition("/")[2]
        pids = sorted((pid for pid, line, _ in _others(proc) if _comm(line) == name), reverse=True)
        found += [str(pid) for pid in pids if str(pid) not in omitted]
    if found and not o.quiet:
        await proc.emit(encode(o.separator.join(found[:1] if o.single else found) + "\n"))
    return 0 if found else 1


# ---------------------------------------------------------------------------------------------------------- killall


@dataclass(frozen=True, slots=True)
class KillallOptions:
    icase: bool = flag("-I", "--ignore-case", help="case insensitive process name match")
    list: bool = flag("-l", "--list", help="list all known signal names")
    older: str | None = value("-o", "--older-than", metavar="TIME", help="kill processes older than TIME")
    quiet: bool = flag("-q", "--quiet", help="don't print complaints")
    regexp: bool = flag("-r", "--regexp", help="interpret NAME as an extended regular expression")
    signal: str = value("-s", "--signal", metavar="SIGNAL", default="TERM", help="send this signal instead of SIGTERM")
    user: str | None = value("-u", "--user", metavar="USER", help="kill only process(es) running as USER")
    verbose: bool = flag("-v", "--verbose", help="report if the signal was successfully sent")
    wait: bool = flag("-w", "--wait", help="wait for processes to die")
    younger: str | None = value("-y", "--younger-than", metavar="TIME", help="kill processes younger than TIME")


def _signals(words: list[str]) -> list[str]:
    """`killall -9 NAME`, `killall -HUP NAME`."""
    for place, word in enumerate(words):
        if re.fullmatch(r"-(\d+|[A-Z][A-Z0-9]+)", word):
            return [*words[:place], f"--signal={word[1:]}", *words[place + 1 :]]
    return words


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "M": 2592000, "y": 31536000}


def _age(text: str | None) -> float | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d*)?)([smhdwMy])", text)
    if found is None:
        raise UsageError("Invalid time format", hint=False)
    return float(found[1]) * _UNITS[found[2]]


def _tester(proc: Proc, o: KillallOptions, word: str) -> Callable[[str], bool] | None:
    """Whether a name is meant by a word; None where it cannot be read."""
    if not o.regexp:
        name = word.rpartition("/")[2]
        return (lambda comm: comm.lower() == name.lower()) if o.icase else lambda comm: comm == name
    try:
        seconds = proc.budget.limits.regex_seconds
        matcher = patterns.compile(encode(word), patterns.POSIX_EXTENDED, icase=o.icase, seconds=seconds)
    except PatternError:
        proc.complain(f"Bad regular expression: {word}")
        return None
    return lambda comm: matcher.test(encode(comm))


async def killall(proc: Proc, o: KillallOptions, operands: list[str]) -> int:
    if o.list:
        await proc.emit(encode(listed()))
        return 0
    number = signal_number(o.signal)
    if number is None:
        proc.stderr.write(encode(f"{o.signal}: unknown signal; killall -l lists signals.\n"))
        return 1
    if o.user is not None and o.user not in (proc.user.name, str(proc.user.uid)):
        proc.stderr.write(encode(f"Cannot find user {o.user}\n"))
        return 1
    older, younger = _age(o.older), _age(o.younger)
    if not operands and o.user is None:
        raise UsageError("no process selection criteria")
    status = 0
    killed: set[int] = set()
    # The shell that runs this is not among those that it can do without.
    rows = _others(proc)[1:]
    for word in operands or [""]:
        await proc.budget.yield_turn()
        means = _tester(proc, o, word) if operands else lambda _: True
        if means is None:
            return 1
        ages = ((pid, line, proc.now() - start) for pid, line, start in rows if means(_comm(line)))
        meant = [
            (pid, line)
            for pid, line, age in ages
            if (older is None or age > older) and (younger is None or age < younger) and send(proc, pid, number)
        ]
        if not meant:
            status = 1
            if not o.quiet:
                proc.stderr.write(encode(f"{word}: no process found\n"))
        if o.verbose:
            lines = (f"Killed {_comm(line)}({pid}) with signal {number}\n" for pid, line in meant)
            proc.stderr.write(encode("".join(lines)))
        killed.update(pid for pid, _ in meant)
    while o.wait and killed & {pid for pid, *_ in _others(proc)}:
        await asyncio.sleep(_LOOK_AGAIN)
        proc.budget.check()
    return status


# ----------------------------------------------------------------------------------------------------------- pstree


@dataclass(frozen=True, slots=True)
class PstreeOptions:
    arguments: bool = flag("-a", "--arguments", help="show command line arguments")
    signs: str = choose(
        {"-A --ascii": "ascii", "-U --unicode": "unicode"},
        default="ascii",
        help={
            "-A --ascii": "use ASCII line drawing characters",
            "-U --unicode": "use UTF-8 (Unicode) line drawing characters",
        },
    )
    apart: bool = flag("-c", "--compact-not", help="don't compact identical subtrees")
    numeric: bool = flag("-n", "--numeric-sort", help="sort output by PID")
    pids: bool = flag("-p", "--show-pids", help="show PIDs; implies -c")
    parents: bool = flag("-s", "--show-parents", help="show parents of the selected process")


@dataclass(slots=True)
class _Node:
    pid: int
    parent: int
    line: str
    children: list[_Node]


_SIGNS = {"ascii": ("-+-", "---", "|-", "`-", "| "), "unicode": ("─┬─", "───", "├─", "└─", "│ ")}
"""Before the first of several children, before an only child, before others, before the last, beside them."""


class _Tree:
    def __init__(self, o: PstreeOptions) -> None:
        self.o = o
        self.first, self.only, self.next, self.last, self.beside = _SIGNS[o.signs]

    def label(self, node: _Node) -> str:
        name = _comm(node.line)
        number = "" if not self.o.pids else f",{node.pid}" if self.o.arguments else f"({node.pid})"
        rest = node.line.partition(" ")[2].replace("\\", "\\\\") if self.o.arguments else ""
        return f"{name}{number} {rest}" if rest else name + number

    def sorted(self, node: _Node) -> list[_Node]:
        return sorted(node.children, key=lambda child: (0 if self.o.numeric else _comm(child.line), child.pid))

    def lines(self, node: _Node) -> list[str]:
        """A process and what is below it, to the right of it."""
        label = self.label(node)
        blocks = [self.lines(child) for child in self.sorted(node)]
        if not (self.o.apart or self.o.pids):
            counts = [(block, len(list(same))) for block, same in itertools.groupby(blocks)]
            blocks = [[f"{n}*[{block[0]}]", *block[1:]] if n > 1 else block for block, n in counts]
        if not blocks:
            return [label]
        out: list[str] = []
        pad = " " * (len(label) + 1)
        for place, block in enumerate(blocks):
            last = place == len(blocks) - 1
            lead = pad + (self.last if last else self.next)
            if not place:
                lead = label + (self.only if last else self.first)
            out.append(lead + block[0])
            out += [pad + ("  " if last else self.beside) + line for line in block[1:]]
        return out

    def with_arguments(self, node: _Node, pad: str = "  ") -> list[str]:
        """A process a line, what is below it indented."""
        out = [self.label(node)]
        children = self.sorted(node)
        for place, child in enumerate(children):
            last = place == len(children) - 1
            head, *rest = self.with_arguments(child)
            out.append(pad + (self.last if last else self.next) + head)
            out += [pad + ("  " if last else self.beside) + line for line in rest]
        return out


async def pstree(proc: Proc, o: PstreeOptions, operands: list[str]) -> int:
    nodes = {pid: _Node(pid, parent, line, []) for pid, parent, line, _ in running(proc)}
    roots: list[_Node] = []
    for node in nodes.values():
        above = nodes.get(node.parent)
        (roots if above is None or above is node else above.children).append(node)
    for word in operands[:1]:
        if word.isdigit():
            roots = [nodes[int(word)]] if int(word) in nodes else []
        elif word != proc.user.name:
            proc.stderr.write(encode(f"No such user name: {word}\n"))
            return 1
    if o.parents:
        roots = [_chain(nodes, root) for root in roots]
    tree = _Tree(o)
    drawn = [line for root in roots for line in (tree.with_arguments(root) if o.arguments else tree.lines(root))]
    await proc.emit(encode("".join(f"{line}\n" for line in drawn)))
    return 0


def _chain(nodes: dict[int, _Node], node: _Node) -> _Node:
    """What is above a process, with nothing else below."""
    while (above := nodes.get(node.parent)) is not None and above is not node:
        node = _Node(above.pid, above.parent, above.line, [node])
    return node


COMMANDS = [
    Command(
        "pidof",
        pidof,
        PidofOptions,
        summary="Find the process IDs of running programs of the workspace.",
        usage="[OPTION]... PROGRAM...",
        ignored=("-c", "-n", "-z"),
    ),
    Command(
        "killall",
        killall,
        KillallOptions,
        summary="Signal processes of the workspace by name.",
        usage="[OPTION]... [--] NAME...",
        rewrite=_signals,
        ignored=("-e --exact",),
        refused={
            "-g --process-group": "processes of a workspace have no groups",
            "-i --interactive": "there is no terminal to ask at",
            "-n --ns=": "there are no namespaces",
            "-Z --context=": "there are no security contexts",
        },
    ),
    Command(
        "pstree",
        pstree,
        PstreeOptions,
        summary="Display a tree of the processes of the workspace.",
        usage="[OPTION]... [PID | USER]",
        ignored=("-h --highlight-all", "-l --long", "-t --thread-names", "-T --hide-threads", "-u --uid-changes"),
    ),
]
