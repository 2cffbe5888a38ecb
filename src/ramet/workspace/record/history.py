"""`History`: bounded logs of commands and file operations, shown as files under `/.sessions`."""

from __future__ import annotations

import asyncio
import errno
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple

import msgspec

from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path, decode
from ramet.core.resource import Cap
from ramet.core.stat import Kind, Stat
from ramet.layers.readonly import Immutable
from ramet.network.exchange import NetworkRecord
from ramet.workspace.record.packed_log import PackedLog

REQUESTS: Final = 10_000
"""Requests that the log of the network keeps."""
HEAD_BYTES: Final = 4096
"""Bytes of stdout and stderr per record."""
KINDS: Final = (
    "command", "tool", "write", "revert", "merge", "fork", "import", "mount", "recovery", "branch",
)  # fmt: skip
"""What a record may be about: `write` is a file operation without a command, `mount` also an unmount."""
MetaValue = str | int | float | bool


class ExecutionRecord(msgspec.Struct, frozen=True, gc=False):
    """One change of the workspace, or one `execute` call. Numbers are its ids and never repeat.

    - Output is cut at `HEAD_BYTES`; `stdout_bytes` is its full size.
    - `command` is shell text, or one line that names the tool, the write or the verb with its arguments.
    - Changes of a whole workspace (`revert`, `merge`, `fork`, ...) have no session.
    """

    number: int
    session_id: str
    agent_id: str
    command: str
    started_at: float
    ended_at: float
    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    timed_out: bool = False
    cancelled: bool = False
    cwd: str = "/"
    bytes_read: dict[str, int] = msgspec.field(default_factory=dict)
    bytes_written: dict[str, int] = msgspec.field(default_factory=dict)
    cache_hits: int = 0
    kind: str = "command"
    """One of `KINDS`."""
    principal: str = ""
    """Who called: the principal of a request, or the user of the process. `agent_id` says on behalf of which agent."""
    paths_written: tuple[str, ...] = ()
    paths_removed: tuple[str, ...] = ()
    paths_cut: int = 0
    """Paths that are missing in both lists because there were too many."""
    parent: int = 0
    """The number of the record that this one is part of, such as that of a branch; 0 for none."""
    cpu: float = 0.0
    """CPU seconds of the event loop's thread meanwhile; calls that run at the same time share it. Below a millisecond
    it is the duration."""
    network: tuple[dict[str, MetaValue], ...] = ()
    """Its requests to the network, refused ones too (`NetworkRecord`); at most 100, and the others count."""
    network_requests: int = 0
    network_bytes: int = 0
    """Bytes of the bodies of all its requests, sent and received."""
    meta: dict[str, MetaValue] = msgspec.field(default_factory=dict)
    """What the caller gave to `execute(..., meta={...})`: tokens, money, turn, ..."""

    def __repr__(self) -> str:
        return f"<Record {self.number} {self.kind} by {self.agent_id}: {self.command!r} ({self.exit_code})>"

    @property
    def duration(self) -> float:
        return self.ended_at - self.started_at

    @property
    def run(self) -> str:
        """The run it belongs to: what `meta` names, else the session."""
        return str(self.meta.get("run", self.session_id))

    def used_network(self, *, refused: bool = False) -> bool:
        """Whether it asked the network for something; with `refused`, whether a listed request was refused."""
        if not refused:
            return self.network_requests > 0
        return any(one.get("verdict") == "deny" for one in self.network)

    def changed(self, path: str) -> bool:
        """Whether it wrote or removed a path, or something below it; only the listed paths are known."""
        top = path.rstrip("/") + "/"
        return any(f"{one}/".startswith(top) for one in (*self.paths_written, *self.paths_removed))

    def as_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.structs.asdict(self)
        plain["stdout"], plain["stderr"] = decode(self.stdout), decode(self.stderr)
        plain["bytes_read"], plain["bytes_written"] = dict(self.bytes_read), dict(self.bytes_written)
        plain["paths_written"], plain["paths_removed"] = list(self.paths_written), list(self.paths_removed)
        plain["network"] = [dict(one) for one in self.network]
        plain["meta"] = dict(self.meta)
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> ExecutionRecord:
        """Decode a record from untrusted data; ValueError when it is malformed."""
        known: dict[str, Any] = {}
        for name, kind in _FIELDS.items():
            if name in plain:
                value = plain[name]
                if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
                    raise ValueError(f"{name!r} of a history record is malformed")
                if name in ("stdout", "stderr"):
                    value = value.encode("utf-8", "surrogateescape")
                elif name in ("paths_written", "paths_removed"):
                    value = tuple(map(str, value))
                elif name == "network":
                    value = tuple(dict(one) for one in value if isinstance(one, dict))
                known[name] = value
            elif name in _REQUIRED:
                raise ValueError(f"a history record has no {name!r}")
        return cls(**known)


