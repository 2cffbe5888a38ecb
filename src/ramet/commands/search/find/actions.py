"""Actions of find: print, delete and run commands; output goes out in blocks."""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable

from ramet.commands.framework.command import UsageError, quote, typographic
from ramet.commands.search.find.nodes import FindQuit, Found, Node, Settings
from ramet.commands.search.find.printf import compile_printf, ls_line
from ramet.commands.search.find.words import Words
from ramet.core.errors import fail, reason
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.signals import BySignal
from ramet.core.stat import Kind
from ramet.core.streams import Null, Writer


class ExecBatch:
    """`-exec CMD {} +`: arguments gathered until they fill a command line."""

    LIMIT = 128 * 1024

    def __init__(self, actions: Actions, argv: list[str], in_dir: bool) -> None:
        self.actions, self.argv, self.in_dir = actions, argv, in_dir
        self.words: list[str] = []
        self.size = 0
        self.cwd: Path | None = None

    async def add(self, found: Found) -> bool:
        word = found.word
        if self.in_dir:
            directory = found.path.parent
            if self.cwd is not None and self.cwd != directory:
                await self.run()
            self.cwd = directory
            word = f"./{found.name}"
        self.words.append(word)
        self.size += len(word) + 1
        if self.size >= self.LIMIT:
            await self.run()
        return True

    async def run(self) -> None:
        if not self.words:
            return
        words, self.words, self.size = self.words, [], 0
        await self.actions.flush()
        status = await self.actions.proc.run([*self.argv, *words], stdin=Null(), cwd=self.cwd)
        self.actions.report_signal(self.argv[0], status)
        if status:
            self.actions.settings.status = 1


