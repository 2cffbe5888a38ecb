"""What a PostgreSQL database says about its schemas, tables and roles, and the statements that are made of it.

Every name comes from the catalog and is quoted by `quoted`; every value travels as a parameter.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

SCHEMAS: Final = """
select nspname from pg_catalog.pg_namespace
where nspname <> 'information_schema' and nspname !~ '^pg_' and has_schema_privilege(oid, 'usage')
order by nspname
"""
KINDS: Final = {
    "r": "table", "p": "partitioned table", "v": "view", "m": "materialized view", "f": "foreign table",
}  # fmt: skip
TABLES: Final = """
select c.relname from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1 and c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
order by c.relname
"""
TABLE: Final = """
select c.oid, c.relkind::text as kind, c.reltuples::float8 as estimate, obj_description(c.oid, 'pg_class') as comment
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1 and c.relname = $2 and c.relkind in ('r', 'p', 'v', 'm', 'f')
"""
COLUMNS: Final = """
select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, not a.attnotnull as nullable,
       pg_get_expr(d.adbin, d.adrelid) as default_value, col_description(a.attrelid, a.attnum) as comment,
       array_position(i.indkey::int2[], a.attnum) as place
from pg_catalog.pg_attribute a
left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
left join pg_catalog.pg_index i on i.indrelid = a.attrelid and i.indisprimary
where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped
order by a.attnum
"""
CONSTRAINTS: Final = """
select conname as name, pg_get_constraintdef(oid) as definition from pg_catalog.pg_constraint
where conrelid = $1 and contype in ('f', 'u', 'c') order by conname
"""
INDEXES: Final = """
select pg_get_indexdef(indexrelid) as definition from pg_catalog.pg_index where indrelid = $1 order by indexrelid
"""
ROLE: Final = """
select r.rolsuper as super, exists (
    select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p', 'f') and n.nspname <> 'information_schema' and n.nspname !~ '^pg_'
      and has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'insert, update, delete, truncate')
) as writes
from pg_catalog.pg_roles r where r.rolname = current_user
"""


def quoted(name: str) -> str:
    """An identifier as SQL writes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


class Column(NamedTuple):
    name: str
    type: str
    nullable: bool
    default: str | None
    comment: str | None
    place: int | None
    """Where it stands in the primary key."""


class Table(NamedTuple):
    """A table or view, as it was when it was looked at."""

    schema: str
    name: str
    oid: int
    kind: str
    estimate: float
    comment: str | None
    columns: tuple[Column, ...]

    @property
    def key(self) -> tuple[Column, ...]:
        """The columns of the primary key in the key's order; none where there is no such key."""
        return tuple(sorted((c for c in self.columns if c.place is not None), key=lambda c: c.place or 0))

    @property
    def full_name(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def alias(self) -> str:
        """A name for a row that no column has, since a column of that name would be taken for it."""
        alias = "r"
        while any(column.name == alias for column in self.columns):
            alias += "r"
        return alias

    @property
    def line(self) -> str:
        """A row as one line of JSON; only a `json` column can bring line breaks, and there they are blanks."""
        text = f"row_to_json({self.alias})::text"
        if any(c.type.startswith("json") and not c.type.startswith("jsonb") for c in self.columns):
            text = f"translate({text}, E'\\n\\r', '  ')"
        return text

    @property
    def ordered(self) -> str:
        return "".join(f" order by {', '.join(f'{self.alias}.{quoted(c.name)}' for c in self.key)}" if self.key else "")

    def rows(self) -> str:
        return f"select {self.line} from {self.full_name} as {self.alias}{self.ordered}"

    def cells(self) -> str:
        return f"select * from {self.full_name} as {self.alias}{self.ordered}"

    def keys(self, *, holding: bool = False, fold: bool = False) -> str:
        """The primary key of every row as text; or of those rows whose line holds `$1`, in whichever case."""
        names = ", ".join(f"{self.alias}.{quoted(c.name)}::text" for c in self.key)
        line = f"{self.line} || E'\\n'"
        if fold:  # two letters beyond ASCII are others' capitals; "C" folds ASCII and nothing else
            line = f"lower(translate({line}, U&'\\017F\\212A', 'sk') collate \"C\")"
        where = f" where strpos({line}, $1::text) > 0" if holding else ""
        return f"select {names} from {self.full_name} as {self.alias}{where}{self.ordered}"

    def row(self) -> str:
        """The row of a key given as text. The cast lets the index be used; only the canonical spelling is its name."""
        parts = [
            f"{self.alias}.{quoted(c.name)} = ${i}::text::{c.type} and {self.alias}.{quoted(c.name)}::text = ${i}::text"
            for i, c in enumerate(self.key, 1)
        ]
        return f"select {self.line} from {self.full_name} as {self.alias} where {' and '.join(parts)}"

    def hashed_row(self) -> str:
        """The row whose key is too long for a name, by the digest of its parts."""
        joined = " || chr(31) || ".join(f"{self.alias}.{quoted(c.name)}::text" for c in self.key)
        digest = f"encode(sha256(convert_to({joined}, 'UTF8')), 'hex')"
        return f"select {self.line} from {self.full_name} as {self.alias} where {digest} = $1::text"


async def look_up(connection: Any, schema: str, name: str) -> Table | None:
    found = await connection.fetchrow(TABLE, schema, name)
    if found is None:
        return None
    columns = tuple(Column(*row) for row in await connection.fetch(COLUMNS, found["oid"]))
    return Table(schema, name, found["oid"], KINDS[found["kind"]], found["estimate"], found["comment"], columns)


async def described(connection: Any, table: Table) -> bytes:
    """`schema.json`: what one has to know to write a query."""
    constraints = [dict(row) for row in await connection.fetch(CONSTRAINTS, table.oid)]
    indexes = [row["definition"] for row in await connection.fetch(INDEXES, table.oid)]
    columns = [
        {
            "name": c.name, "type": c.type, "nullable": c.nullable,
            **({} if c.default is None else {"default": c.default}),
            **({} if c.comment is None else {"comment": c.comment}),
        }
        for c in table.columns
    ]  # fmt: skip
    plain = {
        "schema": table.schema, "name": table.name, "kind": table.kind, "comment": table.comment,
        "estimated_rows": None if table.estimate < 0 else int(table.estimate),
        "columns": columns, "primary_key": [c.name for c in table.key], "constraints": constraints, "indexes": indexes,
    }  # fmt: skip
    return json.dumps(plain, indent=2, ensure_ascii=False).encode() + b"\n"
