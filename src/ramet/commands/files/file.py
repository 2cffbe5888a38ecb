"""file: determine the type of files by their content, in the words of file(1)."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import dataclass

from ramet.commands.archives.codecs import Corrupt, decompressed, sniff
from ramet.commands.files.file_magic import Test, identified, of_text, tests_of
from ramet.commands.framework.command import Command, UsageError, choose, flag, several, value
from ramet.commands.framework.inputs import slurp
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind
from ramet.core.streams import BytesReader


@dataclass(frozen=True, slots=True)
class FileOptions:
    brief: bool = flag("-b", "--brief", help="do not prepend filenames to output lines")
    mime: bool = flag("-i", "--mime", help="output MIME type strings (--mime-type and --mime-encoding)")
    mime_type: bool = flag("--mime-type", help="output the MIME type")
    mime_encoding: bool = flag("--mime-encoding", help="output the MIME encoding")
    follow: bool = flag("-L", "--dereference", help="follow symlinks")
    no_follow: bool = flag("-h", "--no-dereference", help="don't follow symlinks (default)")
    files_from: tuple[str, ...] = several(
        "-f", "--files-from", metavar="FILE", help="read the filenames to be examined from FILE"
    )
    separator: str = value(
        "-F", "--separator", metavar="STRING", default=":", help="use STRING as separator instead of ':'"
    )
    no_pad: bool = flag("-N", "--no-pad", help="do not pad output")
    print0: bool = flag("-0", "--print0", help="terminate filenames with ASCII NUL")
    keep_going: bool = flag("-k", "--keep-going", help="don't stop at the first match")
    extension: bool = flag("--extension", help="output a slash-separated list of extensions")
    unpack: str = choose(
        {"-z --uncompress": "told", "-Z --uncompress-noreport": "silent"},
        default="",
        help="try to look inside compressed files; -Z tells of the contents only",
    )
    magic: tuple[str, ...] = several("-m", "--magic-file", metavar="LIST", help="use LIST of files with descriptions")
    apple: bool = flag("--apple", help="output the Apple CREATOR/TYPE, which is not known of any")
    excluded: tuple[str, ...] = several(
        "-e",
        "--exclude",
        "--exclude-quiet",
        metavar="TEST",
        help="leave out a test, such as text",
    )
    raw: bool = flag("-r", "--raw", help="don't translate unprintable chars to \\ooo")


async def file(proc: Proc, o: FileOptions, operands: list[str]) -> int:
    words = list(operands)
    for word in o.files_from:
        words += [decode(line) for line in (await slurp(proc, word)).split(b"\n") if line]
    if not words:
        raise UsageError("Usage: file [-bchiklLNnprsvzZ0] [-F separator] [-f namefile] [file ...]", hint=False)
    try:
        listed = [name for text in o.magic for name in text.split(":") if name]
        tests = [test for name in listed for test in tests_of(decode(await slurp(proc, name)))]
    except OSError as error:
        proc.complain(f"could not find any valid magic files! ({reason(error)})")
        return 1
    status = 0
    width = 0 if o.no_pad else max(len(w) for w in words) + len(o.separator)
    for word in words:
        text, mime = await _kind(proc, o, word, tests)
        if o.extension and text == "directory":
            shown, status = f" ERROR: cannot read `{word}' (Is a directory)"[1:], 1
        elif o.extension:
            shown = text if text.startswith("cannot open") else _EXTENSIONS.get(mime.partition(";")[0], "???")
        elif o.apple:
            shown = "UNKNUNKN"
        elif o.mime or (o.mime_type and o.mime_encoding):
            shown = mime
        elif o.mime_type:
            shown = mime.partition(";")[0]
        elif o.mime_encoding:
            shown = mime.partition("charset=")[2] or "binary"
        else:
            shown = text
        name = "/dev/stdin" if word == "-" else word
        lead = "" if o.brief else f"{name}{chr(0) if o.print0 else ''}{o.separator}".ljust(width) + " "
        await proc.emit(encode(f"{lead}{shown}\n"))
    return status


async def _kind(proc: Proc, o: FileOptions, word: str, tests: list[Test]) -> tuple[str, str]:
    if word != "-":
        try:
            stat = await proc.fs.stat(proc.path(word))
            if stat.kind is Kind.LINK:
                if not o.follow:
                    try:
                        await proc.fs.stat(proc.path(word), follow=True)
                    except OSError:
                        return f"broken symbolic link to {stat.target}", "inode/symlink; charset=binary"
                    return f"symbolic link to {stat.target}", "inode/symlink; charset=binary"
                stat = await proc.fs.stat(proc.path(word), follow=True)
        except OSError as error:
            text = f"cannot open `{word}' ({reason(error)})"
            return text, text
        if stat.kind is Kind.DIR:
            return "directory", "inode/directory; charset=binary"
        if stat.kind is Kind.FIFO:
            return "fifo (named pipe)", "inode/fifo; charset=binary"
        if stat.kind is Kind.DEVICE:
            return "character special (1/3)", "inode/chardevice; charset=binary"
        if stat.size == 0:
            return "empty", "inode/x-empty; charset=binary"
    try:
        reader = await proc.open(word)
        data = await reader.read_exactly(1 << 20)
        await proc.close(reader)
    except OSError as error:
        text = f"cannot open `{word}' ({reason(error)})"
        return text, text
    return await _detect(o, data, tests)


async def _detect(o: FileOptions, data: bytes, tests: list[Test]) -> tuple[str, str]:
    """Return what data is by the tests of the user, by what it holds packed, or by what is known of types here."""
    found = identified(tests, data) if tests else None
    if found is not None:
        text, mime = describe(data)
        said = f"{found[0]}, {text}" if of_text(tests, data) and mime.startswith("text") else found[0]
        return said, f"{found[1] or 'application/octet-stream'}; {mime.partition('; ')[2]}"
    format_ = sniff(data) if o.unpack else None
    if format_ is not None:
        try:
            inner = b""
            async for block in decompressed(BytesReader(data), format_):
                inner += block
                if len(inner) >= 1 << 20:
                    break
        except Corrupt:
            return describe(data)
        outside, packed = describe(data)
        inside, mime = describe(inner)
        # The size stands at the end of the file, which is not read.
        outside, inside = (re.sub(r", original size modulo .*", "", text) for text in (outside, inside))
        if o.unpack == "silent":
            return inside, mime
        return f"{inside} ({outside})", f"{mime} compressed-encoding={packed}"
    text, mime = describe(data)
    if mime.startswith("text") and any(test in ("text", "ascii") for test in o.excluded):
        return "data", "application/octet-stream; charset=binary"
    return text, mime


_EXTENSIONS = {
    "image/png": "png",
    "image/gif": "gif",
    "image/jpeg": "jpeg/jpg/jpe/jfif",
    "image/bmp": "bmp/ico",
    "image/tiff": "tif/tiff",
    "application/pdf": "pdf",
    "application/gzip": "gz/tgz/tpz/ipk/vbox-extpack/svgz/blend/dia/gnucash/rdata/xoj",
    "application/x-tar": "tar/gtar",
    "application/x-xz": "xz",
    "application/x-bzip2": "bz2",
    "application/x-lzma": "lzma",
    "application/zstd": "zst",
    "application/x-7z-compressed": "7z/cb7",
    "application/x-rar": "rar/cbr",
    "application/vnd.sqlite3": "sqlite/sqlite3/db/db3/dbe/sdb/help",
    "application/wasm": "wasm",
    "application/x-archive": "a/lib/ar",
    "application/x-java-applet": "class",
    "audio/x-wav": "wav/wave",
}


_MAGIC: list[tuple[bytes, str, str]] = [
    (b"%PDF-", "", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "", "image/png"),
    (b"GIF8", "", "image/gif"),
    (b"\xff\xd8\xff", "JPEG image data", "image/jpeg"),
    (b"BZh", "", "application/x-bzip2"),
    (b"\xfd7zXZ\0", "", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "Zstandard compressed data (v0.8+), Dictionary ID: None", "application/zstd"),
    (b"\x04\x22\x4d\x18", "LZ4 compressed data (v1.4+)", "application/x-lz4"),
    (b"7z\xbc\xaf\x27\x1c", "", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "RAR archive data", "application/x-rar"),
    (b"\x7fELF", "", "application/x-executable"),
    (b"MZ", "MS-DOS executable", "application/x-dosexec"),
    (b"SQLite format 3\0", "SQLite 3.x database", "application/vnd.sqlite3"),
    (b"PAR1", "Apache Parquet", "application/vnd.apache.parquet"),
    (b"OggS", "Ogg data", "application/ogg"),
    (b"fLaC", "FLAC audio bitstream data", "audio/flac"),
    (b"ID3", "Audio file with ID3", "audio/mpeg"),
    (b"\xca\xfe\xba\xbe", "compiled Java class data", "application/x-java-applet"),
    (b"\0asm", "WebAssembly (wasm) binary module version 0x1 (MVP)", "application/wasm"),
    (b"wOFF", "Web Open Font Format", "font/woff"),
    (b"\x1f\x9d", "compress'd data", "application/x-compress"),
    (b"!<arch>\n", "current ar archive", "application/x-archive"),
    (b"BM", "PC bitmap", "image/bmp"),
    (b"II*\0", "TIFF image data, little-endian", "image/tiff"),
    (b"MM\0*", "TIFF image data, big-endian", "image/tiff"),
    (b"\0\0\1\0", "MS Windows icon resource", "image/vnd.microsoft.icon"),
    (b"glTF", "glTF binary model", "model/gltf-binary"),
]


def describe(data: bytes) -> tuple[str, str]:
    """Return the description and the MIME type of data."""
    if not data:
        return "empty", "inode/x-empty; charset=binary"
    if len(data) == 1:
        return "very short file (no magic)", "application/octet-stream; charset=binary"
    binary = _binary(data)
    if binary is not None:
        return binary[0], f"{binary[1]}; charset=binary"
    return _text(data)


_ANY = "application/octet-stream"
_SHORTEST = {
    b"BM": 30,
    b"\x89PNG\r\n\x1a\n": 29,
    b"\xff\xd8\xff": 4,
    b"\xca\xfe\xba\xbe": 8,
    b"Rar!\x1a\x07": 7,
    b"MZ": 3,
    b"SQLite format 3\0": 17,
    b"\0\0\1\0": 5,
}
"""Least bytes of formats with short magic numbers."""


def _binary(data: bytes) -> tuple[str, str] | None:
    if data.startswith(b"\x1f\x8b") and len(data) > 3:
        return _gzip(data), "application/gzip"
    if data.startswith(b"PK\x03\x04") and len(data) > 8:
        return _zip(data)
    if data.startswith(b"PK\x05\x06"):
        return "Zip archive data (empty)", "application/zip"
    if len(data) > 262 and data[257:262] == b"ustar":
        gnu = data[257:265] == b"ustar  \0"
        return f"POSIX tar archive{' (GNU)' if gnu else ''}", "application/x-tar"
    if data.startswith(b"RIFF"):
        kind = {
            b"WAVE": ("WAVE audio", "audio/x-wav"),
            b"AVI ": ("AVI", "video/x-msvideo"),
            b"WEBP": ("Web/P image", "image/webp"),
        }.get(data[8:12])
        return (f"RIFF (little-endian) data, {kind[0]}", kind[1]) if kind else ("RIFF (little-endian) data", _ANY)
    if data[4:8] == b"ftyp":
        return "ISO Media, MP4 Base Media v1 [ISO 14496-12:2003]", "video/mp4"
    for magic, text, mime in _MAGIC:
        if data.startswith(magic):
            if len(data) < _SHORTEST.get(magic, 0):
                continue
            return text or _detail(magic, data), mime
    return None


def _gzip(data: bytes) -> str:
    text = "gzip compressed data"
    flags = data[3]
    at = 10
    if flags & 4:
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    if flags & 8:
        end = data.find(b"\0", at)
        text += f', was "{decode(data[at:end])}"'
    stamp = int.from_bytes(data[4:8], "little")
    if stamp:
        from ramet.text.strftime import NANO, strftime, zone
        from ramet.text.strftime import at as moment

        text += ", last modified: " + strftime("%a %b %e %H:%M:%S %Y", moment(stamp * NANO, zone("UTC"))[0])
    text += {2: ", max compression", 4: ", max speed"}.get(data[8], "")
    text += {3: ", from Unix", 0: ", from FAT filesystem (MS-DOS, OS/2, NT)"}.get(data[9], "")
    size = int.from_bytes(data[-4:], "little")
    return f"{text}, original size modulo 2^32 {size}"


def _zip(data: bytes) -> tuple[str, str]:
    name_length = int.from_bytes(data[26:28], "little")
    first = data[30 : 30 + name_length]
    if first == b"mimetype" and b"application/epub+zip" in data[:100]:
        return "EPUB document", "application/epub+zip"
    if first in (b"[Content_Types].xml", b"_rels/.rels"):
        head = data[:8000]
        if b"word/" in head:
            return "Microsoft Word 2007+", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
        if b"xl/" in head:
            return "Microsoft Excel 2007+", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
        if b"ppt/" in head:
            return (
                "Microsoft PowerPoint 2007+",
                "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            )
        return "Microsoft OOXML", "application/octet-stream"
    if first.startswith(b"META-INF/"):
        return "Java archive data (JAR)", "application/java-archive"
    version = data[4]
    method = {0: "store", 8: "deflate", 12: "bzip2", 14: "lzma"}.get(data[8], "")
    return (
        f"Zip archive data, at least v{version // 10}.{version % 10} to extract, compression method={method}",
        "application/zip",
    )


def _detail(magic: bytes, data: bytes) -> str:
    if magic == b"\xfd7zXZ\0":
        names = {0: "NONE", 1: "CRC32", 4: "CRC64", 10: "SHA-256"}
        check = names.get(data[7] & 15) if len(data) > 7 else None
        return "XZ compressed data" + (f", checksum {check}" if check else "")
    if magic == b"%PDF-":
        found = re.match(rb"%PDF-(\d+\.\d+)", data)
        pages = re.search(rb"/Type\s*/Pages.*?/Count\s+(\d+)", data, re.S)
        text = f"PDF document, version {found[1].decode() if found else '?'}"
        return text + (f", {pages[1].decode()} page(s)" if pages else "")
    if magic.startswith(b"\x89PNG"):
        width, height, depth, color = struct.unpack(">IIBB", data[16:26])
        kinds = {0: "grayscale", 2: "/color RGB", 3: " colormap", 4: "gray+alpha", 6: "/color RGBA"}
        kind = kinds.get(color, "")
        interlaced = "interlaced" if data[28] else "non-interlaced"
        return (
            f"PNG image data, {width} x {height}, {depth}-bit{kind if kind[:1] in '/ ' else ' ' + kind}, {interlaced}"
        )
    if magic == b"7z\xbc\xaf\x27\x1c":
        return "7-zip archive data," + (f" version {data[6]}.{data[7]}" if len(data) > 7 else "")
    if magic == b"GIF8" and len(data) < 6:
        return "GIF image data"
    if magic == b"GIF8":
        version = f"GIF image data, version {data[3:6].decode('latin-1')},"
        return version + (" {} x {}".format(*struct.unpack("<HH", data[6:10])) if len(data) >= 10 else "")
    if magic == b"BZh":
        return f"bzip2 compressed data, block size = {chr(data[3])}00k" if len(data) > 3 else "bzip2 compressed data"
    if len(data) < 5:
        return "ELF"
    if len(data) < 18:
        return f"ELF {64 if data[4] == 2 else 32}-bit LSB"
    return "ELF 64-bit LSB executable, x86-64, version 1 (SYSV)" if data[4:5] == b"\2" else "ELF 32-bit LSB executable"


_TEXT_BYTES = frozenset({7, 8, 9, 10, 12, 13, 27, *range(32, 127), 0x85, *range(0xA0, 256)})
_INTERPRETERS = [
    (r"python[\d.]*", "Python script", "text/x-script.python"),
    (r"sh", "POSIX shell script", "text/x-shellscript"),
    (r"bash", "Bourne-Again shell script", "text/x-shellscript"),
    (r"zsh", "Paul Falstad's zsh script", "text/x-shellscript"),
    (r"ksh", "Korn shell script", "text/x-shellscript"),
    (r"csh", "C shell script", "text/x-shellscript"),
    (r"tcsh", "Tenex C shell script", "text/x-shellscript"),
    (r"fish", "fish shell script", "text/x-shellscript"),
    (r"perl", "Perl script", "text/x-perl"),
    (r"tclsh|wish", "Tcl/Tk script", "text/x-tcl"),
    (r"lua", "Lua script", "text/x-lua"),
    (r"ruby", "Ruby script", "text/x-ruby"),
    (r"node", "Node.js script", "application/javascript"),
    (r"awk", "awk script", "text/x-awk"),
    (r"[gmn]awk", "{} script", "text/x-awk"),
    (r"php", "PHP script", "text/x-php"),
]


def _charset(data: bytes) -> tuple[str, str] | None:
    if data.startswith(b"\xef\xbb\xbf"):
        return "Unicode text, UTF-8 (with BOM)", "utf-8"
    if data.startswith(b"\xff\xfe"):
        return "Unicode text, UTF-16, little-endian", "utf-16le"
    if data.startswith(b"\xfe\xff"):
        return "Unicode text, UTF-16, big-endian", "utf-16be"
    if any(c not in _TEXT_BYTES and c < 128 for c in set(data)):
        return None
    if data.isascii():
        return "ASCII", "us-ascii"
    try:
        data.decode()
        return "Unicode text, UTF-8", "utf-8"
    except UnicodeDecodeError as error:
        if error.end >= len(data) - 3 and len(data) == 1 << 20:
            return "Unicode text, UTF-8", "utf-8"
    if all(c in _TEXT_BYTES for c in set(data)):
        return "ISO-8859", "iso-8859-1"
    if not set(data) & (set(range(256)) - _TEXT_BYTES - set(range(0x80, 0xA0))):
        return "Non-ISO extended-ASCII", "unknown-8bit"
    return None


_ALONE = (
    (rb"%!PS-Adobe-([\d.]+)", "PostScript document text conforming DSC level {}", "application/postscript"),
    (rb"-----BEGIN CERTIFICATE-----", "PEM certificate", "text/plain"),
    (rb"-----BEGIN RSA PRIVATE KEY-----", "PEM RSA private key", "text/plain"),
    (rb"-----BEGIN OPENSSH PRIVATE KEY-----", "OpenSSH private key", "text/plain"),
    (rb"ssh-rsa ", "OpenSSH RSA public key", "text/plain"),
    (rb"ssh-dss ", "OpenSSH DSA public key", "text/plain"),
    (rb"#! ?/\S*bin/(?:env )?perl", "Perl script text executable", "text/x-perl"),
    (rb"BEGIN:VCARD", "vCard visiting card", "text/vcard"),
    (rb"BEGIN:VCALENDAR", "vCalendar calendar file", "text/calendar"),
    (rb"-----BEGIN PGP MESSAGE-", "PGP message", "application/pgp-encrypted"),
    (rb"-----BEGIN PGP SIGNATURE-", "PGP signature", "application/pgp-signature"),
    (rb"-----BEGIN PGP PUBLIC KEY BLOCK-", "PGP public key block", "application/pgp-keys"),
    (rb"-----BEGIN CERTIFICATE REQ", "PEM certificate request", "text/plain"),
    (rb"ssh-ed25519 ", "OpenSSH ED25519 public key", "text/plain"),
    (rb"ecdsa-sha2-nistp", "OpenSSH ECDSA public key", "text/plain"),
    (rb"<svg", "SVG Scalable Vector Graphics image", "image/svg+xml"),
)
"""Text types described without charset and line ends."""
_SAID_ALL = {"JSON": "JSON text data", "NDJSON": "New Line Delimited JSON text data", "CSV": "CSV text"}


def _text(data: bytes) -> tuple[str, str]:
    charset = _charset(data)
    if charset is None:
        return "data", "application/octet-stream; charset=binary"
    label, encoding = charset
    for pattern, text, mime in _ALONE:
        if found := re.match(pattern, data):
            return text.format(*map(decode, found.groups())), f"{mime}; charset={encoding}"
    kind, mime = _language(data)
    lines = data.split(b"\n")
    text = f"{label} text"
    if kind in _SAID_ALL:
        return _SAID_ALL[kind], f"{mime}; charset={encoding}"
    parts = [text]
    if kind:
        if kind.endswith("script") and (data.startswith(b"#!") or kind.startswith("Python")):
            parts = [f"{kind} executable, {text}" if kind.startswith("Node") else f"{kind}, {text} executable"]
        else:
            parts = [f"{kind}, {text}"]
    longest = max(map(len, lines))
    if longest > 300:
        parts.append(f"with very long lines ({longest})")
    crlf, bare = data.count(b"\r\n"), data.count(b"\n")
    cr = data.count(b"\r") - crlf
    ends = [name for name, number in (("CRLF", crlf), ("CR", cr), ("LF", bare - crlf)) if number]
    if not bare and not cr:
        parts.append("with no line terminators")
    elif ends and ends != ["LF"]:
        parts.append(f"with {', '.join(ends)} line terminators")
    if 27 in data:
        parts.append("with escape sequences")
    if 8 in data:
        parts.append("with overstriking")
    return ", ".join(parts), f"{mime}; charset={encoding}"


def _language(data: bytes) -> tuple[str, str]:
    head = data[:4096].lstrip(b"\xef\xbb\xbf")
    found = re.match(rb"#! *(\S+)(?:[ \t]+(\S+))?", head)
    if found:
        program = decode(found[1])
        name = program.rpartition("/")[2]
        if name == "env" and found[2]:
            name = decode(found[2]).rpartition("/")[2]
        for pattern, text, mime in _INTERPRETERS:
            if re.fullmatch(pattern, name):
                return text.format(name), mime
        command = decode(head.split(b"\n")[0][2:]).strip()
        return f"a {command.removeprefix('/usr/bin/env ')} script", "text/plain"
    stripped = head.lstrip()
    if stripped.startswith(b"<?xml"):
        version = re.search(rb'version="([\d.]+)"', stripped[:100])
        return f"XML {version[1].decode()} document" if version else "XML document", "text/xml"
    if re.match(rb"(?:<!--.*?-->\s*)?(?:<!doctype html|<html|<head|<body)", stripped, re.I | re.S):
        return "HTML document", "text/html"
    if stripped[:1] in (b"{", b"["):
        try:
            json.loads(data)
            return "JSON", "application/json"
        except (ValueError, RecursionError):
            if _is_ndjson(data):
                return "NDJSON", "application/x-ndjson"
    if re.search(rb"^(?:from \w[\w.]* import |def \w+\(.*\):|class \w+.*:$)", head, re.M):
        return "Python script", "text/x-script.python"
    if re.search(rb"^#include\s*[<\"]", head, re.M):
        return ("C++ source" if re.search(rb"\b(class|template|namespace)\b", head) else "C source"), "text/x-c"
    for line, kind, mime in _SOURCES:
        if re.search(line, head, re.M):
            return kind, mime
    for start, kind, mime in _LETTERS:
        if head.startswith(start):
            return kind, mime
    if _is_csv(data):
        return "CSV", "text/csv"
    return "", "text/plain"


def _is_ndjson(data: bytes) -> bool:
    """Return whether several lines are JSON objects or arrays."""
    lines = data[:65536].removesuffix(b"\n").split(b"\n")
    try:
        return len(lines) > 1 and all(isinstance(json.loads(line), (dict, list)) for line in lines)
    except (ValueError, RecursionError):
        return False


_SOURCES = (
    (rb"^--- .*\n\+\+\+ .*\n@@ ", "unified diff output", "text/x-diff"),
    (rb"\A\*\*\* .*\n--- ", "context diff output", "text/x-diff"),
    (rb"\Adiff |\AOnly in |\ACommon subdirectories: ", "diff output", "text/x-diff"),
    (rb"\AIndex:", "RCS/CVS diff output", "text/x-diff"),
    (rb"\A#EXTM3U", "M3U playlist", "text/plain"),
    (rb"\AMIME-Version:", "MIME entity", "text/plain"),
    (rb"\A\\documentclass", "LaTeX 2e document", "text/x-tex"),
    (rb"(?i)\A@echo off", "DOS batch file", "text/x-msdos-batch"),
    (rb"\A<\?php", "PHP script", "text/x-php"),
    (rb"^(?:all:|CFLAGS|VPATH|LDFLAGS|\.PRECIOUS)", "makefile script", "text/x-makefile"),
    (rb"^\s*class\s+[\w:]+\s*\{[^}]*\};?$|^\s*template\s*<", "C++ source", "text/x-c++"),
    (rb"main\([^\n]{0,58}String|^import.*;$", "Java source", "text/x-java"),
    (rb"main\([^\n]*\)\s*\{|^#\s*pragma|^\s*extern\s+|^(?:struct|union)\s+", "C source", "text/x-c"),
    (rb"^#\s*ifn?def[^\0]*^#\s*(?:endif$|define)", "C source", "text/x-c"),
    (rb"^\s*(?:char|double|float)(?: \*|\*).+;\s*$", "C source", "text/x-c"),
)
"""Patterns of source code, in order of precedence."""
_LETTERS = (
    (b"From:", "news or mail", "message/rfc822"),
    (b"Received:", "RFC 822 mail", "message/rfc822"),
    (b"Return-Path:", "SMTP mail", "message/rfc822"),
    (b"Path:", "news", "message/news"),
    (b"Xref:", "news", "message/news"),
)
"""Patterns at the start of mail and news."""


def _is_csv(data: bytes) -> bool:
    """Return whether the first ten lines (at least three) have equally many commas."""
    rows = re.sub(rb'"(?:[^"]|"")*"', b"", data[:65536]).split(b"\n")[:-1][:10]
    return len(rows) > 2 and rows[0].count(b",") > 0 and len({row.count(b",") for row in rows}) == 1


COMMANDS = [
    Command(
        "file",
        file,
        FileOptions,
        summary="Determine type of FILEs.",
        usage="[OPTION]... [FILE]...",
        ignored=(
            "-n --no-buffer",
            "-p --preserve-date",
            "-s --special-files",
            "-S --no-sandbox",
            "-P= --parameter=",
            "-d --debug",
            "-E",
            "-c --checking-printout",
        ),
        refused={
            "-C --compile": "descriptions are read as they are",
            "-l --list": "the table of types is built in",
        },
        version_letters="v",
    ),
]