_NUMBER: Final = (int, float)
_REQUIRED: Final[dict[str, Any]] = {
    "number": int, "session_id": str, "agent_id": str, "command": str, "started_at": _NUMBER, "ended_at": _NUMBER,
    "exit_code": int,
}  # fmt: skip
_FIELDS: Final[dict[str, Any]] = {
    **_REQUIRED, "stdout": str, "stderr": str, "stdout_bytes": int, "stderr_bytes": int, "timed_out": bool,
    "cancelled": bool, "cwd": str, "bytes_read": dict, "bytes_written": dict, "cache_hits": int,
    "kind": str, "principal": str, "paths_written": list, "paths_removed": list, "paths_cut": int, "parent": int,
    "cpu": _NUMBER, "network": list, "network_requests": int, "network_bytes": int, "meta": dict,
}  # fmt: skip


# A record as it is stored: its output is text.
_Stored: Final = msgspec.defstruct(
    "_Stored",
    [
        (one.name, str, "")
        if one.name in ("stdout", "stderr")
        else (one.name, one.type)
        if one.required
        else (one.name, one.type, msgspec.field(default_factory=one.default_factory))
        if one.default is msgspec.NODEFAULT
        else (one.name, one.type, one.default)
        for one in msgspec.structs.fields(ExecutionRecord)
    ],
)  # fmt: skip
_STORED: Final = msgspec.json.Decoder(list[_Stored])  # type: ignore[valid-type]
_OUTPUT: Final = ExecutionRecord.__struct_fields__.index("stdout")


def decode_records(data: bytes) -> list[ExecutionRecord]:
    """Decode stored records from JSON; `ExecutionRecord.from_dict` does it for what the fast decoder refuses."""
    try:
        found = [msgspec.structs.astuple(one) for one in _STORED.decode(data)]
    except msgspec.DecodeError:  # a name that is not UTF-8
        return list(map(ExecutionRecord.from_dict, json.loads(data)))
    return [
        ExecutionRecord(*one[:_OUTPUT], *(text.encode() for text in one[_OUTPUT : _OUTPUT + 2]), *one[_OUTPUT + 2 :])
        for one in found
    ]


NetworkFilter = Literal["any", "refused"]


