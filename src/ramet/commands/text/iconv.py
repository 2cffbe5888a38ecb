"""Bytes into other bytes: iconv, dos2unix, unix2dos."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, flag, value
from ramet.commands.framework.inputs import Inputs
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.stat import Attrs

# -------------------------------------------------------------------------------------------------------- iconv


@dataclass(frozen=True, slots=True)
class IconvOptions:
    source: str | None = value("-f", "--from-code", metavar="NAME", help="encoding of original text")
    target: str | None = value("-t", "--to-code", metavar="NAME", help="encoding for output")
    list: bool = flag("-l", "--list", help="list all known coded character sets")
    omit: bool = flag("-c", help="omit invalid characters from output")
    output: str | None = value("-o", "--output", metavar="FILE", help="output file")
    silent: bool = flag("-s", "--silent", help="suppress warnings")
    verbose: bool = flag("--verbose", help="print progress information")


_ENCODINGS = (
    "ASCII",
    "BIG5",
    "CP437",
    "CP850",
    "CP1250",
    "CP1251",
    "CP1252",
    "EUC-JP",
    "EUC-KR",
    "GB18030",
    "GB2312",
    "GBK",
    "ISO-8859-1",
    "ISO-8859-2",
    "ISO-8859-5",
    "ISO-8859-7",
    "ISO-8859-9",
    "ISO-8859-15",
    "KOI8-R",
    "KOI8-U",
    "LATIN1",
    "MACINTOSH",
    "SHIFT_JIS",
    "UCS-2",
    "UCS-4",
    "US-ASCII",
    "UTF-16",
    "UTF-16BE",
    "UTF-16LE",
    "UTF-32",
    "UTF-32BE",
    "UTF-32LE",
    "UTF-7",
    "UTF-8",
    "WINDOWS-1252",
)
_NAMES = {
    "MACINTOSH": "mac_roman",
    "UCS-2": "utf-16-le",
    "UCS2": "utf-16-le",
    "UCS-4": "utf-32-be",
    "UCS4": "utf-32-be",
    "UCS-4BE": "utf-32-be",
    "UCS-4LE": "utf-32-le",
    "UCS-2BE": "utf-16-be",
    "UCS-2LE": "utf-16-le",
    "WINDOWS-1252": "cp1252",
    "UTF-16": "utf-16",
    "UTF8": "utf-8",
    "ANSI_X3.4-1968": "ascii",
    "LATIN1": "latin-1",
    "CHAR": "utf-8",
    "": "utf-8",
}


def _codec(name: str) -> str | None:
    base = name.split("//")[0].upper()
    try:
        info = codecs.lookup(_NAMES.get(base, base))
    except LookupError:
        return None
    return info.name if info._is_text_encoding else None


def _translit(char: str) -> str:
    """A stand-in for a character the target lacks."""
    import unicodedata

    table = {
        "‘": "'",
        "’": "'",
        "“": '"',
        "”": '"',
        "–": "-",
        "—": "--",
        "…": "...",
        "€": "EUR",
        "ß": "ss",
        "©": "(C)",
        "®": "(R)",
        "æ": "ae",
        "Æ": "AE",
        "ø": "o",
        "Ø": "O",
        "«": "<<",
        "»": ">>",
        "×": "x",
        "•": "o",
        "œ": "oe",
        "Œ": "OE",
    }
    if char in table:
        return table[char]
    plain = "".join(c for c in unicodedata.normalize("NFKD", char) if not unicodedata.combining(c) and ord(c) < 128)
    return plain or "?"


async def iconv(proc: Proc, o: IconvOptions, operands: list[str]) -> int:
    if o.list:
        await proc.emit(encode("".join(f"{name}//\n" for name in _ENCODINGS)))
        return 0
    source, target = _codec(o.source or "UTF-8"), _codec(o.target or "UTF-8")
    if source is None or target is None:
        bad_source, bad_target = source is None, target is None
        if bad_source and bad_target:
            text = f"conversions from `{o.source}' and to `{o.target}' are not supported"
        elif bad_source:
            text = f"conversion from `{o.source}' is not supported"
        else:
            text = f"conversion to `{(o.target or '').split('//')[0]}' is not supported"
        raise UsageError(text, 1)
    modifiers = (o.target or "").upper().split("//")[1:]
    translit, ignore = any("TRANSLIT" in m for m in modifiers), o.omit or any("IGNORE" in m for m in modifiers)
    out = await proc.create(o.output) if o.output is not None else proc.stdout
    decoder = codecs.getincrementaldecoder(source)("ignore" if ignore else "strict")
    encoder = codecs.getincrementalencoder(target)("ignore" if ignore and not translit else "strict")
    inputs = Inputs(proc, operands, form="cannot open input file `{}': {}", name=str)
    status = 0
    seen = 0
    async for _, reader in inputs.each():
        while True:
            block = await reader.read()
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                good = error.object[: error.start].decode(source, "ignore")
                out.write(_encoded(encoder, good, translit))
                if error.reason in ("unexpected end of data", "truncated data") and not block:
                    proc.complain("incomplete character or shift sequence at end of buffer")
                else:
                    proc.complain(f"illegal input sequence at position {seen + error.start}")
                return 1
            try:
                out.write(_encoded(encoder, text, translit))
            except UnicodeEncodeError as error:
                out.write(encoder.encode(text[: error.start]))
                where = seen + len(text[: error.start].encode(source, "ignore"))
                proc.complain(f"illegal input sequence at position {where}")
                return 1
            seen += len(block)
            if out.full:
                await out.drain()
            await proc.budget.yield_turn()
            if not block:
                break
    await proc.close(out)
    return status or inputs.status


def _encoded(encoder: codecs.IncrementalEncoder, text: str, translit: bool) -> bytes:
    if not translit:
        return encoder.encode(text)
    try:
        return encoder.encode(text)
    except UnicodeEncodeError:
        parts: list[bytes] = []
        for char in text:
            try:
                parts.append(encoder.encode(char))
            except UnicodeEncodeError:
                parts.append(encoder.encode(_translit(char)))
        return b"".join(parts)


# --------------------------------------------------------------------------------------- dos2unix and unix2dos


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
            reader = await proc.fs.open(path)
            data = await reader.read_all()
            await reader.close()
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
        "iconv",
        iconv,
        IconvOptions,
        summary="Convert text from one character encoding to another.",
        bad_usage=64,
        version_letters="V",
        hint="`{} --help' or `{} --usage'",
        stdin_error=StdinError("error while reading the input: {}", fatal=True),
    ),
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
