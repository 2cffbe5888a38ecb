"""`PaperclipResource`: the papers of GXL's Paperclip (bioRxiv, medRxiv, PubMed Central), to be read.

/<source>/<yyyy>/<mm>/<paper>/{meta.json,content.lines,sections/*.lines,figures/,supplements/}

The service runs commands on its own file tree; a directory of a month is a query of its database. Its answers are
known from what others wrote about it, not from a description.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import shlex
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path as HostPath
from typing import Any, ClassVar, Final

from ramet.backends.file_names import fits
from ramet.backends.services.auth import RefreshGrant, ServiceToken, TokenAuth
from ramet.backends.services.config import ServiceConfig
from ramet.backends.services.contents import among, fixed
from ramet.backends.services.nodes import Asked, Collection, Item, Node, Place, Rendered
from ramet.backends.services.rest import Rest, patiently
from ramet.backends.services.tree import Service
from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path, encode
from ramet.core.resource import Description
from ramet.core.stat import Kind, Stat

HOME: Final = "https://paperclip.gxl.ai"
SOURCES: Final = ("biorxiv", "medrxiv", "pmc")
FIRST_YEAR: Final = 2020
DIRECTORIES: Final = frozenset(("sections", "figures", "supplements"))
_PAPER: Final = re.compile(r"[A-Za-z0-9][\w.-]*")
README: Final = """\
# Paperclip: papers of biology and medicine

    <source>/<yyyy>/<mm>/<paper>/    source is biorxiv, medrxiv or pmc
        meta.json  content.lines     what is known of it, and its text, each line with its number
        sections/<name>.lines  figures/  supplements/

A month shows at most {most} papers; others can be named: `cat pmc/2024/03/PMC10012345/meta.json`.

- Search: `query . 'search CRISPR off-target'`, `query . 'grep -i needle /papers/PMC10012345/'`
- Any command of Paperclip: `query . 'sql "SELECT count(*) FROM documents"'`
"""


@dataclass(frozen=True, kw_only=True, repr=False)
class PaperclipConfig(ServiceConfig):
    """The papers, as the user who logged in with Paperclip's own program sees them."""

    kind: ClassVar[str] = "paperclip"

    base_url: str = HOME
    """The address of the service."""
    credentials_path: str = "~/.paperclip/credentials.json"
    """The file that Paperclip's `login` wrote."""
    default_limit: int = 500
    """Papers of a month that are listed at most."""
    ttl: float = 3600.0
    """Seconds for which what was seen may be trusted."""

    def describe(self) -> Description:
        """Nothing of it is secret. An address of one's own is not trusted when a snapshot names it."""
        return super().describe()._replace(needs_override=self.base_url != HOME)