class RecordFilter(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which records to list: those that fit every field that is not None."""

    session: str | None = None
    agent: str | None = None
    run: str | None = None
    """What `execute(..., meta={"run": ...})` named, else the session."""
    path: str | None = None
    """Only records that wrote or removed this path, or something below it."""
    text: str | None = None
    """Only records whose command contains this text, in any case."""
    failed: bool | None = None
    """Whether the exit code is not 0."""
    since: float | None = None
    """Only records that began at or after this time, in seconds since the epoch."""
    until: float | None = None
    """Only records that began before this time."""
    number: int | None = None
    """Only the record of this number."""
    exit_code: int | None = None
    principal: str | None = None
    network: NetworkFilter | None = None
    """Only records with requests to the network; `refused`: with one among their first 100 that was refused."""

    def fits(self, record: ExecutionRecord) -> bool:
        return (
            self.number in (None, record.number)
            and self.session in (None, record.session_id)
            and self.agent in (None, record.agent_id)
            and self.run in (None, record.run)
            and self.failed in (None, record.exit_code != 0)
            and self.exit_code in (None, record.exit_code)
            and self.principal in (None, record.principal)
            and (self.network is None or record.used_network(refused=self.network == "refused"))
            and (self.since is None or record.started_at >= self.since)
            and (self.until is None or record.started_at < self.until)
            and (self.text is None or self.text.casefold() in record.command.casefold())
            and (self.path is None or record.changed(self.path))
        )


def merge_filters(where: RecordFilter | None, session: str | None) -> RecordFilter | None:
    """Return the filter of a call that may also name a session."""
    if session is None:
        return where
    return msgspec.structs.replace(where or RecordFilter(), session=session)


class OperationRecord(NamedTuple):
    """One file operation of a session."""

    at: float
    session_id: str
    agent_id: str
    verb: str
    path: str
    mount: str
    bytes: int
    error: str


def _plain_record(record: ExecutionRecord) -> tuple[Any, ...]:
    values: tuple[Any, ...] = _values(record)
    if not (record.bytes_read or record.bytes_written):
        return values
    plain = list(values)
    for at in _COUNTED:
        plain[at] = {str(mount): count for mount, count in plain[at].items()}
    return tuple(plain)


def _record(values: tuple[Any, ...]) -> ExecutionRecord:
    return ExecutionRecord(**dict(zip(_FIELDS, values, strict=True)))


def _plain_operation(operation: OperationRecord) -> tuple[Any, ...]:
    at, session, agent, verb, path, mount, size, error = operation
    return at, session, agent, verb, str(path), str(mount), size, error


_values: Final = attrgetter(*_FIELDS)
_COUNTED: Final = [list(_FIELDS).index(name) for name in ("bytes_read", "bytes_written")]


class History:
    """Bounded logs of a workspace. Numbers never repeat, so a reader can detect dropped records."""

    def __init__(self, commands: int = 10_000, operations: int = 50_000) -> None:
        self._records = PackedLog(commands, _plain_record, _record, lambda record: record.number)
        self._operations = PackedLog(
            operations, _plain_operation, OperationRecord._make, lambda operation: operation.at
        )
        self._network: deque[NetworkRecord] = deque(maxlen=REQUESTS)
        self._first_request = 0
        """The record that came first after the oldest request of the log; earlier ones carry their requests."""
        self.next_number = 1
        self.prefetch_older: Callable[[], None] | None = None
        """Loads older records from a remote store; blocks."""

    async def load_older(self) -> None:
        """Load older records in a thread, so that reading them does not block."""
        far, self.prefetch_older = self.prefetch_older, None
        if far is not None:
            await asyncio.to_thread(far)

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[ExecutionRecord]:
        return iter(self._records)

    @property
    def oldest(self) -> int:
        """The number of the oldest remembered command."""
        first = self._records.first_key()
        return self.next_number if first is None else int(first)

    def add(self, record: ExecutionRecord) -> None:
        self._records.append(record)
        self.next_number = record.number + 1

    def note(self, operation: OperationRecord) -> None:
        self._operations.append(operation)

    def note_all(self, operations: list[OperationRecord]) -> None:
        self._operations.extend(operations)

    def note_request(self, request: NetworkRecord) -> None:
        """Add a request to the log of the network."""
        if not self._network:
            self._first_request = self.next_number
        self._network.append(request)

    def requests(self, session_id: str) -> list[dict[str, Any]]:
        """The decisions and requests of a session, in order: those of earlier records, then the log's."""
        first = self._first_request if self._network else self.next_number
        kept = [dict(one) for record in self.of(session_id) if record.number < first for one in record.network]
        return [*kept, *(one._asdict() for one in self._network if one.session_id == session_id)]

    def of(self, session_id: str) -> list[ExecutionRecord]:
        return [record for record in self._records if record.session_id == session_id]

    def after(self, number: int) -> list[ExecutionRecord]:
        """Return the records after a number, in order; costs O(result)."""
        return self._records.since(number + 1)[::-1]

    async def commands_after(self, session_id: str, number: int) -> list[tuple[int, str, float]]:
        """Return number, command and time of a session's records after a number, for the history of its shell."""
        await self.load_older()
        return [
            (record.number, record.command, record.started_at)
            for record in self.after(number)
            if record.session_id == session_id and record.kind == "command"
        ]

    def operations(self, session_id: str | None = None) -> list[OperationRecord]:
        return [op for op in self._operations if session_id is None or op.session_id == session_id]

    def since(self, moment: float) -> list[OperationRecord]:
        """Return operations since a time, newest first; costs O(result)."""
        return self._operations.since(moment)

    def restore(self, records: Iterable[ExecutionRecord]) -> None:
        for record in records:
            self.add(record)

    def add_lazy(self, first: int, last: int, load: Callable[[], list[ExecutionRecord]]) -> None:
        """Add older records that are loaded on access; must come before any other record."""
        self._records.add_lazy(first, last, last - first + 1, load)
        self.next_number = last + 1

    def adopt(self, other: History) -> None:
        """Start with the records of another history."""
        self._records.adopt(other._records)
        self._operations.adopt(other._operations)
        self._network, self._first_request = other._network.copy(), other._first_request
        self.next_number, self.prefetch_older = other.next_number, other.prefetch_older


class ObserverResource(Immutable):
    """`/.sessions/<id>/{commands,operations,network}.jsonl`: the history as files, rendered on read."""

    caps = Cap.READ | Cap.LOCAL

    FILES = ("commands.jsonl", "operations.jsonl")
    NETWORK = "network.jsonl"

    def __init__(self, history: History) -> None:
        self._history = history
        self.known: set[str] = set()
        """Ids of all sessions, also of unused ones."""
        self.networked = False
        """Whether the network is on: `network.jsonl` is there then, and where there have been requests."""

    def _files(self, session_id: str) -> tuple[str, ...]:
        shown = self.networked or bool(self._history.requests(session_id))
        return (*self.FILES, self.NETWORK) if shown else self.FILES

    def _sessions(self) -> list[str]:
        return sorted(self.known | {record.session_id for record in self._history if record.session_id})

    async def stat(self, path: Path) -> Stat:
        await self._history.load_older()
        parts = path.parts
        if not parts or (len(parts) == 1 and parts[0] in self._sessions()):
            return Stat(Kind.DIR, 0, mode=0o555)
        if len(parts) == 2 and parts[0] in self._sessions() and parts[1] in self._files(parts[0]):
            return Stat(Kind.FILE, ttl=0, mode=0o444)
        raise fail(errno.ENOENT, path)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        if path == ROOT:
            await self._history.load_older()
            for name in self._sessions():
                yield name, Stat(Kind.DIR, 0, mode=0o555)
            return
        if (await self.stat(path)).kind is not Kind.DIR:
            raise fail(errno.ENOTDIR, path)
        for name in self._files(path.name):
            yield name, Stat(Kind.FILE, ttl=0, mode=0o444)

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        if (await self.stat(path)).kind is Kind.DIR:
            raise fail(errno.EISDIR, path)
        session, name = path.parts
        if name == "commands.jsonl":
            rows = [_json(record.as_dict()) for record in self._history.of(session)]
        elif name == self.NETWORK:
            rows = [_json(request) for request in self._history.requests(session)]
        else:
            rows = [_json(operation._asdict()) for operation in self._history.operations(session)]
        text = b"".join(rows)[start:stop]
        if text:
            yield text

    async def close(self) -> None:
        """Nothing is held."""


def _json(row: dict[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
