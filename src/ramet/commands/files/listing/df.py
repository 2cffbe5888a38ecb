"""df: the mounts, with nominal sizes."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import (
    Command,
    UsageError,
    called,
    choose,
    flag,
    mixed,
    optional,
    quote,
    several,
    value,
)
from ramet.commands.framework.human_sizes import BlockSize
from ramet.core.errors import reason
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class DfOptions:
    all: bool = flag("-a", "--all", help="include pseudo, duplicate, inaccessible file systems")
    unit: str | None = mixed(
        value("-B", "--block-size", metavar="SIZE", help="scale sizes by SIZE before printing them"),
        choose(
            {"-h --human-readable": "human-readable", "-H --si": "si", "-k": "1K", "-m": "1M"},
            help="print sizes in that unit",
        ),
        default=None,
    )
    inodes: bool = flag("-i", "--inodes", help="list inode information instead of block usage")
    local: bool = flag("-l", "--local", help="limit listing to local file systems")
    portability: bool = flag("-P", "--portability", help="use the POSIX output format")
    output: str | None = optional(
        "--output", metavar="FIELD_LIST", const="", help="use the output format defined by FIELD_LIST"
    )
    total: bool = flag("--total", help="produce a grand total")
    type: tuple[str, ...] = several("-t", "--type", metavar="TYPE", help="limit listing to file systems of type TYPE")
    print_type: bool = flag("-T", "--print-type", help="print file system type")
    exclude: tuple[str, ...] = several(
        "-x", "--exclude-type", metavar="TYPE", help="limit listing to file systems not of type TYPE"
    )


async def df(proc: Proc, o: DfOptions, operands: list[str]) -> int:
    """Print the mounts. They have no fixed size: the sizes are those of an ample empty disk."""
    fields = _df_fields(o)
    points: list[Path] = []
    status = 0
    for word in operands or ["/"]:
        try:
            path = proc.path(word)
            await proc.fs.stat(path, follow=True)
            point = proc.fs.mount_of(path)
        except OSError as error:
            proc.complain(f"{called(word)}: {reason(error)}")
            status = 1
            continue
        if point not in points or operands:
            points.append(point)
    if not operands:
        mounted = getattr(proc.fs, "mounts", None)
        if mounted is not None:
            points = sorted(mounted)
    if (o.type and "ramet" not in o.type) or "ramet" in o.exclude:
        points = []
        if not status:
            proc.complain("no file systems processed")
            return 1
    if not points:
        return status
    unit = BlockSize.parse(o.unit) if o.unit is not None else BlockSize(1024)
    title = "Size" if o.unit in ("human-readable", "si") else f"{o.unit or '1K'}-blocks"
    if o.portability and title.endswith("-blocks"):
        title = f"{unit.unit}-blocks"
    titles = {
        **_DF_TITLES,
        "size": title,
        "avail": "Avail" if title == "Size" or o.output is not None else "Available",
        "pcent": "Capacity" if o.portability else "Use%",
    }
    rows = [[titles[name] for name in fields]]
    named: list[str] = operands or ["-"] * len(points)
    listed: list[tuple[Path | None, str]] = list(zip(points, named, strict=False))
    for place, word in [*listed, *([(None, "-")] if o.total else [])]:
        amount = unit.show(_DF_SIZE * (1 if place is not None else len(points)))
        cells = {
            "source": "ramet" if place is not None else "total",
            "fstype": "ramet" if place is not None else "-",
            "itotal": "0", "iused": "0", "iavail": "0", "ipcent": "-",
            "size": amount, "used": unit.show(0), "avail": amount, "pcent": "0%",
            "file": word, "target": str(place) if place is not None else "-",
        }  # fmt: skip
        rows.append([cells[name] for name in fields])
    widths = [max(_DF_WIDTHS.get(name, 5), *(len(row[i]) for row in rows)) for i, name in enumerate(fields)]
    left = {i for i, name in enumerate(fields) if name in ("source", "fstype", "file", "target")}
    for row in rows:
        sized = zip(row, widths, strict=True)
        padded = [c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(sized)]
        await proc.emit(encode(" ".join(padded).rstrip() + "\n"))
    return status


_DF_SIZE = 64 * 1024**3


_DF_TITLES = {
    "source": "Filesystem", "fstype": "Type", "itotal": "Inodes", "iused": "IUsed", "iavail": "IFree",
    "ipcent": "IUse%", "used": "Used", "file": "File", "target": "Mounted on",
}  # fmt: skip


_DF_WIDTHS = {"source": 14, "fstype": 4, "pcent": 4, "ipcent": 4, "file": 4, "target": 0}


def _df_fields(o: DfOptions) -> list[str]:
    """Return the columns, by --output or by the kind of listing."""
    every = ["source", "fstype", "itotal", "iused", "iavail", "ipcent", "size", "used", "avail", "pcent"]
    every += ["file", "target"]
    if o.output is None:
        counts = ["itotal", "iused", "iavail", "ipcent"] if o.inodes else ["size", "used", "avail", "pcent"]
        return ["source", *(["fstype"] if o.print_type else []), *counts, "target"]
    for letter, used in (("-i", o.inodes), ("-P", o.portability), ("-T", o.print_type)):
        if used:
            raise UsageError(f"options {letter} and --output are mutually exclusive")
    fields = o.output.split(",") if o.output else every
    for place, name in enumerate(fields):
        if name not in every:
            raise UsageError(f"option --output: field {quote(name)} unknown")
        if name in fields[:place]:
            raise UsageError(f"option --output: field {quote(name)} used more than once")
    return fields


COMMANDS = [
    Command(
        "df",
        df,
        DfOptions,
        summary="Report the mounts; sizes are nominal, mounts have no fixed size.",
        ignored=("--sync", "--no-sync", "-v"),
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
