"""query: run a query in the language of the database or service behind a mount; print JSON lines."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, flag, value
from ramet.commands.framework.inputs import slurp
from ramet.core.fs import Lending
from ramet.core.paths import decode
from ramet.core.proc import Proc
from ramet.core.resource import Queryable
from ramet.core.streams import closing


def _number(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"invalid number of rows: '{text}'")
    return int(text)


@dataclass(frozen=True, slots=True)
class QueryOptions:
    limit: int | None = value("-n", "--limit", metavar="NUM", convert=_number, help="print at most NUM rows")
    file: str | None = value("-f", "--file", metavar="FILE", help="take the QUERY from FILE; - is standard input")
    write: bool = flag("-w", "--write", help="let it change data, where the mount and its configuration allow that")


async def query(proc: Proc, o: QueryOptions, operands: list[str]) -> int:
    place, *rest = operands
    if o.file is not None:
        text = decode(await slurp(proc, o.file))
    elif rest:
        text = rest.pop(0)
    else:
        raise UsageError("missing QUERY")
    path = proc.path(place)
    found = None
    if isinstance(proc.fs, Lending):
        found = await proc.fs.power(path, Queryable, write=o.write)  # type: ignore[type-abstract]
    if found is None:
        proc.complain(f"{place}: not on a mount that answers queries, or on a branch of one")
        return 1
    power, inner = found
    try:
        async with closing(power.query(inner, text, rest, limit=o.limit, write=o.write)) as blocks:
            async for block in blocks:
                await proc.emit(block)
                await proc.budget.yield_turn()
    except OSError as error:
        if error.filename is None:
            raise
        proc.complain(f"{place}: {error.strerror}")
        return 1
    finally:
        if o.write and isinstance(proc.fs, Lending):
            proc.fs.changed(path)
    return 0


COMMANDS = [
    Command(
        "query",
        query,
        QueryOptions,
        summary="Ask the database or service behind a mount.",
        usage="[OPTION]... PATH QUERY [VALUE]...",
        details="""
    PATH lies on the mount to ask. On PostgreSQL, QUERY is one SQL statement and VALUEs are its parameters $1, $2...
    On MongoDB, PATH is a collection and QUERY a filter or, in brackets, an aggregation pipeline. On a service, QUERY is
    a request to its API, and the VALUE the JSON body of one that changes something; README.md of the mount has
    examples. Rows are printed as JSON, one a line, over all pages. Nothing is changed without -w.
""",
        examples=(
            ("query /db 'select name from users where age > $1' 30", "names, as JSON lines"),
            ('query -n 5 /mongo/shop/orders \'{"status": "open"}\'', "five open orders"),
            ("query /gh 'GET /search/issues?q=repo:{owner}/{repo}+crash'", "GitHub's search, over all pages"),
        ),
        min_operands=1,
        operands_first=False,
    ),
]
