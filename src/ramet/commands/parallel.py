"""parallel: one command line per argument, several at a time, output of each kept together."""

from __future__ import annotations

import asyncio
import itertools
import re
from dataclasses import dataclass

from ramet.commands.declare import Command, UsageError, flag, mixed, several, shown, value
from ramet.commands.inputs import read_lines
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.streams import Capture, Null


@dataclass(frozen=True, slots=True)
class ParallelOptions:
    jobs: str = value(
        "-j", "--jobs", "-P", "--max-procs", metavar="N", default="8", help="run up to N jobs in parallel"
    )
    keep_order: bool = flag("-k", "--keep-order", help="keep sequence of output same as the order of input")
    arg_files: tuple[str, ...] = several("-a", "--arg-file", metavar="FILE", help="use FILE as input source")
    replace: str = value(
        "-I", metavar="REPLACE-STR", default="{}", help="use the replacement string REPLACE-STR instead of {}"
    )
    max_args: str | None = value("-n", "-N", "--max-args", metavar="N", help="use at most N arguments per command line")
    null: bool = flag("-0", "--null", help="use NUL as delimiter")
    delimiter: str | None = value("-d", "--delimiter", metavar="DELIM", help="input items are terminated by DELIM")
    colsep: str | None = value("-C", "--colsep", metavar="REGEXP", help="split each input line into columns")
    dry_run: bool = flag("--dry-run", "--dryrun", help="print the job to run on stdout, but do not run the job")
    tag: bool = flag("--tag", help="tag lines with arguments")
    verbose: bool = flag("-v", "--verbose", "-t", help="print the job to be run")
    halt: str | None = value("--halt", metavar="VAL", help="now,fail=1 or soon,fail=1: stop at the first failure")
    no_run: bool = flag("-r", "--no-run-if-empty", help="if the input is empty, do not run the command")
    link: bool = flag("--link", "--xapply", help="link multiple input sources")
    group: bool = mixed(
        flag("--group", help="group output (default)"),
        flag("-u", "--ungroup", "--line-buffer", "--lb", const=False, help="do not group output"),
        default=True,
    )
    quote: bool = flag("-q", "--quote", help="quote the command")
    retries: str | None = value("--retries", metavar="N", help="run a failing job up to N times")


async def parallel(proc: Proc, o: ParallelOptions, operands: list[str]) -> int:
    command, sources = await _sources(proc, o, operands)
    combined = list(zip(*sources, strict=False)) if o.link else list(itertools.product(*sources))
    items: list[tuple[str, ...]] = combined
    if o.max_args and o.max_args.isdigit() and int(o.max_args):
        count = int(o.max_args)
        flat = [words[0] for words in combined]
        items = [tuple(flat[i : i + count]) for i in range(0, len(flat), count)]
    jobs = max(1, int(o.jobs)) if o.jobs.isdigit() else 8
    if o.jobs == "0":
        jobs = 64
    template = " ".join(command)
    lines = [_fill(template, words, number, o) for number, words in enumerate(items, 1)]
    if o.dry_run:
        await proc.emit(encode("".join(line + "\n" for line in lines)))
        return 0
    return await _Pool(proc, o, jobs).run(lines, items)


async def _sources(proc: Proc, o: ParallelOptions, operands: list[str]) -> tuple[list[str], list[list[str]]]:
    marks = (":::", "::::", ":::+", "::::+")
    cut = next((i for i, w in enumerate(operands) if w in marks), len(operands))
    command, rest = operands[:cut], operands[cut:]
    sources: list[list[str]] = []
    separator = (
        b"\0" if o.null else encode(o.delimiter.replace("\\n", "\n").replace("\\t", "\t")) if o.delimiter else b"\n"
    )

    async def from_file(word: str) -> list[str]:
        try:
            return [decode(line) for line in await read_lines(proc, word, separator)]
        except OSError as error:
            raise UsageError(
                f"Error: Cannot open input file `{word}': {reason(error)}.", hint=False, status=255
            ) from None

    sources += [await from_file(word) for word in o.arg_files]
    current = ""
    for word in rest:
        if word in marks:
            current = word
            if word.startswith(":::") and not word.startswith("::::"):
                sources.append([])
        elif current.startswith("::::"):
            sources.append(await from_file(word))
        else:
            sources[-1].append(word)
    if not sources:
        sources = [await from_file("-")]
    if o.colsep is not None:
        rows = [re.split(o.colsep, line) for line in sources[0]]
        return command or ["{}"], [list(map("\0".join, rows))]
    return command or ["{}"], sources