class Actions(Words):
    """The actions of an expression, with their pending output and commands."""

    def __init__(self, proc: Proc, words: list[str], settings: Settings) -> None:
        super().__init__(proc, words, settings)
        self.out: list[bytes] = []
        self.batches: list[ExecBatch] = []
        self.files: dict[str, Writer] = {}

    def push(self) -> None:
        if self.out:
            self.proc.stdout.write(b"".join(self.out))
            self.out.clear()

    async def flush(self) -> None:
        self.push()
        if self.proc.stdout.full:
            await self.proc.stdout.drain()

    def print_node(self, end: bytes) -> Node:
        add = self.out.append

        def show(found: Found) -> bool:
            add(encode(found.word) + end)
            return True

        return Node(show, acts=True)

    def p_print(self) -> Node:
        return self.print_node(b"\n")

    def p_print0(self) -> Node:
        return self.print_node(b"\0")

    def p_printf(self) -> Node:
        render = compile_printf(self.proc, self.argument("-printf"), self.settings)
        return self.emit(render, None)

    def emit(self, render: Callable[[Found], bytes | Awaitable[bytes]], target: str | None) -> Node:
        async def later(found: Found) -> bool:
            made = render(found)
            data = made if isinstance(made, bytes) else await made
            if target is None:
                self.out.append(data)
            else:
                writer = self.files[target]
                writer.write(data)
                if writer.full:
                    await writer.drain()
            return True

        return Node(None, later, acts=True)

    async def output(self, option: str) -> str:
        word = self.argument(option)
        if word not in self.files:
            try:
                self.files[word] = await self.proc.create(word)
            except OSError as error:
                raise UsageError(f"{quote(word)}: {reason(error)}") from None
        return word

    async def p_fprint(self) -> Node:
        target = await self.output("-fprint")
        return self.emit(lambda f: encode(f.word) + b"\n", target)

    async def p_fprint0(self) -> Node:
        target = await self.output("-fprint0")
        return self.emit(lambda f: encode(f.word) + b"\0", target)

    async def p_fprintf(self) -> Node:
        target = await self.output("-fprintf")
        return self.emit(compile_printf(self.proc, self.argument("-fprintf"), self.settings), target)

    def p_ls(self) -> Node:
        return self.emit(lambda f: ls_line(self.proc, f), None)

    async def p_fls(self) -> Node:
        target = await self.output("-fls")
        return self.emit(lambda f: ls_line(self.proc, f), target)

    def p_prune(self) -> Node:
        settings = self.settings
        settings.prunes = True

        def prune(found: Found) -> bool:
            settings.pruned = True
            return True

        return Node(prune)

    def p_quit(self) -> Node:
        settings = self.settings

        def stop(found: Found) -> bool:
            settings.quit = True
            raise FindQuit

        return Node(stop, acts=True)

    def p_delete(self) -> Node:
        self.settings.deletes = True
        proc = self.proc

        async def later(found: Found) -> bool:
            if found.word == ".":
                return True
            try:
                if found.name in (".", ".."):
                    raise fail(errno.EINVAL, found.word)
                if found.word.endswith("/") and (await proc.fs.stat(found.path)).kind is Kind.LINK:
                    raise fail(errno.ENOTDIR, found.word)
                await proc.fs.remove(found.path)
            except OSError as error:
                if error.errno == errno.ENOENT:
                    return True
                self.push()
                proc.complain(typographic(proc, f"cannot delete {quote(found.word)}: {reason(error)}"))
                self.settings.status = 1
                return False
            return True

        return Node(None, later, acts=True)

    def command(self, option: str) -> tuple[list[str], bool]:
        """The words of -exec up to `;` or `{} +`."""
        start = self.at
        while self.at < len(self.words):
            word = self.words[self.at]
            if word == ";":
                break
            if word == "+" and self.at > start and self.words[self.at - 1] == "{}":
                argv = self.words[start : self.at - 1]
                self.at += 1
                if any("{}" in w for w in argv):
                    raise UsageError("Only one instance of {} is supported with -exec ... +".replace("-exec", option))
                return argv, True
            # `{} +` ends the command only if no `;` follows.
            glued = word == "+" and self.at > start and "{}" in self.words[self.at - 1]
            if glued and ";" not in self.words[self.at :]:
                alone = "'{}' must appear by itself, but you specified"
                raise UsageError(f"In '{option} ... {{}} +' the {alone} {quote(self.words[self.at - 1])}")
            self.at += 1
        else:
            raise UsageError(f"missing argument to `{option}'")
        argv = self.words[start : self.at]
        self.at += 1
        if not argv:
            raise UsageError(f"invalid argument `;' to `{option}'")
        return argv, False

    def execute(self, option: str, in_dir: bool, ask: bool) -> Node:
        argv, batched = self.command(option)
        if batched:
            batch = ExecBatch(self, argv, in_dir)
            self.batches.append(batch)
            return Node(None, batch.add, acts=True)
        proc = self.proc

        async def later(found: Found) -> bool:
            word = f"./{found.name}" if in_dir else found.word
            words = [part.replace("{}", word) for part in argv]
            await self.flush()
            if ask:
                proc.stderr.write(encode(f"< {words[0]} ... {found.word} > ? "))
                if (await proc.stdin.readline())[:1] not in (b"y", b"Y"):
                    return False
            cwd = found.path.parent if in_dir else None
            status = await proc.run(words, stdin=Null() if ask else None, cwd=cwd)
            self.report_signal(words[0], status)
            return status == 0

        return Node(None, later, acts=True)

    def report_signal(self, command: str, status: int) -> None:
        """Report a command that was ended by a signal."""
        if isinstance(status, BySignal):
            self.proc.complain(typographic(self.proc, f"{quote(command)} terminated by signal {status.number}"))

    def p_exec(self) -> Node:
        return self.execute("-exec", False, False)

    def p_execdir(self) -> Node:
        return self.execute("-execdir", True, False)

    def p_ok(self) -> Node:
        return self.execute("-ok", False, True)

    def p_okdir(self) -> Node:
        return self.execute("-okdir", True, True)
