"""`--checkpoint`: something is said or done each time so many records have been read or written."""

from __future__ import annotations

from ramet.commands.archives.tar.job import Failed, Job, environment
from ramet.core.paths import encode


class Checkpoints:
    def __init__(self, job: Job, kind: str) -> None:
        self.job, self.kind = job, kind
        """`kind` is read or write."""
        self.done = 0
        text = job.o.checkpoint or "10"
        self.actions = list(job.o.checkpoint_actions) or ["dot" if text.startswith(".") else "echo"]
        digits = text.removeprefix(".")
        if not digits.isdecimal() or not int(digits):
            raise Failed("--checkpoint value is not an integer")
        self.every = int(digits)
        for action in self.actions:
            name = action.partition("=")[0]
            if name not in ("dot", ".", "echo", "bell", "exec", "totals", "wait", "sleep", "ttyout"):
                raise Failed(f"{action}: unknown checkpoint action")

    async def reach(self, size: int) -> None:
        """So many bytes of the archive have gone by."""
        count = size // self.job.record if self.kind == "write" else -(-size // self.job.record)
        while self.done < count:
            self.done += 1
            if self.done % self.every == 0:
                for action in self.actions:
                    await self.act(action)

    async def act(self, action: str) -> None:
        proc = self.job.proc
        name, _, text = action.partition("=")
        if name in ("dot", "."):
            await proc.emit(b".")
        elif name == "bell":
            await proc.emit(b"\a")
        elif name in ("echo", "ttyout"):
            shown = self.expanded(text.strip("\"'") if text else "%S checkpoint %u")
            if name == "ttyout":
                await proc.emit(encode(shown))
            else:
                proc.complain(shown)
        elif name == "exec":
            env = environment(self.job) | {"TAR_CHECKPOINT": str(self.done)}
            status = await proc.run(["sh", "-c", text], env={**proc.env, **env})
            if status:
                raise Failed(f"{text}: Child returned status {status}")
        elif name == "totals":
            what = "written" if self.kind == "write" else "read"
            size = self.done * self.job.record
            proc.stderr.write(f"Total bytes {what}: {size} ({size // 1024}KiB, 0B/s)\n".encode())

    def expanded(self, text: str) -> str:
        meanings = {"%u": str(self.done), "%s": self.kind, "%S": self.kind.capitalize(), "%d": "0", "%%": "%", "%c": ""}
        out, pos = "", 0
        while (at := text.find("%", pos)) >= 0:
            out += text[pos:at] + meanings.get(text[at : at + 2], text[at : at + 2])
            pos = at + 2
        return out + text[pos:]