_PLACE = re.compile(r"\{(?:(\d+)?(\.|/|//|/\.|\.\.)?|#|%)\}")


def _fill(template: str, words: tuple[str, ...], number: int, o: ParallelOptions) -> str:
    if len(words) == 1 and "\0" in words[0]:
        words = tuple(words[0].split("\0"))
    if o.replace != "{}":
        template = template.replace(o.replace, "{}")
    used = False

    def expand(found: re.Match[str]) -> str:
        nonlocal used
        if found[0] == "{#}":
            return str(number)
        if found[0] == "{%}":
            return "1"
        used = True
        chosen = words if not found[1] else words[int(found[1]) - 1 : int(found[1])]
        return " ".join(shown(_part(w, found[2] or "")) for w in chosen)

    line = _PLACE.sub(expand, template)
    if not used:
        line += "".join(f" {shown(w)}" for w in words)
    return line


def _part(word: str, how: str) -> str:
    name = word.rpartition("/")[2]
    stem = word[: word.rfind(".")] if "." in name else word
    if how == ".":
        return stem
    if how == "/":
        return name
    if how == "//":
        return word.rpartition("/")[0] or "."
    return stem.rpartition("/")[2] if how == "/." else word


class _Pool:
    def __init__(self, proc: Proc, o: ParallelOptions, jobs: int) -> None:
        self.proc, self.o, self.jobs = proc, o, jobs
        self.failed = 0
        self.stop = False

    async def run(self, lines: list[str], items: list[tuple[str, ...]]) -> int:
        gate = asyncio.Semaphore(self.jobs)
        results: dict[int, bytes] = {}
        shown_upto = 0

        async def one(index: int) -> None:
            nonlocal shown_upto
            async with gate:
                if self.stop:
                    return
                data = await self._job(lines[index], items[index])
            if not self.o.keep_order:
                await self.proc.emit(data)
                return
            results[index] = data
            while shown_upto in results:
                block = results.pop(shown_upto)
                shown_upto += 1
                await self.proc.emit(block)

        tasks = [asyncio.create_task(one(i)) for i in range(len(lines))]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return min(self.failed, 101)

    async def _job(self, line: str, words: tuple[str, ...]) -> bytes:
        if self.o.verbose:
            self.proc.stderr.write(encode(line + "\n"))
        attempts = int(self.o.retries) if self.o.retries and self.o.retries.isdigit() else 1
        data = b""
        for _ in range(max(1, attempts)):
            out = Capture(self.proc.budget.limits.output_bytes)
            status = await self.proc.run(["bash", "-c", line], stdin=Null(), stdout=out)
            data = out.getvalue()
            if status == 0:
                break
        else:
            self.failed += 1
            self.stop = self.stop or (self.o.halt is not None and "fail=1" in self.o.halt)
        if self.o.tag:
            tag = encode("\t".join(words)) + b"\t"
            data = b"".join(tag + piece for piece in data.splitlines(keepends=True))
        return data


COMMANDS = [
    Command(
        "parallel",
        parallel,
        ParallelOptions,
        summary="Run a command line for each argument, several at a time.",
        usage="[OPTION]... [COMMAND [ARGUMENTS]] [::: ARGUMENTS | :::: FILE...]",
        operands_first=True,
        bad_usage=255,
        ignored=(
            "--bar",
            "--eta",
            "--progress",
            "--will-cite",
            "--no-notice",
            "--citation",
            "--joblog=",
            "--load=",
            "--memfree=",
            "--delay=",
            "--timeout=",
            "-m -X --xargs",
            "--line-buffered",
        ),
        refused={
            "-S= --sshlogin=": "there are no other machines",
            "--pipe": "use split and a loop",
            "--semaphore": "there is no shared state between runs",
            "--results=": "redirect the output instead",
        },
        examples=[
            ("parallel echo {} ::: a b c", "one echo per word"),
            ("ls *.txt | parallel -k gzip -k", "compress all"),
        ],
    )
]
