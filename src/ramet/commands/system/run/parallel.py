"""parallel: run one command line per argument, several at a time, with grouped output."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial

from ramet import patterns
from ramet.commands.files.rename import perl_change
from ramet.commands.framework.command import Command, UsageError, choose, flag, mixed, several, value
from ramet.commands.framework.inputs import read_lines, slurp
from ramet.commands.framework.posix_regex import offload_long
from ramet.commands.system.run.parallel_lines import MARKS, Change, Template, Words, combined, trimmed
from ramet.concurrency.offload import offload_large
from ramet.concurrency.sizes import BATCH
from ramet.concurrency.tasks import give_up
from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.paths import decode, encode, parse
from ramet.core.proc import Proc
from ramet.core.streams import BytesReader, Capture, Null, Reader

_SLOTS = 8
_UNLIMITED = 64


def _count(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"Error: {text!r} is not a number.", 255, hint=False)
    return int(text)


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+)([kKmMgG]?)", text)
    if found is None:
        raise UsageError(f"Error: {text!r} is not a size.", 255, hint=False)
    return int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[found[2].lower()]


@dataclass(frozen=True, slots=True)
class ParallelOptions:
    jobs: str = value(
        "-j", "--jobs", "-P", "--max-procs", metavar="N", default=str(_SLOTS), help="run up to N jobs in parallel"
    )
    keep_order: bool = flag("-k", "--keep-order", help="keep sequence of output same as the order of input")
    arg_files: tuple[str, ...] = several("-a", "--arg-file", metavar="FILE", help="use FILE as input source")
    replace: str = value(
        "-I", metavar="REPLACE-STR", default="{}", help="use the replacement string REPLACE-STR instead of {}"
    )
    max_args: int = value(
        "-n", "-N", "--max-args", "--max-replace-args", "-L", "--max-lines", metavar="N", default=0, convert=_count,
        help="use at most N arguments (with --pipe: records) per command line",
    )  # fmt: skip
    many: str = choose(
        {"-m": "m", "-X --xargs": "X"},
        default="",
        help="as many arguments as jobs leave; -X repeats the word around {}",
    )
    null: bool = flag("-0", "--null", help="use NUL as delimiter")
    delimiter: str | None = value("-d", "--delimiter", metavar="DELIM", help="input items are terminated by DELIM")
    colsep: str | None = value("-C", "--colsep", metavar="REGEXP", help="split each input line into columns")
    header: str | None = value("--header", metavar="REGEXP", help="with `:', the first value names an input source")
    trim: str = value("--trim", metavar="n|l|r|lr", default="n", help="remove white space around arguments")
    shuffle: bool = flag("--shuf", help="run the jobs in random order")
    dry_run: bool = flag("--dry-run", "--dryrun", help="print the job to run on stdout, but do not run the job")
    tag: bool = flag("--tag", help="tag lines with arguments")
    tag_text: str | None = value("--tagstring", metavar="STR", help="tag lines with a string")
    verbose: bool = flag("-v", help="print the job to be run on stdout")
    traced: bool = flag("-t", "--verbose", help="print the job to be run on stderr")
    halt: str | None = value("--halt", metavar="VAL", help="now,fail=1 or soon,fail=1: stop at the first failure")
    no_run: bool = flag("-r", "--no-run-if-empty", help="if the input is empty, do not run the command")
    link: bool = flag("--link", "--xapply", help="link multiple input sources")
    group: bool = mixed(
        flag("--group", help="group output (default)"),
        flag("-u", "--ungroup", "--line-buffer", "--line-buffered", "--lb", const=False, help="do not group output"),
        default=True,
    )
    quote: bool = flag("-q", "--quote", help="quote the command")
    retries: int = value("--retries", metavar="N", default=1, convert=_count, help="run a failing job up to N times")
    timeout: str | None = value("--timeout", metavar="SECS", help="end a job that takes longer")
    delay: str | None = value("--delay", metavar="SECS", help="wait before starting the next job")
    joblog: str | None = value("--joblog", metavar="FILE", help="a table of the jobs and how they ended")
    results: str | None = value("--results", metavar="DIR", help="save what each job writes below DIR")
    pipe: bool = flag("--pipe", "--spreadstdin", help="give blocks of stdin to the jobs")
    block: int = value(
        "--block", "--block-size", metavar="SIZE", default=1 << 20, convert=_size, help="size of a block"
    )
    record_end: str | None = value(
        "--recend", metavar="STR", help="what ends a record; a newline unless said otherwise"
    )
    record_start: str | None = value("--recstart", metavar="STR", help="what a record begins with")
    bare_records: bool = flag("--remove-rec-sep", "--removerecsep", "--rrs", help="leave these out of the blocks")
    separator: str = value("--arg-sep", metavar="STR", default=":::", help="what stands before arguments, for :::")
    file_separator: str = value("--arg-file-sep", metavar="STR", default="::::", help="the same for ::::")
    eof: str | None = value("-E", "--eof", metavar="STR", help="the argument at which the input ends")
    max_chars: int = value("-s", "--max-chars", metavar="N", default=0, convert=_count, help="the longest command line")
    where: str | None = value("--workdir", "--wd", metavar="DIR", help="run jobs in DIR")
    skip_first: bool = flag("--skip-first-line", help="leave out the first line of the input")
    plus: bool = flag("--plus", help="accepted: {..}, {+/}, {+.} and {##} always work")
    resume: bool = flag("--resume", help="leave out the jobs that --joblog has")
    resume_failed: bool = flag("--resume-failed", help="the same, and run those again that failed")
    retry_failed: bool = flag("--retry-failed", help="run the jobs of --joblog again that failed")
    own: tuple[str, ...] = several(
        "--rpl", metavar="'TAG CODE'", help="a replacement string of one's own: what s///, y/// or uc make of arguments"
    )
    expressions: bool = flag("--regexp", help="--recstart and --recend are regular expressions")
    files: bool = flag("--files", help="print the names of files that hold what the jobs wrote")
    tee: bool = flag("--tee", help="with --pipe, give all of stdin to every job")
    as_file: bool = flag("--cat", "--fifo", help="with --pipe, {} is the name of a file with the block")
    spread: bool = flag("--roundrobin", "--round-robin", "--round", help="with --pipe, blocks go to jobs by turns")
    parts: bool = flag("--pipepart", "--pipe-part", help="as --pipe, from the file of -a")
    cores: bool = flag(
        "--number-of-cores", "--number-of-cpus", "--number-of-threads", help="print how many jobs run at a time"
    )


async def parallel(proc: Proc, o: ParallelOptions, operands: list[str]) -> int:
    if o.cores:
        await proc.emit(f"{_SLOTS}\n".encode())
        return 0
    jobs = max(1, int(o.jobs)) if o.jobs.isdigit() else _SLOTS
    pool = _Pool(proc, o, _UNLIMITED if o.jobs == "0" else jobs)
    if o.retry_failed:
        return await pool.run(await _earlier(proc, o.joblog, failed=True))
    if (o.pipe or o.parts) and not o.tee:
        return await pool.run(await _pipe_jobs(proc, o, pool.jobs, operands))
    respelled = {
        o.separator: ":::",
        o.separator + "+": ":::+",
        o.file_separator: "::::",
        o.file_separator + "+": "::::+",
    }
    operands = [respelled.get(word, word) for word in operands]
    cut = next((i for i, word in enumerate(operands) if word in MARKS), len(operands))
    command = operands[:cut]
    if cut == len(operands) and _streams(o, command):
        return await pool.stream(_read_jobs(proc, o, command))
    groups = await _sources(proc, o, operands[cut:])
    names: list[str] = []
    if o.header is not None:
        sources = [source for group in groups for source in group]
        names = [source.pop(0) for source in sources if source]
    items = combined(groups, o.link)
    if o.max_args:
        flat = [words[0] for words in items]
        items = [tuple(flat[i : i + o.max_args]) for i in range(0, len(flat), o.max_args)]
    elif o.many:
        flat = [words[0] for words in items]
        size = max(1, -(-len(flat) // pool.jobs))
        items = _short([tuple(flat[i : i + size]) for i in range(0, len(flat), size)], command, o.max_chars)
    if o.trim != "n":
        items = [tuple(trimmed(word, o.trim) for word in words) for words in items]
    if o.shuffle:
        random.shuffle(items)
    template = _template(proc, o, command, names)
    many = o.many == "X"
    lines: list[str] = []
    for number, words in enumerate(items, 1):
        made = partial(template.line, words, number, len(items), many)
        lines.append(await offload_large(proc.budget, sum(map(len, words)), made))
        if number % BATCH == 0:
            await proc.budget.yield_turn()
    if o.dry_run:
        await proc.emit_texts(piece for line in lines for piece in (line, "\n"))
        return 0
    data = await proc.stdin.read_all() if o.tee else None
    todo = [_Job(line, words, number, data) for number, (line, words) in enumerate(zip(lines, items, strict=True), 1)]
    if o.resume or o.resume_failed:
        known = {job.number for job in await _earlier(proc, o.joblog, failed=False)}
        again = {job.number for job in await _earlier(proc, o.joblog, failed=True)} if o.resume_failed else set()
        todo = [job for job in todo if job.number not in known or job.number in again]
    return await pool.run(todo)


def _streams(o: ParallelOptions, command: list[str]) -> bool:
    """Return whether each line of standard input is a job that needs to know nothing of the others."""
    together = (
        o.arg_files, o.header, o.max_args, o.many, o.shuffle, o.colsep, o.tee, o.resume, o.resume_failed, o.dry_run,
    )  # fmt: skip
    if len(_separator(o)) != 1 or any(together):
        return False
    return not any("##" in word or "total" in word for word in (*command, o.tag_text or ""))


async def _read_jobs(proc: Proc, o: ParallelOptions, command: list[str]) -> AsyncIterator[_Job]:
    """Yield the jobs that the lines of standard input make, as they are read."""
    template, separator, number = _template(proc, o, command, []), _separator(o), 0
    skip = o.skip_first
    try:
        reader = await proc.open("-")
    except OSError as error:
        message = f"Error: Cannot open input file `-': {reason(error)}."
        raise UsageError(message, hint=False, status=255) from None
    while line := await reader.readline(separator):
        word = decode(line.removesuffix(separator))
        if skip:
            skip = False
            continue
        if o.eof is not None and word == o.eof:
            return
        number += 1
        words = (trimmed(word, o.trim) if o.trim != "n" else word,)
        made = partial(template.line, words, number, 0, False)
        yield _Job(await offload_large(proc.budget, len(word), made), words, number)


def _separator(o: ParallelOptions) -> bytes:
    if o.null:
        return b"\0"
    return encode(o.delimiter.replace("\\n", "\n").replace("\\t", "\t")) if o.delimiter else b"\n"


def _template(proc: Proc, o: ParallelOptions, command: list[str], names: list[str]) -> Template:
    own: dict[str, Change] = {}
    for text in o.own:
        tag, _, code = text.partition(" ")
        own[tag] = perl_change(code, proc)
    return Template(command, o.replace, names, not command, o.quote, own, lambda code: perl_change(code, proc))


async def _earlier(proc: Proc, log: str | None, *, failed: bool) -> list[_Job]:
    """Return the jobs of a log, or those whose last run failed."""
    if log is None:
        message = "--resume and --resume-failed require --joblog, --results, --results-dir, or --sqlworker"
        raise UsageError(f"Error: {message}.", 255, hint=False)
    try:
        rows = [decode(line).split("\t", 8) for line in await read_lines(proc, log)]
    except FileNotFoundError:
        return []
    found = {int(row[0]): row for row in rows if len(row) == 9 and row[0].isdigit()}
    wanted = [row for row in found.values() if not failed or row[6] != "0" or row[7] != "0"]
    return [_Job(row[8], (), int(row[0])) for row in wanted]


async def _pipe_jobs(proc: Proc, o: ParallelOptions, jobs: int, operands: list[str]) -> list[_Job]:
    """Return one job per block of stdin, or per round of blocks."""
    line = " ".join(operands)
    if o.parts:
        if not o.arg_files:
            raise UsageError("Error: --pipepart is incompatible with no file given by -a.", 255, hint=False)
        data = b"".join([await slurp(proc, word) for word in o.arg_files])
    else:
        data = await proc.stdin.read_all()
    ends = (o.record_end or "", o.record_start or "")
    blocks = await offload_long(proc, ends, partial(_blocks, data, o, proc.budget.limits.regex_seconds))
    if o.spread:
        blocks = [b"".join(blocks[turn::jobs]) for turn in range(min(jobs, len(blocks)))]
    return [_Job(line, (), number, block) for number, block in enumerate(blocks, 1)]


def _short(items: list[Words], command: list[str], longest: int) -> list[Words]:
    """Split arguments so that no line is longer than `longest`."""
    if not longest:
        return items
    out: list[Words] = []
    for words in items:
        line: list[str] = []
        for word in words:
            if line and len(" ".join([*command, *line, word])) >= longest:
                out.append(tuple(line))
                line = []
            line.append(word)
        out.append(tuple(line))
    return out


def _records(data: bytes, o: ParallelOptions, seconds: float) -> list[bytes]:
    """Split stdin into records by --recend and --recstart."""
    if o.expressions:
        return _by_expression(data, o, seconds)
    start = encode((o.record_start or "").replace("\\n", "\n"))
    given = o.record_end if o.record_end is not None else "" if start else "\n"
    end = encode(given.replace("\\n", "\n"))
    records = data.split(end + start) if end + start else [data]
    last = len(records) - 1
    lead, tail = (b"", b"") if o.bare_records else (start, end)
    records = [(lead if at else b"") + record + (tail if at < last else b"") for at, record in enumerate(records)]
    if o.bare_records:
        records = [record.removeprefix(start).removesuffix(end) for record in records]
    return [record for record in records if record]


def _by_expression(data: bytes, o: ParallelOptions, seconds: float) -> list[bytes]:
    """Split stdin where --recend matches before --recstart, as regular expressions."""
    end = o.record_end if o.record_end is not None else "" if o.record_start else "\n"
    try:
        source = encode(f"({end})({o.record_start or ''})".replace("\\n", "\n"))
        cuts = patterns.compile(source, patterns.PERL, seconds=seconds)
    except patterns.PatternError as error:
        raise UsageError(f"Error: {error}", 255, hint=False) from None
    records: list[bytes] = []
    at = pos = 0
    while pos < len(data) and (spans := cuts.spans(data, pos)) is not None:
        middle = spans[1][1]
        if at < middle < len(data):
            records.append(data[at:middle])
            at = middle
        pos = max(pos + 1, spans[0][1])
    return [*records, data[at:]] if at < len(data) else records


def _blocks(data: bytes, o: ParallelOptions, seconds: float) -> list[bytes]:
    """Return stdin as blocks of whole records, by count or by size."""
    records = _records(data, o, seconds)
    if o.max_args:
        return [b"".join(records[i : i + o.max_args]) for i in range(0, len(records), o.max_args)]
    blocks: list[bytes] = []
    held: list[bytes] = []
    size = 0
    for record in records:
        if held and size + len(record) > o.block:
            blocks.append(b"".join(held))
            held, size = [], 0
        held.append(record)
        size += len(record)
    return [*blocks, b"".join(held)] if held else blocks


async def _sources(proc: Proc, o: ParallelOptions, rest: list[str]) -> list[list[list[str]]]:
    """Return the input sources in groups; those of a group go along with each other."""
    separator = _separator(o)

    async def from_file(word: str) -> list[list[str]]:
        try:
            lines = [decode(line) for line in await read_lines(proc, word, separator)]
        except OSError as error:
            message = f"Error: Cannot open input file `{word}': {reason(error)}."
            raise UsageError(message, hint=False, status=255) from None
        if o.skip_first:
            lines = lines[1:]
        return columns(ended(lines))

    def ended(lines: list[str]) -> list[str]:
        return lines[: lines.index(o.eof)] if o.eof is not None and o.eof in lines else lines

    def columns(lines: list[str]) -> list[list[str]]:
        if o.colsep is None:
            return [lines]
        rows = [re.split(o.colsep, line) for line in lines]
        width = max(map(len, rows), default=0)
        return [[row[i] if i < len(row) else "" for row in rows] for i in range(width)]

    groups = [await from_file(word) for word in o.arg_files]
    current = ""
    for word in rest:
        if word in MARKS:
            current = word
            if word == ":::" or (word == ":::+" and not groups):
                groups.append([[]])
            elif word == ":::+":
                groups[-1].append([])
        elif current == "::::" or (current == "::::+" and not groups):
            groups.append(await from_file(word))
        elif current == "::::+":
            groups[-1] += await from_file(word)
        else:
            groups[-1][-1].append(word)
    if o.colsep is not None and current in (":::", ":::+"):
        groups = [[cells for source in group for cells in columns(source)] for group in groups]
    if rest and (o.eof is not None or o.delimiter):
        mark = decode(separator)
        split = (lambda words: [piece for word in words for piece in word.split(mark)]) if o.delimiter else list
        groups = [[ended(split(source)) for source in group] for group in groups]
    return groups or [await from_file("-")]


@dataclass
class _Job:
    line: str
    words: Words
    number: int
    data: bytes | None = None


class _Pool:
    def __init__(self, proc: Proc, o: ParallelOptions, jobs: int) -> None:
        self.proc, self.o, self.jobs = proc, o, jobs
        self.failed = self.succeeded = 0
        self.stop = False
        self.final: int | None = None
        self.log: list[str] = []
        self.results: dict[int, bytes] = {}
        self.shown = 1

    async def stream(self, todo: AsyncIterator[_Job]) -> int:
        """Run jobs as they come, at most `self.jobs` at a time; no more is read ahead."""
        running: set[asyncio.Task[None]] = set()

        async def work(job: _Job) -> None:
            await self._show(job, await self._job(job, 0))
            if self.o.delay:
                await asyncio.sleep(float(self.o.delay))

        try:
            async for job in todo:
                while len(running) >= self.jobs:
                    done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    await asyncio.gather(*done)
                if self.stop:
                    break
                running.add(asyncio.create_task(work(job)))
            await asyncio.gather(*running)
        finally:
            await give_up(running)
        return await self._end()

    async def run(self, todo: list[_Job]) -> int:
        """Run the jobs, at most `self.jobs` at a time."""
        waiting = iter(todo)
        total = len(todo)

        async def work() -> None:
            for job in waiting:
                if self.stop:
                    return
                await self._show(job, await self._job(job, total))
                if self.o.delay:
                    await asyncio.sleep(float(self.o.delay))

        tasks = [asyncio.create_task(work()) for _ in range(min(self.jobs, total))]
        try:
            await asyncio.gather(*tasks)
        finally:
            await give_up(tasks)
        return await self._end()

    async def _end(self) -> int:
        """Write the log; return the exit status."""
        if self.o.joblog is not None:
            head = (
                ""
                if self.o.resume or self.o.resume_failed or self.o.retry_failed
                else "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"
            )
            writer = await self.proc.create(self.o.joblog, append=not head)
            writer.write(encode(head + "".join(self.log)))
            await writer.drain()
            await self.proc.close(writer)
        return min(self.failed, 101) if self.final is None else self.final

    async def _show(self, job: _Job, data: bytes) -> None:
        if not self.o.keep_order:
            await self.proc.emit(data)
            return
        self.results[job.number] = data
        while self.shown in self.results:
            block = self.results.pop(self.shown)
            self.shown += 1
            await self.proc.emit(block)

    async def _job(self, job: _Job, total: int) -> bytes:
        o = self.o
        if o.traced:
            self.proc.stderr.write(encode(job.line + "\n"))
        began = self.proc.now()
        out = Capture(self.proc.budget.limits.output_bytes)
        status = 0
        for _ in range(max(1, o.retries)):
            out = Capture(self.proc.budget.limits.output_bytes)
            line, held = await self._block_file(job) if o.as_file and job.data is not None else (job.line, "")
            argv = ["bash", "-c", line]
            if o.timeout is not None:
                argv = ["timeout", o.timeout.removesuffix("%"), *argv]
            stdin: Reader = Null() if job.data is None or held else BytesReader(job.data)
            if o.where is not None:
                argv = ["env", f"--chdir={o.where}", *argv]
            try:
                status = await self.proc.run(argv, stdin=stdin, stdout=out)
            finally:
                if held:
                    await self.proc.fs.remove(self.proc.path(held))
            if o.timeout is not None and status == 124:
                warned = (
                    f"parallel: Warning: This job was killed because it timed out:\nparallel: Warning: {job.line}\n"
                )
                self.proc.stderr.write(encode(warned))
            if status == 0:
                break
        data = out.getvalue()
        took = self.proc.now() - began
        if o.joblog is not None:
            self.log.append(f"{job.number}\t:\t{began:.3f}\t{took:>10.3f}\t0\t{len(data)}\t{status}\t0\t{job.line}\n")
        self._end_job(job, status)
        if o.results is not None:
            await self._saved(job, data)
            return b""
        if o.files:
            name = self._temporary()
            await self.proc.fs.write(self.proc.path(name), data)
            return encode(name + "\n")
        if o.tag or o.tag_text is not None:
            text = " ".join(job.words)
            if o.tag_text is not None:
                text = Template([o.tag_text], "{}", (), raw=True, quote=False).line(job.words, job.number, total)
                text = text if "{" in o.tag_text else o.tag_text
            data = b"".join(encode(text) + b"\t" + piece for piece in data.splitlines(keepends=True))
        return encode(job.line + "\n") + data if o.verbose else data

    def _temporary(self) -> str:
        letters = "".join(random.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=8))
        return f"{self.proc.env.get('TMPDIR') or '/tmp'}/par{letters}.par"

    async def _block_file(self, job: _Job) -> tuple[str, str]:
        """Return the block of a job in a file, whose name the command has in the place of {}."""
        name = self._temporary()
        await self.proc.fs.write(self.proc.path(name), job.data or b"")
        return Template([job.line], "{}", (), raw=True, quote=False).line((name,), job.number, 0), name

    def _end_job(self, job: _Job, status: int) -> None:
        self.failed += status != 0
        self.succeeded += status == 0
        halt = re.fullmatch(r"(now|soon),(fail|success|done)=(\d+)", self.o.halt or "")
        if halt is None:
            if self.o.halt in ("1", "2") and status and not self.stop:
                self.stop, self.final = True, status
                self.proc.stderr.write(encode(f"parallel: This job failed:\n{job.line}\n"))
            return
        count = {"fail": self.failed, "success": self.succeeded, "done": self.failed + self.succeeded}[halt[2]]
        if not self.stop and (halt[2] == "done" or (status != 0) == (halt[2] == "fail")):
            word = {"fail": "failed", "success": "succeeded", "done": "finished"}[halt[2]]
            self.proc.stderr.write(encode(f"parallel: This job {word}:\n{job.line}\n"))
            if count >= int(halt[3]):
                self.stop = True
                self.final = status if halt[1] == "now" or halt[2] == "success" else None

    async def _saved(self, job: _Job, data: bytes) -> None:
        parts = "/".join(f"{place}/{word.replace('/', '+z')}" for place, word in enumerate(job.words, 1))
        directory = parse(f"{self.o.results}/{parts}", self.proc.cwd)
        await ops.make_dirs(self.proc.fs, directory)
        for name, content in (("stdout", data), ("stderr", b""), ("seq", f"{job.number}".encode())):
            await self.proc.fs.write(directory / name, content)


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
            "--load=",
            "--memfree=",
            "--tmpdir=",
            "--nice=",
            "--env=",
            "--record-env",
            "--noswap",
            "--bf= --basefile=",
            "--plain",
            "--no-keep-order --nokeeporder",
            "--color",
            "--ctag",
            "--color-failed",
            "--compress",
            "--limit=",
            "-x --exit",
            "--minversion=",
        ),
        refused={
            "-S= --sshlogin=": "there are no other machines",
            "--slf= --sshloginfile=": "there are no other machines",
            "--onall": "there are no other machines",
            "--nonall": "there are no other machines",
            "--trc= --return= --transferfile= --tf=": "there are no other machines",
            "--transfer": "there are no other machines",
            "--cleanup": "there are no other machines",
            "--tmux": "there is no terminal",
        },
        examples=[
            ("parallel echo {} ::: a b c", "one echo per word"),
            ("ls *.txt | parallel -k gzip -k", "compress all"),
        ],
        version_letters="V",
        help_letters="h",
    )
]
