"""`Recorder`: the one door to the history: every change of a tree becomes part of exactly one record.

- The VFS tells the recorder of each change, so no surface can forget it. A change outside of any `recording` is a
  separate record, of kind `write`.
- `CURRENT` names the record that is open. It is a context variable: the tasks of a command, also its background jobs,
  belong to its record, whatever else runs at the same time.
- `acting` names the caller for everything inside: an agent, a principal.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakSet

import msgspec

from ramet.core.errors import RametError
from ramet.core.paths import ROOT, Path
from ramet.network.exchange import NetworkRecord
from ramet.workspace.record.history import ExecutionRecord, History, MetaValue
from ramet.workspace.secrets import Secrets

if TYPE_CHECKING:
    from ramet.workspace.record.ledger import Ledger

MAX_REQUESTS: Final = 100
"""Requests to the network that a record lists; the others are counted."""
MAX_PATHS: Final = 100
"""Paths per list of a record; `paths_cut` counts the others."""
MAX_LINE: Final = 512
"""Characters of the line that describes a change without a command."""
MAX_META: Final = 32
"""Entries of `meta`."""
MAX_META_TEXT: Final = 256
"""Characters of a key or a text in `meta`."""
SHORT: Final = 0.001
"""Seconds: below this a record's CPU time is not measured."""
UNRECORDED: Final = ("/dev/", "/.sessions/")
"""Trees of the workspace itself, which hold no files."""
DEFAULT_AGENT_ID: Final = "default"


class Actor(NamedTuple):
    """Who acts: an agent, and the principal it acts for; empty when unknown."""

    agent_id: str = ""
    principal: str = ""


NO_ACTOR: Final = Actor()
ACTOR: ContextVar[Actor] = ContextVar("actor", default=NO_ACTOR)


@contextmanager
def acting(agent_id: str = "", principal: str = "") -> Iterator[None]:
    """Name the caller of everything inside; an empty name leaves that of the surrounding block."""
    outer = ACTOR.get()
    token = ACTOR.set(Actor(agent_id or outer.agent_id, principal or outer.principal))
    try:
        yield
    finally:
        ACTOR.reset(token)


class OpenRecord:
    """A record while its changes happen. Afterwards it still names the writer, for changes that come late."""

    __slots__ = (
        "actor", "bytes_read", "bytes_written", "command", "created", "cut", "kind", "meta", "network", "network_bytes",
        "network_requests", "number", "owner", "removed",
        "session_id", "started_at", "started_cpu", "written",
    )  # fmt: skip

    def __init__(
        self, owner: Recorder, kind: str, command: str, session_id: str, actor: Actor, meta: Mapping[str, MetaValue]
    ) -> None:
        self.owner, self.kind, self.command, self.session_id = owner, kind, command, session_id
        self.actor, self.meta = actor, dict(meta)
        self.number = 0
        """The number in the history; 0 while it is open."""
        self.started_at, self.started_cpu = owner.clock(), time.thread_time()
        self.bytes_read: defaultdict[str, int] = defaultdict(int)
        self.bytes_written: defaultdict[str, int] = defaultdict(int)
        self.written: dict[str, None] = {}
        self.removed: dict[str, None] = {}
        self.created: set[str] = set()
        """Paths that were not there before: removing one of them again is no change."""
        self.cut = 0
        self.network: list[NetworkRecord] = []
        self.network_requests = self.network_bytes = 0

    @property
    def changed(self) -> bool:
        return bool(self.written or self.removed or self.cut)

    def write(self, path: str, new: bool = False) -> None:
        if new and path not in self.removed and len(self.created) < MAX_PATHS:
            self.created.add(path)
        self.removed.pop(path, None)
        if path not in self.written:
            if len(self.written) < MAX_PATHS:
                self.written[path] = None
            else:
                self.cut += 1

    def remove(self, path: str) -> None:
        self.written.pop(path, None)
        if path in self.created:
            self.created.discard(path)
        elif path not in self.removed:
            if len(self.removed) < MAX_PATHS:
                self.removed[path] = None
            else:
                self.cut += 1


def _plain_request(request: NetworkRecord) -> dict[str, MetaValue]:
    """A request as part of a record, which names session and agent."""
    plain = request._asdict()
    return {name: value for name, value in plain.items() if name not in ("session_id", "agent_id")}


CURRENT: ContextVar[OpenRecord | None] = ContextVar("record", default=None)


