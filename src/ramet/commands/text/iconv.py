"""iconv: convert text between character encodings."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, flag, value
from ramet.commands.framework.inputs import Inputs
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.paths import encode
from ramet.core.proc import Proc


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
]
