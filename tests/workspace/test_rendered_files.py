"""Reading commands show what is inside of known file types; the rest of the tree is untouched."""

from __future__ import annotations

import asyncio
import gzip
import io

import pytest

from ramet import Workspace
from ramet.core.paths import parse
from ramet.workspace import rendered_files as filetypes


def run(ws: Workspace, command: str) -> tuple[str, str, int]:
    async def act() -> tuple[str, str, int]:
        result = await ws.execute(command)
        return result.text, result.error_text, result.exit_code

    return asyncio.run(act())


@pytest.fixture
def ws() -> Workspace:
    made = Workspace()
    filetypes.enable(made)
    text = b"".join(b"line %d\n" % i for i in range(1000))
    asyncio.run(made.fs.write(parse("/log.gz"), gzip.compress(text[:4000]) + gzip.compress(text[4000:])))
    asyncio.run(made.fs.write(parse("/plain.txt"), b"line 7\n"))
    return made


def test_gzip_is_text_for_reading_commands(ws: Workspace) -> None:
    assert run(ws, "cat /log.gz | wc -l")[0] == "1000\n"
    assert run(ws, "head -2 /log.gz; tail -1 /log.gz")[0] == "line 0\nline 1\nline 999\n"
    assert run(ws, "grep -n 'line 7$' /log.gz /plain.txt")[0] == "/log.gz:8:line 7\n/plain.txt:1:line 7\n"
    assert run(ws, "wc -l < /plain.txt; cat /plain.txt; file /log.gz | grep -c gzip")[0] == "1\nline 7\n1\n"
    assert run(ws, "gzip -dc /log.gz | tail -1")[0] == "line 999\n", "other commands see the bytes"
    assert run(ws, "cat /none.gz") == ("", "cat: /none.gz: No such file or directory\n", 1)


def test_types_whose_extra_is_missing_say_which(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    real = builtins.__import__

    def refuse(name: str, *rest: object, **more: object) -> object:
        if name.split(".")[0] in ("pyarrow", "openpyxl", "pypdf"):
            raise ImportError(name)
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)
    for suffix in ("parquet", "xlsx", "pdf"):
        asyncio.run(ws.fs.write(parse(f"/f.{suffix}"), b"data"))
        _, error, status = run(ws, f"cat /f.{suffix}")
        assert status != 0 and f"pip install 'ramet[{suffix}]'" in error


def test_parquet_rows_are_json_lines(ws: Workspace) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table({"id": [1, 2], "name": ["a", "ü"]}), buffer)
    asyncio.run(ws.fs.write(parse("/t.parquet"), buffer.getvalue()))
    assert run(ws, "cat /t.parquet; grep -c ü /t.parquet")[0] == '{"id": 1, "name": "a"}\n{"id": 2, "name": "ü"}\n1\n'


def test_sheets_are_csv(ws: Workspace) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "one"
    book.active.append(["a", 1, None])
    buffer = io.BytesIO()
    book.save(buffer)
    asyncio.run(ws.fs.write(parse("/b.xlsx"), buffer.getvalue()))
    assert run(ws, "cat /b.xlsx")[0] == "# one\na,1,\n"