class Recorder:
    """Writes the history of one workspace, and watches its VFS."""

    def __init__(self, history: History, secrets: Secrets, clock: Callable[[], float]) -> None:
        self.history, self.secrets, self.clock = history, secrets, clock
        self.principal = ""
        """The caller, where `acting` names none."""
        self.mount_of: Callable[[Path], Path] = lambda path: path
        self.ledger: Ledger | None = None
        """Keeps the versions of files between commits, to tell which record wrote which line."""
        self._streams: WeakSet[_StreamWatch] = WeakSet()

    # ---------------------------------------------------------------------------------------------- records

    def start(
        self,
        kind: str,
        command: str,
        *,
        session_id: str = "",
        agent_id: str = "",
        meta: Mapping[str, MetaValue] | None = None,
    ) -> OpenRecord:
        outer = ACTOR.get()
        named = agent_id if agent_id != DEFAULT_AGENT_ID else ""
        actor = Actor(named or outer.agent_id or DEFAULT_AGENT_ID, outer.principal or self.principal)
        return OpenRecord(self, kind, command, session_id, actor, meta or {})

    def finish(self, entry: OpenRecord, **fields: Any) -> ExecutionRecord:
        """Add a record to the history; its number is set from here on."""
        if self.ledger is not None:
            self.ledger.finish(entry)
        scrub = self.secrets.scrub_text
        ended = self.clock()
        record = ExecutionRecord(
            number=self.history.next_number, session_id=entry.session_id, agent_id=entry.actor.agent_id,
            command=scrub(entry.command), started_at=entry.started_at, ended_at=ended,
            kind=entry.kind, principal=entry.actor.principal,
            paths_written=tuple(map(scrub, entry.written)), paths_removed=tuple(map(scrub, entry.removed)),
            paths_cut=entry.cut, cpu=_cpu_seconds(entry, ended),
            network=tuple(map(_plain_request, entry.network)), network_requests=entry.network_requests,
            network_bytes=entry.network_bytes,
            bytes_read=dict(entry.bytes_read), bytes_written=dict(entry.bytes_written),
            meta={key: scrub(value) if isinstance(value, str) else value for key, value in entry.meta.items()},
            **{"exit_code": 0, **fields},
        )  # fmt: skip
        entry.number = record.number
        self.history.add(record)
        return record

    @contextmanager
    def recording(
        self,
        kind: str,
        command: str,
        *,
        session_id: str = "",
        agent_id: str = "",
        meta: Mapping[str, MetaValue] | None = None,
    ) -> Iterator[OpenRecord]:
        """Make one record of all changes inside; none if nothing changes. Inside an open record it is part of that."""
        outer = CURRENT.get()
        if outer is not None and outer.owner is self and not outer.number:
            yield outer
            return
        entry = self.start(kind, _line(command), session_id=session_id, agent_id=agent_id, meta=meta)
        token = CURRENT.set(entry)
        failed = 0
        try:
            yield entry
        except BaseException:
            failed = 1
            raise
        finally:
            CURRENT.reset(token)
            if entry.changed:
                self.finish(entry, exit_code=failed)

    @contextmanager
    def replaying(self, record: ExecutionRecord, top: Path = ROOT, parent: int = 0) -> Iterator[None]:
        """Make all changes inside those of a record of another workspace, where they happened below `top`."""
        entry = self.start(record.kind, record.command)
        token = CURRENT.set(entry)
        try:
            yield
        finally:
            CURRENT.reset(token)
        if self.ledger is not None:
            self.ledger.finish(entry)
        entry.number = self.history.next_number

        def below(paths: Iterable[str]) -> tuple[str, ...]:
            return tuple(str(path.below(top)) for path in map(Path, paths) if path.under(top))

        moved = msgspec.structs.replace(
            record, number=entry.number, parent=parent, principal=record.principal or self.principal,
            cwd=next(iter(below([record.cwd])), record.cwd),
            paths_written=below(record.paths_written), paths_removed=below(record.paths_removed),
        )  # fmt: skip
        self.history.add(moved)

    def add(self, kind: str, command: str, **fields: Any) -> ExecutionRecord:
        """Record a change that is not one of files, such as a mount."""
        return self.finish(self.start(kind, _line(command)), **fields)

    def requested(self, request: NetworkRecord) -> None:
        """Add a request to the network to the log, and to the open record."""
        scrub = self.secrets.scrub_text
        shown = request._replace(path=scrub(request.path), error=scrub(request.error))
        self.history.note_request(shown)
        entry = self.current()
        if entry is not None and not entry.number:
            entry.network_requests += 1
            entry.network_bytes += request.bytes_sent + request.bytes_received
            if len(entry.network) < MAX_REQUESTS:
                entry.network.append(shown)

    def current(self) -> OpenRecord | None:
        """The record that a change of this workspace belongs to now."""
        entry = CURRENT.get()
        return entry if entry is not None and entry.owner is self else None

    # --------------------------------------------------------------------------------- changes, from the VFS

    def before(self, path: Path) -> object:
        return None if self.ledger is None else self.ledger.before(path)

    def wrote(self, path: Path, mark: object, size: int | None = None, new: bool = False) -> None:
        if path.startswith(UNRECORDED):
            return
        what = f"write {path}" if size is None else f"write {path} ({size} bytes)"
        with self._entry(what) as entry:
            if size and entry.command is what:
                entry.bytes_written[str(self.mount_of(path))] += size
            entry.write(str(path), new)
            if self.ledger is not None:
                self.ledger.wrote(path, mark, entry)

    def changed_outside(self, path: Path) -> None:
        """A path differs, perhaps by what is no record of this workspace."""
        if self.ledger is not None:
            self.ledger.changed_outside(path)

    def program_begins(self) -> None:
        """A program of the machine is about to run."""
        if self.ledger is not None:
            self.ledger.program_begins()

    def program_wrote(self, path: Path, size: int, *, made: bool, before: tuple[int, int] | None) -> None:
        """A program of the machine changed a file; only what it left is known."""
        with self._entry(f"write {path} ({size} bytes)") as entry:
            entry.write(str(path), made)
            if self.ledger is not None:
                self.ledger.program_wrote(path, entry, made=made, before=before)

    def removed(self, path: Path) -> None:
        with self._entry(f"remove {path}") as entry:
            entry.remove(str(path))
            if self.ledger is not None:
                self.ledger.removed(path)
                for stream in self._streams:
                    if stream.path == path:
                        stream.path = None

    def renamed(self, src: Path, dst: Path, mark: object) -> None:
        with self._entry(f"rename {src} {dst}") as entry:
            entry.remove(str(src))
            entry.write(str(dst))
            if self.ledger is not None:
                self.ledger.renamed(src, dst, mark, entry)
                for stream in self._streams:
                    if stream.path == dst:
                        stream.path = None
                    elif stream.path is not None and stream.path.under(src):
                        stream.path = stream.path.below(src).onto(dst)

    def copied(self, src: Path, dst: Path, mark: object) -> None:
        with self._entry(f"copy {src} {dst}") as entry:
            entry.write(str(dst))
            if self.ledger is not None:
                self.ledger.copied(src, dst, mark, entry)

    def linked(self, src: Path, dst: Path) -> None:
        with self._entry(f"link {src} {dst}") as entry:
            entry.write(str(dst))
            if self.ledger is not None:
                self.ledger.linked(src, dst)

    def opened(self, path: Path, mark: object, changed: bool, new: bool = False) -> Callable[[], None]:
        entry = self.current() or self.start("write", f"write {path}")
        watch = _StreamWatch(self, path, entry, alone=entry is not self.current())
        if self.ledger is not None:
            self._streams.add(watch)
        if changed:
            watch.begin(new)
            if self.ledger is not None:
                self.ledger.wrote(path, mark, entry)
        return watch

    @contextmanager
    def _entry(self, what: str) -> Iterator[OpenRecord]:
        """The open record, or a new one for a change outside of any."""
        entry = self.current()
        if entry is not None:
            yield entry
        else:
            with self.recording("write", what) as made:
                yield made