class PaperclipResource(Service):
    """`PaperclipResource(PaperclipConfig())`, after `paperclip login`."""

    config: PaperclipConfig

    def __init__(self, config: PaperclipConfig) -> None:
        self._login = _Login(config)
        self._rest = Rest.of(config, TokenAuth(self._login), explain=_explain)
        nodes: list[Node] = [Rendered("/README.md", fixed(README.format(most=config.default_limit)))]
        for source in SOURCES:
            inside = f"/{source}/*/*/*"
            nodes += [
                Collection(f"/{source}", _years, partial(among, _years), _digits),
                Collection(f"/{source}/*", _months, partial(among, _months), _digits),
                Collection(f"/{source}/*/*", partial(self._papers, source), self._paper, _paper_key),
                Collection(inside, self._files, self._file, _any),
                Asked(f"{inside}/*", self._text),
                Collection(f"{inside}/*", self._files, self._file, _any),
                Asked(f"{inside}/*/*", self._text),
            ]
        super().__init__(config, nodes)

    async def _run(self, command: str, argument: str, path: Path) -> str:
        """What a command of the service prints."""
        body = {"command": command, "raw": argument}
        answer = await self._rest.send("POST", "/api/cli/execute", path=path, json_body=body, reads=True)
        said = answer.json()
        if not isinstance(said, dict) or not isinstance(said.get("output"), str):
            raise fail(errno.EIO, path, "Paperclip answers in another way than it did; `query` may still work")
        error = str(said.get("error") or "")
        output: str = said["output"]
        if error or said.get("exit_code"):
            if "no such" in (error + output).lower() or "not found" in (error + output).lower():
                raise fail(errno.ENOENT, path)
            raise fail(errno.EIO, path, f"Paperclip says {(error or output)[:200]}")
        return output

    async def _papers(self, source: str, place: Place) -> AsyncIterator[Item]:
        year, month = (item.key for item in place.items)
        first = datetime(int(year), int(month), 1)
        if source == "pmc":
            after = datetime(int(year) + int(month) // 12, int(month) % 12 + 1, 1)
            when = f"received_date >= '{first:%Y-%m-%d}' AND received_date < '{after:%Y-%m-%d}'"
            column = "pmc_id"
        else:
            column, when = "document_id", f"month_year = '{MONTHS[int(month) - 1]}_{year}'"
        sql = f"SELECT {column} AS id, title FROM documents WHERE source = '{source}' AND {when}"
        output = await self._run("sql", f'"{sql} LIMIT {self.config.default_limit}"', place.path)
        for row in rows_of(output):
            id = _paper_key(row.get("id", "").rpartition("/")[2])
            if id is not None:
                yield _item(id, Kind.DIR, self.config.ttl)

    async def _paper(self, place: Place, key: str) -> Item:
        await self._run("ls", shlex.quote(f"/papers/{key}/"), place.path)
        return _item(key, Kind.DIR, self.config.ttl)

    def _at(self, place: Place) -> str:
        return shlex.quote("/papers/" + "/".join(item.key for item in place.items[2:]))

    async def _files(self, place: Place) -> AsyncIterator[Item]:
        output = await self._run("ls", self._at(place) + "/", place.path)
        for name in names_of(output):
            is_directory = name in DIRECTORIES and len(place.items) == 3
            yield _item(name, Kind.DIR if is_directory else Kind.FILE, self.config.ttl)

    async def _file(self, place: Place, key: str) -> Item:
        async for item in self._files(place):
            if item.key == key:
                return item
        raise fail(errno.ENOENT, place.path)

    async def _text(self, place: Place) -> AsyncIterator[bytes]:
        yield encode(await self._run("cat", self._at(place), place.path))

    async def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        """A command of Paperclip: `search CRISPR`."""
        if values:
            raise fail(errno.EINVAL, path, "a query of Paperclip takes no values; quote it as one word")
        command, _, argument = text.strip().partition(" ")
        output = await patiently(partial(self._run, command, argument.strip(), path))
        lines = output.splitlines(keepends=True)
        yield encode("".join(lines if limit is None else lines[:limit]))

    async def close(self) -> None:
        await super().close()
        await self._rest.close()
        await self._login.close()


class _Login:
    """The token in the credentials file, renewed by its refresh token when it has ended or is refused."""

    def __init__(self, config: PaperclipConfig) -> None:
        self._config = config
        self._path = HostPath(os.path.expanduser(config.credentials_path))
        self._given: str | None = None
        self._grant: RefreshGrant | None = None

    async def __call__(self) -> ServiceToken:
        known = await asyncio.to_thread(self._read)
        token, ends = str(known.get("id_token") or ""), _seconds(known.get("id_token_expires_at"))
        refresh = str(known.get("refresh_token") or "")
        ended = ends is not None and ends < datetime.now(UTC).timestamp() + 60
        if token and token != self._given and not ended:
            self._given = token
            return ServiceToken(token, ends, (refresh,) if refresh else ())
        if not refresh:
            raise fail(errno.EACCES, ROOT, "Permission denied: the login has ended; run `paperclip login`")
        if self._grant is None:
            url = f"{self._config.base_url.rstrip('/')}/api/oauth/token"
            self._grant = RefreshGrant(url, lambda: refresh, {}, private=self._config.private)
        made = await self._grant()
        assert made is not None
        return made

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            words = f"Permission denied: there is no {self._config.credentials_path}; run `paperclip login`"
            raise fail(errno.EACCES, ROOT, words) from None
        except (OSError, ValueError):
            words = f"Permission denied: {self._config.credentials_path} cannot be read; run `paperclip login`"
            raise fail(errno.EACCES, ROOT, words) from None
        return found if isinstance(found, dict) else {}

    async def close(self) -> None:
        if self._grant is not None:
            await self._grant.close()


MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def rows_of(output: str) -> list[dict[str, str]]:
    """The rows of a table: JSON, or columns between `|` or tabs below a line of names."""
    try:
        found = json.loads(output)
    except ValueError:
        found = None
    if isinstance(found, list):
        return [{key: str(value) for key, value in row.items()} for row in found if isinstance(row, dict)]
    lines = [line for line in output.splitlines() if line.strip() and not re.fullmatch(r"[-+|=\s]+", line)]
    if not lines:
        return []
    mark = "|" if "|" in lines[0] else "\t"
    names, *rows = ([cell.strip() for cell in line.strip().strip("|").split(mark)] for line in lines)
    return [dict(zip(names, row, strict=False)) for row in rows if len(row) >= len(names)]


def names_of(output: str) -> list[str]:
    """The names that `ls` prints, one or several a line; a `/` behind a directory is left out."""
    names = [name.rstrip("/") for name in re.split(r"\s{2,}|\n|\t", output)]
    return [
        name for name in dict.fromkeys(names) if name and fits(name) and "/" not in name and name not in (".", "..")
    ]


def _item(key: str, kind: Kind, ttl: float) -> Item:
    return Item(key, key, key, Stat(kind, ttl=ttl))


async def _years(place: Place) -> AsyncIterator[Item]:
    for year in range(FIRST_YEAR, datetime.now(UTC).year + 1):
        yield _item(str(year), Kind.DIR, 3600.0)


async def _months(place: Place) -> AsyncIterator[Item]:
    for month in range(1, 13):
        yield _item(f"{month:02}", Kind.DIR, 3600.0)


def _digits(name: str) -> str | None:
    return name if name.isascii() and name.isdigit() else None


def _paper_key(name: str) -> str | None:
    return name if _PAPER.fullmatch(name) else None


def _any(name: str) -> str | None:
    return name


def _seconds(value: object) -> float | None:
    """An end as seconds, milliseconds or a time."""
    if isinstance(value, int | float):
        return value / 1000 if value > 1e11 else float(value)
    try:
        return datetime.fromisoformat(str(value).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def _explain(said: Any) -> str:
    return str(said.get("error") or said.get("detail") or said.get("message") or "") if isinstance(said, dict) else ""
