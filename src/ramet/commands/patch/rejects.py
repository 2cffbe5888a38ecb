"""Reject files: save hunks that did not apply, in their own format."""

from __future__ import annotations

from itertools import groupby

from ramet.commands.framework.command import shown
from ramet.commands.patch.apply import Applied
from ramet.commands.patch.hunks import FilePatch, Hunk, stripped_name
from ramet.commands.patch.job import PatchJob
from ramet.core.paths import decode, encode


async def save_rejects(job: PatchJob, item: FilePatch, target: str, result: Applied, *, ignored: bool) -> None:
    proc, o = job.proc, job.o
    total, bad = len(item.hunks), len(result.rejects)
    name = o.reject or f"{o.output or target}.rej"
    job.status = 1
    words = "ignored" if ignored else "FAILED"
    kept = not o.dry_run and name != "-"
    saving = f" -- saving rejects to file {shown(name)}" if kept else ""
    await proc.emit(encode(f"{bad} out of {total} hunk{'' if total == 1 else 's'} {words}{saving}\n"))
    if not kept:
        return
    old, new = item.old_name or target, item.new_name or target
    if item.headers is not None:
        old, new = (_header(decode(header), o.strip) for header in item.headers)
    if item.kind == "context" and o.reject_format != "unified":
        text = f"*** {old}\n--- {new}\n".encode() + b"".join(_context_text(h) for h in result.rejects)
    else:
        text = f"--- {old}\n+++ {new}\n".encode() + b"".join(_unified_text(h) for h in result.rejects)
    await proc.fs.write(job.path(name), text)


def _header(header: str, strip: str | None) -> str:
    """Return a header with its stripped name."""
    name, tab, rest = header.partition("\t")
    return (stripped_name(name, strip) or name) + tab + rest


def _unified_text(hunk: Hunk) -> bytes:
    old, new = len(hunk.old()), len(hunk.new())

    def span(start: int, count: int) -> str:
        return f"{start}" if count == 1 else f"{start if count else start - 1},{count}"

    head = (
        f"@@ -{span(hunk.start, old)} +{span(hunk.new_start, new)} @@".encode()
        + (b" " + hunk.header if hunk.header else b"")
        + b"\n"
    )
    return head + b"".join(
        encode(mark) + text + (b"" if text.endswith(b"\n") else b"\n\\ No newline at end of file\n")
        for mark, text in hunk.lines
    )


def _context_text(hunk: Hunk) -> bytes:
    old, new = len(hunk.old()), len(hunk.new())
    out = [b"***************\n", f"*** {hunk.start},{hunk.start + old - 1} ****\n".encode()]
    marked = _context_marks(hunk)
    out += [encode(shown_as) + b" " + t for shown_as, m, t in marked if m != "+"]
    out.append(f"--- {hunk.new_start},{hunk.new_start + new - 1} ----\n".encode())
    out += [encode(shown_as) + b" " + t for shown_as, m, t in marked if m != "-"]
    return b"".join(out)


def _context_marks(hunk: Hunk) -> list[tuple[str, str, bytes]]:
    """Return the lines with their marks of the context format: `!` for replaced lines."""
    out: list[tuple[str, str, bytes]] = []
    for common, run in groupby(hunk.lines, lambda line: line[0] == " "):
        lines = list(run)
        both = not common and len({mark for mark, _ in lines}) == 2
        out += [("!" if both else mark, mark, text) for mark, text in lines]
    return out