class _StreamWatch:
    """Called before each write to an open file: the record that writes may be a later one than that which opened it."""

    __slots__ = ("__weakref__", "_alone", "_opener", "_recorder", "_seen", "path")

    def __init__(self, recorder: Recorder, path: Path, opener: OpenRecord, alone: bool) -> None:
        self._recorder, self._opener, self._alone = recorder, opener, alone
        self.path: Path | None = path
        """The present name of the file; None when it was removed."""
        self._seen: OpenRecord | None = None

    def begin(self, new: bool = False) -> None:
        """The file changes for the first time by the record that opened it."""
        self._seen = self._opener
        self._opener.write(str(self.path), new)
        if self._alone and not self._opener.number:
            self._recorder.finish(self._opener)

    def __call__(self) -> None:
        recorder = self._recorder
        entry = recorder.current() or self._opener
        if entry is not self._seen and self.path is not None:
            if entry is self._opener:
                self.begin()
            else:
                self._seen = entry
                entry.write(str(self.path))
        if recorder.ledger is not None and self.path is not None:
            recorder.ledger.streamed(self.path, entry)


def _cpu_seconds(entry: OpenRecord, ended: float) -> float:
    """Return the CPU seconds of a record; those of a very short one are its duration, which costs no system call."""
    seconds = ended - entry.started_at
    return seconds if 0 <= seconds < SHORT else max(0.0, time.thread_time() - entry.started_cpu)


def _line(text: str) -> str:
    """One line of bounded length."""
    line = " ".join(text.split("\n")) if "\n" in text else text
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 3]}..."


def check_meta(meta: Mapping[str, MetaValue] | None) -> dict[str, MetaValue]:
    """Check what a caller wants to keep with a record."""
    found = dict(meta or {})
    for key, value in found.items():
        if not isinstance(key, str) or not isinstance(value, str | int | float | bool):
            why = f"meta {key!r} is not a name with a text or a number"
            raise RametError("invalid_argument", why, "Pass plain values.")
        if isinstance(value, float) and not math.isfinite(value):
            raise RametError("invalid_argument", f"meta {key!r} is {value}", "Pass a finite number.")
        if len(key) > MAX_META_TEXT or (isinstance(value, str) and len(value) > MAX_META_TEXT):
            why = f"meta {key[:40]!r} has more than {MAX_META_TEXT} characters"
            raise RametError("invalid_argument", why, "Keep long values in a file.")
    if len(found) > MAX_META:
        raise RametError("invalid_argument", f"meta has {len(found)} entries", f"Pass at most {MAX_META}.")
    return found
