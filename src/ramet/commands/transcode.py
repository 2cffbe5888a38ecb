"""Bytes into other bytes: iconv, dos2unix, unix2dos, dd."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field

from ramet.commands.declare import Command, UsageError, flag, quote, shown, typographic, value
from ramet.commands.inputs import Inputs, only_opens, size_suffix
from ramet.core.errors import reason
from ramet.core.fs import Open
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.stat import Attrs
from ramet.core.streams import FileStream, Reader, Writer

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
            await proc.budget.breathe()
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
        await proc.budget.breathe()
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


# ----------------------------------------------------------------------------------------------------------- dd


def _dd_number(text: str) -> int:
    total = 1
    for piece in text.lower().split("x") if not text.lower().startswith("0x") else [text]:
        found = re.fullmatch(r"(\d+)([a-zA-Z]*)", piece)
        factor: int | None = None
        if found:
            suffix = found[2]
            factor = (
                {"c": 1, "w": 2, "b": 512}.get(suffix)
                if suffix in ("c", "w", "b")
                else size_suffix(suffix[:1].upper() + suffix[1:] if suffix else "")
            )
            if factor is None and suffix.endswith(("b", "ib")):
                factor = size_suffix(suffix[:-1].upper().replace("I", "i") + "B")
        if found is None or factor is None:
            raise UsageError(f"invalid number: {quote(text)}", hint=False)
        total *= int(found[1]) * factor
    return total


_CONVERSIONS = (
    "ascii",
    "ebcdic",
    "ibm",
    "block",
    "unblock",
    "lcase",
    "ucase",
    "sparse",
    "swab",
    "sync",
    "excl",
    "nocreat",
    "notrunc",
    "noerror",
    "fdatasync",
    "fsync",
)


@dataclass
class _Dd:
    proc: Proc
    options: dict[str, str] = field(default_factory=dict)
    conv: set[str] = field(default_factory=set)
    iflag: set[str] = field(default_factory=set)
    oflag: set[str] = field(default_factory=set)
    full_in: int = 0
    part_in: int = 0
    full_out: int = 0
    part_out: int = 0
    copied: int = 0

    def number(self, name: str, default: int) -> int:
        return _dd_number(self.options[name]) if name in self.options else default


async def dd(proc: Proc, o: None, words: list[str]) -> int:
    job = _Dd(proc)
    known = {
        "bs",
        "cbs",
        "conv",
        "count",
        "ibs",
        "if",
        "iflag",
        "obs",
        "of",
        "oflag",
        "seek",
        "skip",
        "status",
        "iseek",
        "oseek",
    }
    for word in words:
        if word == "--":
            continue
        name, equals, text = word.partition("=")
        if not equals or name not in known:
            raise UsageError(f"unrecognized operand {quote(word)}")
        if name in ("conv", "iflag", "oflag"):
            for piece in text.split(","):
                if name == "conv" and piece not in _CONVERSIONS:
                    raise UsageError(f"invalid conversion: {quote(piece)}")
                getattr(job, name).add(piece)
        else:
            job.options[{"iseek": "skip", "oseek": "seek"}.get(name, name)] = text
    status = job.options.get("status", "")
    if status not in ("", "none", "noxfer", "progress"):
        raise UsageError(f"invalid status level: {quote(status)}")
    try:
        return await _dd_run(job, status)
    except OSError as error:
        if error.errno == 32:
            raise
        if "if" not in job.options and only_opens(error):
            proc.complain(typographic(proc, f"error reading 'standard input': {reason(error)}"))
            return 1
        name = error.filename or job.options.get("of", job.options.get("if", ""))
        proc.complain(f"failed to open {quote(str(name))}: {reason(error)}")
        return 1


async def _dd_run(job: _Dd, status: str) -> int:
    import asyncio

    proc = job.proc
    loop = asyncio.get_running_loop()
    start = loop.time()
    bs = job.number("bs", 0)
    if "bs" in job.options and bs == 0:
        raise UsageError(f"invalid number: {quote(job.options['bs'])}", hint=False)
    ibs, obs = bs or job.number("ibs", 512), bs or job.number("obs", 512)
    if ibs == 0 or obs == 0:
        raise UsageError("invalid number: '0'", hint=False)
    skip, seek, count = job.number("skip", 0), job.number("seek", 0), job.number("count", -1)
    try:
        reader: Reader = proc.stdin if "if" not in job.options else await proc.open(job.options["if"], dash=False)
    except OSError as error:
        proc.complain(f"failed to open {quote(job.options['if'])}: {reason(error)}")
        return 1
    skip_bytes = skip if "skip_bytes" in job.iflag else skip * ibs
    if skip_bytes:
        if isinstance(reader, FileStream):
            size = (await reader.stat()).size
            told = job.options.get("status") != "none"
            if told and size is not None and reader.tell() + skip_bytes > size:
                name = shown(job.options["if"]) if "if" in job.options else "'standard input'"
                proc.complain(f"{name}: cannot skip to specified offset")
            reader.seek(reader.tell() + skip_bytes)
        else:
            await reader.read_exactly(skip_bytes)
    try:
        writer = await _dd_output(job, seek if "seek_bytes" in job.oflag else seek * obs)
    except OSError as error:
        proc.complain(f"failed to open {quote(job.options['of'])}: {reason(error)}")
        return 1
    if seek and "of" not in job.options and not isinstance(writer, FileStream):
        proc.complain("'standard output': cannot seek: Illegal seek")
        if job.options.get("status") != "none":
            proc.stderr.write(b"0+0 records in\n0+0 records out\n")
            proc.stderr.write(b"0 bytes copied, 0 s, 0.0 kB/s\n")
        return 1
    limit = count if "count_bytes" in job.iflag and count >= 0 else None
    pending = b""
    blocks = 0
    while count != 0 and (limit is None or job.copied < limit) and (limit is not None or count < 0 or blocks < count):
        want = ibs if limit is None else min(ibs, limit - blocks * ibs)
        if want <= 0:
            break
        data = await reader.read_exactly(want)
        if not data:
            break
        blocks += 1
        if len(data) == ibs:
            job.full_in += 1
        else:
            job.part_in += 1
            if "sync" in job.conv:
                data = data.ljust(ibs, b" " if "block" in job.conv or "unblock" in job.conv else b"\0")
        data = _dd_convert(job, data)
        pending += data
        while len(pending) >= obs:
            _dd_write(job, writer, pending[:obs], obs)
            pending = pending[obs:]
        if writer.full:
            await writer.drain()
        await proc.budget.breathe()
    if pending:
        _dd_write(job, writer, pending, obs)
    await proc.close(reader)
    await proc.close(writer)
    if status != "none":
        text = f"{job.full_in}+{job.part_in} records in\n{job.full_out}+{job.part_out} records out\n"
        if status != "noxfer":
            seconds = max(loop.time() - start, 1e-9)
            text += _dd_summary(job.copied, seconds)
        proc.stderr.write(text.encode())
    return 0


def _dd_write(job: _Dd, writer: Writer, data: bytes, obs: int) -> None:
    writer.write(data)
    job.copied += len(data)
    if len(data) == obs:
        job.full_out += 1
    else:
        job.part_out += 1


def _dd_convert(job: _Dd, data: bytes) -> bytes:
    if "swab" in job.conv:
        even = len(data) & ~1
        swapped = bytearray(data)
        swapped[0:even:2], swapped[1:even:2] = data[1:even:2], data[0:even:2]
        data = bytes(swapped)
    if "ucase" in job.conv:
        data = data.upper()
    if "lcase" in job.conv:
        data = data.lower()
    if "ebcdic" in job.conv or "ibm" in job.conv:
        data = data.decode("latin-1").encode("cp037", "replace")
    if "ascii" in job.conv:
        data = data.decode("cp037").encode("latin-1", "replace")
    cbs = job.number("cbs", 0)
    if cbs and "block" in job.conv:
        lines = data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        data = b"".join(line[:cbs].ljust(cbs) for line in lines)
    elif cbs and "unblock" in job.conv:
        data = b"".join(data[i : i + cbs].rstrip(b" ") + b"\n" for i in range(0, len(data), cbs))
    return data


async def _dd_output(job: _Dd, offset: int) -> Writer:
    proc = job.proc
    if "of" not in job.options:
        return proc.stdout
    word = job.options["of"]
    found = proc.descriptor(word)
    if isinstance(found, Writer):
        return found
    path = proc.path(word)
    how = Open.WRITE
    if "nocreat" not in job.conv:
        how |= Open.CREATE
    if "excl" in job.conv:
        how |= Open.EXCLUSIVE
    if "append" in job.oflag:
        how |= Open.APPEND
    if "notrunc" not in job.conv and not offset:
        how |= Open.TRUNCATE
    stream = await proc.fs.open(path, how)
    if offset:
        if "notrunc" not in job.conv:
            await stream.truncate(offset)
        stream.seek(offset)
    return stream


def _dd_summary(size: int, seconds: float) -> str:
    def scaled(number: float, base: int, letters: str) -> str:
        power = 0
        while number >= base and power < len(letters):
            number /= base
            power += 1
        digits = f"{number:.1f}" if number < 10 and power else f"{number:.0f}"
        return f"{digits} {letters[power - 1] if power else ''}{'i' if base == 1024 and power else ''}B"

    text = f"{size} byte{'' if size == 1 else 's'}"
    if size >= 1000:
        text += f" ({scaled(size, 1000, 'kMGTPE')}"
        text += f", {scaled(size, 1024, 'KMGTPE')})" if size >= 1024 else ")"
    return f"{text} copied, {seconds:.6g} s, {scaled(size / seconds, 1000, 'kMGTPE')}/s\n"


COMMANDS = [
    Command(
        "iconv",
        iconv,
        IconvOptions,
        summary="Convert text from one character encoding to another.",
        bad_usage=64,
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
    Command(
        "dd",
        dd,
        raw=True,
        summary="Copy a file, converting and formatting according to the operands.",
        usage="[OPERAND]...",
        details="Operands: if= of= bs= ibs= obs= count= skip= seek= conv=\n"
        "(lcase ucase swab sync notrunc block unblock ascii ebcdic excl nocreat ...) iflag= oflag= status=.",
    ),
]
