"""dos2unix and unix2dos: convert line endings."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, flag
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.stat import Attrs


@dataclass(frozen=True, slots=True)
class EolOptions:
    force: bool = flag("-f", "--force", help="force conversion of binary files")
    keep_date: bool = flag("-k", "--keepdate", help="keep output file date")
    newline: bool = flag("-l", "--newline", help="add additional newline")
    new_file: bool = flag("-n", "--newfile", help="write to new file: IN OUT ...")
    old_file: bool = flag("-o", "--oldfile", help="write to old file")
    quiet: bool = flag("-q", "--quiet", help="quiet mode, suppress all warnings")
    keep_bom: bool = flag("-b", "--keep-bom", help="keep the byte order mark")
    remove_bom: bool = flag("-r", "--remove-bom", help="remove the byte order mark")
    info: bool = flag("-i", "--info", help="display file information")


async def eol(proc: Proc, o: EolOptions, operands: list[str]) -> int:
    to_dos = proc.argv[0].endswith("unix2dos")
    if not operands:
        await _stream_eol(proc, to_dos, o)
        return 0
    pairs = list(zip(operands[::2], operands[1::2], strict=False)) if o.new_file else [(w, w) for w in operands]
    if o.new_file and len(operands) % 2:
        raise UsageError("target of file not specified in new file mode", hint=False)
    status = 0
    for source, target in pairs:
        try:
            path = proc.path(source)
            stat = await proc.fs.stat(path, follow=True)
            if stat.is_dir:
                proc.complain(f"Skipping {source}, not a regular file.")
                continue
            reader = await proc.open(source, dash=False)
            data = await reader.read_all()
            await proc.close(reader)
        except OSError as error:
            proc.complain(f"{source}: {reason(error)}")
            status = error.errno or 1
            continue
        if o.info:
            dos = data.count(b"\r\n")
            kind = "binary" if b"\0" in data else "text"
            await proc.emit(encode(f"{dos:8d}{data.count(b'%c' % 10) - dos:8d}{0:8d}  no_bom    {kind}    {source}\n"))
            continue
        if b"\0" in data and not o.force:
            proc.complain(f"Binary symbol 0x00 found at line {data[: data.index(0)].count(10) + 1}")
            proc.complain(f"Skipping binary file {source}")
            continue
        if not o.quiet:
            kind = "DOS" if to_dos else "Unix"
            what = (
                f"converting file {source} to {kind} format..."
                if source == target
                else f"converting file {source} to file {target} in {kind} format..."
            )
            proc.complain(what)
        await proc.fs.write(proc.path(target), _convert_eol(data, to_dos, o))
        if o.keep_date:
            await proc.fs.setattr(proc.path(target), Attrs(mtime_ns=stat.mtime_ns))
    return status


async def _stream_eol(proc: Proc, to_dos: bool, o: EolOptions) -> None:
    held = _without_bom(await proc.stdin.read_exactly(3), to_dos, o)
    while block := await proc.stdin.read():
        data = held + block
        # Whether a line ends there is seen with the next byte.
        held = b"\r" if data.endswith(b"\r") else b""
        await proc.emit(_line_ends(data.removesuffix(held), to_dos, o))
        await proc.budget.yield_turn()
    await proc.emit(_line_ends(held, to_dos, o))


def _convert_eol(data: bytes, to_dos: bool, o: EolOptions) -> bytes:
    return _line_ends(_without_bom(data, to_dos, o), to_dos, o)


def _without_bom(data: bytes, to_dos: bool, o: EolOptions) -> bytes:
    return data if to_dos or o.keep_bom else data.removeprefix(b"\xef\xbb\xbf")


def _line_ends(data: bytes, to_dos: bool, o: EolOptions) -> bytes:
    if not to_dos:
        return data.replace(b"\r\n", b"\n\n" if o.newline else b"\n")
    unix = data.replace(b"\r\n", b"\n")
    return unix.replace(b"\n", b"\r\n\r\n" if o.newline else b"\r\n")


COMMANDS = [
    Command(
        "dos2unix",
        eol,
        EolOptions,
        summary="Convert text files with DOS line breaks to Unix line breaks.",
        ignored=("-c= --convmode=", "-s --safe", "-F --follow-link", "-S --skip-link"),
    ),
    Command(
        "unix2dos",
        eol,
        EolOptions,
        summary="Convert text files with Unix line breaks to DOS line breaks.",
        ignored=("-c= --convmode=", "-s --safe", "-F --follow-link", "-S --skip-link"),
    ),
]
