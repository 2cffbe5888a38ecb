"""Render Parquet, XLSX, PDF and gzip files as text for `cat`, `head`, `tail`, `grep` and `wc`.

The commands see the tree through `RenderedFS`. `enable(ws)` turns it on. Libraries beyond the standard one are extras;
a missing one is named in the error.
"""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ramet.core import ops
from ramet.core.errors import missing_extra
from ramet.core.fs import FileSystem, Open
from ramet.core.limits import Limits
from ramet.core.paths import Path
from ramet.core.proc import Exec, Proc
from ramet.core.resource import Whole
from ramet.core.stat import Kind, Stat
from ramet.core.streams import FileStream, IteratorReader, Reader

if TYPE_CHECKING:
    from ramet.workspace.workspace import Workspace

COMMANDS: Final = ("cat", "head", "tail", "grep", "wc")
Render = Callable[[bytes], Iterator[bytes]]


def _parquet(data: bytes) -> Iterator[bytes]:
    """Yield rows as JSON lines."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise missing_extra("parquet", "reading Parquet files") from None
    for batch in parquet.ParquetFile(io.BytesIO(data)).iter_batches():
        rows = [json.dumps(row, default=str, ensure_ascii=False) for row in batch.to_pylist()]
        yield ("\n".join(rows) + "\n").encode() if rows else b""


def _xlsx(data: bytes) -> Iterator[bytes]:
    """Yield sheets as CSV, each with a heading."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise missing_extra("xlsx", "reading XLSX files") from None
    book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    for sheet in book.worksheets:
        text = io.StringIO()
        text.write(f"# {sheet.title}\n")
        writer = csv.writer(text, lineterminator="\n")
        for row in sheet.iter_rows(values_only=True):
            writer.writerow(["" if cell is None else cell for cell in row])
        yield text.getvalue().encode()


def _pdf(data: bytes) -> Iterator[bytes]:
    """Yield the text of each page."""
    try:
        from pypdf import PdfReader
    except ImportError:
        raise missing_extra("pdf", "reading PDF files") from None
    for page in PdfReader(io.BytesIO(data)).pages:
        yield (page.extract_text().rstrip() + "\n").encode()


WHOLE: Final[dict[str, Render]] = {".parquet": _parquet, ".xlsx": _xlsx, ".pdf": _pdf}
SUFFIXES: Final = (*WHOLE, ".gz")


async def _gunzip(blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Decompress a stream; several members are one text."""
    inflate = zlib.decompressobj(wbits=31)
    async for block in blocks:
        while block:
            data = inflate.decompress(block, 1 << 20)
            if data:
                yield data
            block = inflate.unconsumed_tail
            if inflate.eof:
                block = inflate.unused_data
                inflate = zlib.decompressobj(wbits=31)


class RenderedStream(FileStream):
    """A rendered file, read sequentially."""

    __slots__ = ("_at", "_source")

    def __init__(self, source: AsyncIterator[bytes]) -> None:
        super().__init__()
        self._source: Reader = IteratorReader(source)
        self._at = 0

    async def _fill(self) -> bytes:
        block = await self._source.read()
        self._at += len(block)
        return block

    def tell(self) -> int:
        return self._at - (len(self._buffer) - self._pos)

    async def stat(self) -> Stat:
        return Stat(Kind.FIFO)  # without size and seeking, like a pipe

    async def close(self) -> None:
        await super().close()
        await self._source.close()


class RenderedFS(Whole):
    """A file system in which files of known types are text."""

    def __init__(self, inner: FileSystem, limits: Limits) -> None:
        self._inner, self._limits = inner, limits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def stat(self, path: Path, follow: bool = False) -> Stat:
        stat = await self._inner.stat(path, follow)
        return stat._replace(size=None, version=None) if path.endswith(SUFFIXES) and stat.is_file else stat

    async def open(self, path: Path, how: Open = Open.READ) -> FileStream:
        if how is Open.READ and path.endswith(SUFFIXES):
            await (await self._inner.open(path)).close()  # report errors of the file itself first
            return RenderedStream(self.read(path))
        return await self._inner.open(path, how)

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        blocks = self._inner.read(path)
        if path.endswith(".gz"):
            async for block in _gunzip(blocks):
                yield block
            return
        data = await IteratorReader(blocks).read_all(self._limits.string_bytes)
        for block in WHOLE[path[path.rfind(".") :]](data):
            yield block

    async def read_bytes(self, path: Path) -> bytes:
        if path.endswith(SUFFIXES):
            return await IteratorReader(self.read(path)).read_all(self._limits.whole)
        return await ops.read_bytes(self._inner, path)

    async def entries(self, path: Path) -> list[tuple[str, Stat]]:
        return [entry async for entry in self._inner.scan(path)]


def enable(ws: Workspace) -> None:
    """Let the reading commands of a workspace render known file types."""
    for name in COMMANDS:
        ordinary = ws.commands[name]
        for suffix in SUFFIXES:
            ws.commands.add(name, _render_with(ordinary), suffix=suffix)


def _render_with(ordinary: Exec) -> Exec:
    async def run(proc: Proc) -> int:
        seen: Any = RenderedFS(proc.fs, proc.budget.limits)
        return await ordinary(replace(proc, fs=seen))

    return run
