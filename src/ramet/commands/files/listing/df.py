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
from ramet.core.fs import Lending
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.resource import Measured


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
    """Print the mounts. One without a quota has no fixed size: its sizes are those of an ample empty disk."""
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
    sizes = [await _sizes(proc, point) for point in points]
    every = (sum(used for used, _ in sizes), sum(size for _, size in sizes))
    for (place, word), (used, size) in zip(
        [*listed, *([(None, "-")] if o.total else [])], [*sizes, *([every] if o.total else [])], strict=True
    ):
        cells = {
            "source": "ramet" if place is not None else "total",
            "fstype": "ramet" if place is not None else "-",
            "itotal": "0", "iused": "0", "iavail": "0", "ipcent": "-",
            "size": unit.show(size), "used": unit.show(used), "avail": unit.show(max(0, size - used)),
            "pcent": f"{-(-used * 100 // size) if size else 100}%",
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


async def _sizes(proc: Proc, point: Path) -> tuple[int, int]:
    """Return the used and all bytes of a mount; those of an empty disk where they are not known."""
    found = await proc.fs.power(point, Measured) if isinstance(proc.fs, Lending) else None  # type: ignore[type-abstract]
    used, most = (0, None) if found is None else found[0].usage()
    return used, _DF_SIZE if most is None else most


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
