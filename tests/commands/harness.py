"""Runs commands over a fresh RAM tree without the shell: words, pipes, redirections, `;` and `&&` are all it knows."""

from __future__ import annotations

import asyncio
import errno
import re
import time
from collections.abc import Mapping, Sequence

from ramet.backends.ram import RAMResource
from ramet.commands.table import COMMANDS
from ramet.core import ops, paths
from ramet.core.fs import Open
from ramet.core.limits import Budget
from ramet.core.paths import ROOT, Path
from ramet.core.proc import Proc
from ramet.core.streams import BytesReader, Capture, Reader, Writer, pipe
from ramet.vfs.dev import DevResource
from ramet.vfs.table import VFS

CWD = Path("/tmp/case")
ENV = {"LC_ALL": "C.UTF-8", "HOME": "/tmp", "PATH": "/usr/local/bin:/usr/bin:/bin", "TMP": "/tmp/case"}


class World:
    """One workspace for one test."""

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        self.ram = RAMResource()
        self.fs = VFS({ROOT: self.ram, Path("/dev"): DevResource()})
        self.env = {**ENV, **(env or {})}
        self.out, self.err = Capture(), Capture()
        self.budget = Budget()

    async def prepare(self, files: Mapping[str, bytes]) -> None:
        await ops.make_dirs(self.fs, CWD)
        for name, data in files.items():
            path = paths.parse(name, CWD)
            await ops.make_dirs(self.fs, path.parent)
            await self.fs.write(path, data)

    async def call(
        self,
        argv: Sequence[str],
        stdin: Reader | None = None,
        stdout: Writer | None = None,
        stderr: Writer | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> int:
        out, err = stdout or self.out, stderr or self.err
        command = COMMANDS.get(argv[0])
        if command is None:
            err.write(f"bash: line 1: {argv[0]}: command not found\n".encode())
            return 127

        async def run(
            argv: Sequence[str],
            *,
            stdin: Reader | None = None,
            stdout: Writer | None = None,
            stderr: Writer | None = None,
            env: Mapping[str, str] | None = None,
            cwd: Path | None = None,
        ) -> int:
            return await self.call(
                argv, stdin or proc.stdin, stdout or out, stderr or err, env or proc.env, cwd or proc.cwd
            )

        proc = Proc(
            argv=list(argv), fs=self.fs, cwd=cwd or CWD, env=env or self.env, stdin=stdin or BytesReader(), stdout=out, stderr=err,
            run=run, budget=self.budget, now=time.time,
        )  # fmt: skip
        try:
            return await command(proc)
        except OSError as error:
            if error.errno == errno.EPIPE:
                return 141
            raise

    # ------------------------------------------------------------------------------- a very small command language

    async def script(self, text: str) -> int:
        status = 0
        items = re.split(r"(;|&&|\|\|)", text) if not re.search(r"""['"\\]""", text) else _statements(text)
        wanted = True
        for item in items:
            if item in (";", "&&", "||"):
                wanted = item == ";" or (item == "&&") == (status == 0)
            elif item.strip() and wanted:
                status = await self.pipeline(item)
        return status

    async def pipeline(self, text: str) -> int:
        stages = [_words(stage) for stage in _split(text, "|")]
        source: Reader | None = None
        tasks: list[asyncio.Task[int]] = []
        for i, words in enumerate(stages):
            argv, opened_in, opened_out, opened_err = await self.redirections(words)
            out: Writer | None = opened_out
            following: Reader | None = None
            if i < len(stages) - 1 and out is None:
                following, out = pipe()
            tasks.append(
                asyncio.create_task(self.stage(argv, opened_in or source, out, opened_err, i < len(stages) - 1))
            )
            source = following
        return (await asyncio.gather(*tasks))[-1]

    async def stage(
        self, argv: list[str], stdin: Reader | None, out: Writer | None, err: Writer | None, piped: bool
    ) -> int:
        try:
            return await self.call(argv, stdin, out, err)
        finally:
            if out is not None:
                await out.close()
            if stdin is not None:
                await stdin.close()

    async def redirections(
        self, words: list[tuple[str, bool]]
    ) -> tuple[list[str], Reader | None, Writer | None, Writer | None]:
        argv: list[str] = []
        source: Reader | None = None
        out: Writer | None = None
        err: Writer | None = None
        i = 0
        while i < len(words):
            word, plain = words[i]
            if plain and word in ("<", ">", ">>", "2>"):
                path = paths.parse(words[i + 1][0], CWD)
                if word == "<":
                    source = await self.fs.open(path, Open.READ)
                else:
                    how = Open.WRITE | Open.CREATE | (Open.APPEND if word == ">>" else Open.TRUNCATE)
                    stream = await self.fs.open(path, how)
                    if word == "2>":
                        err = stream
                    else:
                        out = stream
                i += 2
                continue
            if plain and word == "2>&1":
                err = out or self.out
                i += 1
                continue
            argv.append(word)
            i += 1
        return argv, source, out, err


_TOKEN = re.compile(
    r"""\s+|(?P<op>2>&1|2>|>>|[<>])(?=\s|/|\w|$)|(?P<word>(?:'[^']*'|"(?:[^"\\]|\\.)*"|\$'(?:[^'\\]|\\.)*'|\\.|[^\s'"\\<>])+)""",
    re.S,
)
_PART = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\$'((?:[^'\\]|\\.)*)'|\\(.)|([^\s'"\\]+)""", re.S)


def _words(text: str) -> list[tuple[str, bool]]:
    out: list[tuple[str, bool]] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"cannot read {text[at:]!r}")
        at = found.end()
        if found["op"]:
            out.append((found["op"], True))
        elif found["word"]:
            word = ""
            for part in _PART.finditer(found["word"]):
                single, double, dollar, escaped, plain = part.groups()
                if double is not None:
                    word += re.sub(r'\\([\\"$`])', r"\1", double)
                elif dollar is not None:
                    raw = dollar.encode("latin-1", "backslashreplace").decode("unicode_escape").encode("latin-1")
                    word += raw.decode("utf-8", "surrogateescape")
                else:
                    word += single if single is not None else escaped if escaped is not None else plain
                if plain is not None and word.endswith("$") and False:
                    raise ValueError(text)
            out.append((word, False))
    return out


_PIECE = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|\|\||&&|[;|]|[^'"\\;|&]+|&""", re.S)


def _statements(text: str) -> list[str]:
    out = [""]
    for found in _PIECE.finditer(text):
        if found[0] in (";", "&&", "||"):
            out += [found[0], ""]
        else:
            out[-1] += found[0]
    return out


def _split(text: str, mark: str) -> list[str]:
    out = [""]
    for found in _PIECE.finditer(text):
        if found[0] == mark:
            out.append("")
        else:
            out[-1] += found[0]
    return out


async def run_script(
    text: str, files: Mapping[str, bytes] | None = None, env: Mapping[str, str] | None = None
) -> tuple[bytes, bytes, int]:
    world = World(env)
    await world.prepare(files or {})
    status = await world.script(text)
    return world.out.getvalue(), world.err.getvalue(), status


def run(
    text: str, files: Mapping[str, bytes] | None = None, env: Mapping[str, str] | None = None
) -> tuple[bytes, bytes, int]:
    """stdout, stderr and status of a script in a fresh world."""
    return asyncio.run(run_script(text, files, env))
