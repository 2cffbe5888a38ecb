"""`xz -l` and `zstd -l`: sizes and checks from frames, without decompression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ramet.commands.framework.inputs import slurp
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc


class NotListable(Exception):
    """Why a file is not listed."""


@dataclass
class FrameListing:
    """Parts of a file and their sizes; `whole` is None if unknown."""

    frames: int = 0
    inner: int = 0
    """Blocks of xz, skippable frames of zstd."""
    packed: int = 0
    whole: int | None = 0
    checks: tuple[str, ...] = ()
    padding: int = 0

    def plus(self, other: FrameListing) -> FrameListing:
        whole = None if self.whole is None or other.whole is None else self.whole + other.whole
        checks = tuple(dict.fromkeys(self.checks + other.checks))
        return FrameListing(
            self.frames + other.frames, self.inner + other.inner, self.packed + other.packed, whole, checks,
            self.padding + other.padding,
        )  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- xz

_CHECKS = {0: "None", 1: "CRC32", 4: "CRC64", 10: "SHA-256"}
_DASHES = "-" * 79


async def list_xz(proc: Proc, operands: list[str], *, quiet: bool, robot: bool) -> int:
    total, files, status = FrameListing(), 0, 0
    for word in operands:
        try:
            found = _xz(await slurp(proc, word))
        except (OSError, NotListable) as error:
            why = reason(error) if isinstance(error, OSError) else str(error)
            proc.complain(f"{word}: {why}")
            status = 1
            continue
        if robot:
            await proc.emit(encode(f"name\t{word}\nfile\t{_robot(found)}\n"))
        else:
            if not files and not quiet:
                await proc.emit(b"Strms  Blocks   Compressed Uncompressed  Ratio  Check   Filename\n")
            await proc.emit(encode(_xz_row(found, word)))
        total, files = total.plus(found), files + 1
    if robot:
        total.checks = total.checks or ("None",)
        await proc.emit(encode(f"totals\t{_robot(total)}\t{files}\n"))
    elif files > 1:
        await proc.emit(encode(f"{_DASHES}\n{_xz_row(total, f'{files} files')}"))
    return status


def _xz_row(found: FrameListing, name: str) -> str:
    whole = found.whole or 0
    return (
        f"{found.frames:5d} {found.inner:7d}  {_nice(found.packed):>11}  {_nice(whole):>11}  {_ratio(found):>5}  "
        f"{','.join(found.checks):<7} {name}\n"
    )


def _robot(found: FrameListing) -> str:
    numbers = f"{found.frames}\t{found.inner}\t{found.packed}\t{found.whole}"
    return f"{numbers}\t{_ratio(found)}\t{','.join(found.checks)}\t{found.padding}"


def _ratio(found: FrameListing) -> str:
    ratio = found.packed / found.whole if found.whole else 10.0
    return f"{ratio:.3f}" if ratio <= 9.999 else "---"


def _nice(size: int) -> str:
    if size < 10_000:
        return f"{size} B"
    value, units = size / 1024, ["KiB", "MiB", "GiB", "TiB"]
    while value > 9999.9 and len(units) > 1:
        value /= 1024
        del units[0]
    return f"{value:.1f} {units[0]}"


def _xz(data: bytes) -> FrameListing:
    """Parse streams from the last to the first: the footer of each points to its start."""
    if len(data) < 24:
        raise NotListable("Too small to be a valid .xz file" if data else "File is empty")
    found = FrameListing(packed=len(data))
    end = len(data)
    while end > 0:
        while end >= 4 and data[end - 4 : end] == b"\0\0\0\0":
            end -= 4
            found.padding += 4
        if end < 24 or data[end - 2 : end] != b"YZ":
            raise NotListable("File format not recognized")
        backward = (int.from_bytes(data[end - 8 : end - 4], "little") + 1) * 4
        index = end - 12 - backward
        if index < 12:
            raise NotListable("Compressed data is corrupt")
        count, at = _number(data, index + 1)
        blocks = whole = 0
        for _ in range(count):
            size, at = _number(data, at)
            plain, at = _number(data, at)
            blocks += (size + 3) // 4 * 4
            whole += plain
        start = index - blocks - 12
        if start < 0 or data[start : start + 6] != b"\xfd7zXZ\0":
            raise NotListable("Compressed data is corrupt")
        check = _CHECKS.get(data[end - 3] & 15, f"Unknown-{data[end - 3] & 15}")
        found.frames += 1
        found.inner += count
        found.whole = (found.whole or 0) + whole
        found.checks = tuple(dict.fromkeys((check, *found.checks)))
        end = start
    return found


def _number(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while at < len(data) and shift < 63:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
    raise NotListable("Compressed data is corrupt")


# ----------------------------------------------------------------------------------------------------------- zstd


async def list_zstd(proc: Proc, operands: list[str]) -> int:
    if not operands:
        proc.complain("no files given")
        return 1
    await proc.emit(b"Frames  Skips  Compressed  Uncompressed  Ratio  Check  Filename\n")
    total, status = FrameListing(), 0
    for word in operands:
        try:
            found = _zstd(await slurp(proc, word))
        except OSError as error:
            proc.complain(f"{word}: {reason(error)}")
            status = 1
            continue
        except NotListable as unfit:
            await proc.emit(encode(f'File "{word}" not compressed by zstd \n'))
            proc.stderr.write(encode(f"Error: {unfit} \n"))
            status = 1
            continue
        await proc.emit(encode(_zstd_row(found, word)))
        total = total.plus(found)
    if len(operands) > 1:
        await proc.emit(encode("-" * 65 + " \n" + _zstd_row(total, f"{len(operands)} files")))
    return status


def _zstd_row(found: FrameListing, name: str) -> str:
    head = f"{found.frames:6d}  {found.inner:5d}  {_human(found.packed, 6)}"
    check = "XXH64" if "XXH64" in found.checks and len(found.checks) == 1 else "None"
    if found.whole is None:
        return f"{head}{'':23}{check:>5}  {name}\n"
    ratio = found.whole / found.packed if found.packed else 0.0
    return f"{head}  {_human(found.whole, 8)}  {ratio:5.3f}  {check:>5}  {name}\n"


def _human(size: int, width: int, unit_width: int = 4) -> str:
    value, unit = float(size), "B"
    for name in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, name
    places = 0 if value >= 100 or value == int(value) == size else 1 if value >= 10 else 2 if value > 1 else 3
    return f"{value:{width}.{places}f}{unit:>{max(unit_width, len(unit) + 1) if unit_width < 4 else unit_width}}"


def summary(word: str, target: str, size_in: int, size_out: int, mode: str) -> str:
    """Return the summary line of zstd."""
    if mode != "z":
        return f"{word:<20}: {size_out} bytes \n"
    share = f"{size_out / size_in * 100:6.2f}%" if size_in else "  0.00%"
    return f"{word:<20} :{share}   ({_human(size_in, 6, 2)} => {_human(size_out, 6, 2)}, {target}) \n"


_SIZES = (0, 2, 4, 8)


def _zstd(data: bytes) -> FrameListing:
    found = FrameListing(packed=len(data))
    at = 0
    get: Callable[[int, int], int] = lambda start, size: int.from_bytes(data[start : start + size], "little")  # noqa: E731
    while at < len(data):
        magic = get(at, 4)
        if magic & 0xFFFFFFF0 == 0x184D2A50 and len(data) >= at + 8:
            at += 8 + get(at + 4, 4)
            found.inner += 1
            found.frames += 1
            continue
        if magic != 0xFD2FB528:
            raise NotListable("reached end of file with incomplete frame")
        descriptor = data[at + 4] if at + 4 < len(data) else 0
        single = descriptor >> 5 & 1
        at += 5 + (not single)
        at += (0, 1, 2, 4)[descriptor & 3]
        size = _SIZES[descriptor >> 6] or (1 if single else 0)
        if size:
            plain = get(at, size) + (256 if size == 2 else 0)
            found.whole = None if found.whole is None else found.whole + plain
        else:
            found.whole = None
        at += size
        while True:
            if at + 3 > len(data):
                raise NotListable("reached end of file with incomplete frame")
            block = get(at, 3)
            at += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
            if block & 1:
                break
        checked = descriptor >> 2 & 1
        at += 4 * checked
        found.frames += 1
        found.checks = tuple(dict.fromkeys((*found.checks, "XXH64" if checked else "None")))
    if at != len(data):
        raise NotListable("reached end of file with incomplete frame")
    return found
