"""`RemoteRef`: a stored workspace of a server, with the names and values of `StoredWorkspaceRef`."""

from __future__ import annotations

import base64
import json
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from ramet.apps.client.http import (
    Address,
    Http,
    async_lines,
    atomic_file,
    blocks_of,
    quote_text,
    refusal,
    report_of,
    where,
    without_none,
)
from ramet.core.errors import RametError
from ramet.core.paths import encode
from ramet.core.progress import Progress, silent
from ramet.core.resource import Resource
from ramet.core.stat import Kind, Stat
from ramet.native.ports import ListeningPort
from ramet.network.forward import Failed, Forward, listen_on_loopback
from ramet.store.model.address import parse_address
from ramet.store.model.graph import GraphRow, draw_graph
from ramet.store.model.ids import RevisionId
from ramet.store.model.revisions import MountState, Note, Revision
from ramet.store.model.revisions import decode as decode_revision
from ramet.store.model.trees import KINDS, Node
from ramet.store.refs.grants import Access
from ramet.store.refs.resolve import RevisionLike, spec_text
from ramet.store.refs.retention import Pin
from ramet.store.refs.tags import Tag
from ramet.store.verbs.diff import Difference
from ramet.workspace.snapshot.archive import Target

if TYPE_CHECKING:
    from ramet.store.checkout.directory import How, Receipt
    from ramet.store.verbs.blame import BlameLine
    from ramet.store.verbs.git_export import GitExport
    from ramet.store.verbs.merge import Side
    from ramet.store.verbs.revert import MergeResult
    from ramet.workspace.record.history import ExecutionRecord, RecordFilter
    from ramet.workspace.stored.archive_import import ImportResult
    from ramet.workspace.stored.bisect import BisectResult
    from ramet.workspace.stored.costs import CostRow
    from ramet.workspace.stored.file_patch import FilePatch
    from ramet.workspace.stored.git_push import Push, Pushed, Secrets
    from ramet.workspace.stored.saved_state import EndedJob, SavedSession

T = TypeVar("T")
PAGE: Final = 1000
CHANGES: Final = 100_000
NOTE: Final = b"# ramet "


def as_kind(plain: Any, kind: type[T]) -> T:
    """Convert a report to the value that the local call returns; ignore fields of newer servers."""
    return msgspec.convert(plain, kind)


def as_revision(plain: Mapping[str, Any]) -> Revision:
    """Convert a revision: all its fields, and the id that the server sent."""
    notes = tuple(
        Note(one["message"], one["author"], one["time"], one.get("path", ""), one.get("line", 0))
        for one in plain.get("notes", ())
    )
    found = replace(decode_revision(json.dumps(plain).encode()), notes=notes)
    found.__dict__["id"] = RevisionId(bytes.fromhex(plain["id"]))
    return found


def _stat(plain: Mapping[str, Any]) -> Stat:
    kind = Kind(plain["kind"])
    size = plain["size"] if kind is Kind.FILE else None
    return Stat(kind, size, plain["mtime_ns"] or None, mode=plain["mode"], target=plain["target"])


def _node(plain: Mapping[str, Any] | None) -> Node | None:
    """One side of a change; of its content only the target of a link is known."""
    if plain is None:
        return None
    return Node(b"", KINDS.index(plain["kind"]), plain["mode"], 0, plain["size"], encode(plain["target"] or ""))


def as_tag(workspace: str, plain: Mapping[str, Any]) -> Tag:
    target = RevisionId(bytes.fromhex(plain["revision"]))
    return Tag(workspace, plain["name"], target, plain["message"], plain["author"], plain["time"])


def as_pin(plain: Mapping[str, Any]) -> Pin:
    target = RevisionId(bytes.fromhex(plain["target"]))
    return Pin(plain["token"], plain["workspace"], target, plain["until"], plain["why"])


def as_imported(plain: Mapping[str, Any]) -> ImportResult:
    from ramet.workspace.stored.archive_import import ImportResult

    return ImportResult(as_revision(plain["revision"]), plain["files"], plain["left_out"])


def as_mount(plain: Mapping[str, Any]) -> MountState:
    tree, pin = plain["tree"], plain.get("pin")
    return MountState(
        plain["prefix"], plain["type"], plain["mode"], None if tree is None else bytes.fromhex(tree),  # type: ignore[arg-type]
        plain["config"], tuple(plain["redacted_fields"]), plain["needs_override"], plain["scratch"],
        None if pin is None else bytes.fromhex(pin),  # type: ignore[arg-type]
    )  # fmt: skip


def as_session(plain: Mapping[str, Any]) -> SavedSession:
    from ramet.workspace.stored.saved_state import SavedSession

    return SavedSession(plain["id"], plain["cwd"], plain["env"], plain["last_exit_code"])


def as_ports(plain: Mapping[str, Any]) -> list[ListeningPort]:
    return [ListeningPort(one["port"], one["address"], one["program"], one["pid"]) for one in plain["ports"]]


def as_push(plain: Mapping[str, Any]) -> Push:
    from ramet.workspace.stored.git_push import Push

    secret = plain["secret"]
    return Push(**{**plain, "paths": tuple(plain["paths"]), "secret": None if secret is None else tuple(secret)})


class RemoteRef:
    """A workspace of a server. A revision is written as after `NAME@`: `head~2`, a tag, `3`, the start of an id."""

    def __init__(self, http: Http, address: Address, name: str) -> None:
        self._http, self._address, self.name = http, address, name
        self._url = f"/v1/workspaces/{quote_text(name)}"

    def __repr__(self) -> str:
        return f"<workspace {self.name} of {self._address.url}>"

    def _spec(self, revision: RevisionLike | None) -> str | None:
        """Return a revision as the server takes it."""
        return spec_text(revision, self.name)

    def _get(self, verb: str, **query: Any) -> Any:
        return self._http.get(f"{self._url}/{verb}", **query)

    def _post(self, verb: str, *fine: int, **body: Any) -> Any:
        return self._http.ask("POST", f"{self._url}/{verb}", without_none(body), *fine)

    @property
    def head(self) -> Revision | None:
        found = self._http.get(self._url)["head"]
        return None if found is None else as_revision(found)

    def find(self, revision: RevisionLike | None = None) -> Revision:
        """Find a revision of this history, or with `OTHER@REV` of another one."""
        spec = self._spec(revision)
        if spec is not None and "@" in spec:
            other = parse_address(spec)
            return RemoteRef(self._http, self._address, other.name).find(other.revision)
        found = self._get("log", revision=spec, limit=1)["revisions"]
        if not found:
            raise RametError("revision_not_found", f"{self.name!r} has no revision yet", "commit something first")
        return as_revision(found[0])

    def log(
        self,
        revision: RevisionLike | None = None,
        *,
        limit: int | None = None,
        offset: int = 0,
        without: RevisionLike | None = None,
        records: tuple[int, int] | Set[int] | None = None,
    ) -> list[Revision]:
        """List revisions newest first, children before parents; from the head or from an older revision.

        With `limit` it is the newest ones after the first `offset`. `without` leaves out a revision and all its
        ancestors. `records` selects the revisions that hold records of these numbers: the first and the last, or a set.
        """
        found: list[Revision] = []
        more = limit != 0 and (records is None or len(records) > 0)
        asked: dict[str, Any] = {"revision": self._spec(revision), "without": self._spec(without)}
        if isinstance(records, Set):
            asked["records"] = ",".join(map(str, sorted(records)))
        elif records is not None:
            asked["first_record"], asked["last_record"] = records
        while more:
            size = PAGE if limit is None else min(PAGE, limit - len(found))
            page = self._get("log", **asked, offset=offset + len(found), limit=size)
            found += map(as_revision, page["revisions"])
            more = page["more"] and page["revisions"] and len(found) != limit
        return found

    def expired_parents(self, revision: Revision) -> tuple[RevisionId, ...]:
        """Return the parents of a revision that retention removed."""
        found = self._get("log", revision=revision.id.hex(), limit=1)["expired"]
        return tuple(RevisionId(bytes.fromhex(parent)) for parent in found.get(revision.id.hex(), ()))

    def graph(self, revision: RevisionLike | None = None) -> list[GraphRow]:
        """Draw the history: a row per revision, and rows for branches and merges."""
        return draw_graph(self.log(revision))

    def show(self, path: str, revision: RevisionLike | None = None) -> Iterator[bytes]:
        """Stream the content of a file of a revision."""
        spec = quote_text(self._spec(revision) or "head")
        return self._http.blocks("GET", f"{self._url}/file?{where(path)}&revision={spec}")

    def ls(self, path: str = "/", revision: RevisionLike | None = None) -> list[tuple[str, Stat]]:
        """List a directory of a revision: kind, mode, size of files, time and target of links, by name."""
        spec = quote_text(self._spec(revision) or "head")
        found = self._http.ask("GET", f"{self._url}/dir?{where(path)}&revision={spec}")["entries"]
        return [(plain["path"].rpartition("/")[2], _stat(plain)) for plain in found]

    def diff(self, older: RevisionLike | None = None, newer: RevisionLike | None = None) -> list[Difference]:
        """List the changes from the older to the newer revision; with one, what it changed. Without content ids."""
        found: list[Difference] = []
        while True:
            page = self._get("diff", older=self._spec(older), newer=self._spec(newer), offset=len(found), limit=CHANGES)
            found += [
                Difference(one["path"], one["what"], _node(one["before"]), _node(one["after"]), one["old"])
                for one in page["changes"]
            ]
            if len(found) >= page["total"] or not page["changes"]:
                return found

    def patch(
        self, older: RevisionLike | None = None, newer: RevisionLike | None = None, paths: Iterable[str] = ()
    ) -> Iterator[FilePatch]:
        """Yield the changed lines of each file, as `diff` takes its revisions; `str(patch)` is its text."""
        from ramet.workspace.stored.file_patch import file_patches

        return file_patches(self, older, newer, paths)

    def blame(self, path: str, revision: RevisionLike | None = None) -> list[BlameLine]:
        """Return for each line of a file the revision and, if known, the session and command that wrote it."""
        from ramet.store.verbs.blame import BlameLine, LineWriter

        query = where(path) + ("" if revision is None else f"&revision={quote_text(self._spec(revision) or 'head')}")
        found = self._http.ask("GET", f"{self._url}/blame?{query}")
        revisions = {plain["id"]: as_revision(plain) for plain in found["revisions"]}
        lines = [
            BlameLine(
                one["number"], encode(one["text"]) + b"\n", revisions[one["id"]], one["path"],
                None if one["record"] is None
                else LineWriter(
                    one["record"], one["session"], one["agent"], one["command"], one.get("kind") or "command",
                    one.get("principal") or "",
                ),
            )
            for one in found["lines"]
        ]  # fmt: skip
        if lines and not found["ends"]:
            last = lines[-1]
            lines[-1] = BlameLine(last.number, last.text[:-1], last.revision, last.path, last.writer)
        return lines

    async def bisect(
        self,
        good: RevisionLike,
        bad: RevisionLike | None,
        command: str,
        *,
        resources: Mapping[str, Resource] | None = None,
        timeout: float | None = None,
        progress: Progress = silent,
    ) -> BisectResult:
        """Find the first revision in which a command fails. Disconnecting stops it on the server."""
        from ramet.workspace.stored.bisect import BisectResult, BisectStep

        if resources:
            raise RametError("unsupported", "cannot send resources to a server", "mount them there")
        asked: dict[str, Any] = {"good": self._spec(good), "bad": self._spec(bad), "command": command, "stream": True}
        if timeout is not None:
            asked["timeout_ms"] = int(timeout * 1000)
        last: dict[str, Any] | None = None
        async with (
            self._address.async_client() as http,
            http.stream("POST", f"{self._url}/bisect", json=without_none(asked)) as response,
        ):
            if response.status_code >= 400:
                raise refusal(response.status_code, await response.aread(), response.url.path)
            async for line in async_lines(response):
                last = json.loads(line)
                if "stage" in last:
                    progress(last["stage"], last["done"], last["total"])
        found = report_of(last, self._url)
        steps = [BisectStep(as_revision(s["revision"]), s["verdict"], s["exit_code"]) for s in found["steps"]]
        first = found["first_bad"]
        return BisectResult(
            None if first is None else as_revision(first), list(map(as_revision, found["suspects"])), steps
        )

    # ------------------------------------------------------------------------------------ inspection

    def history(
        self,
        revision: RevisionLike | None = None,
        *,
        session: str | None = None,
        last: int | None = None,
        where: RecordFilter | None = None,
    ) -> list[ExecutionRecord]:
        """List the records, newest last: of one session, those that fit `where`, the `last` ones, or all."""
        from ramet.workspace.record.history import ExecutionRecord, merge_filters

        asked = 100_000 if last is None else last
        fields = msgspec.to_builtins(merge_filters(where, session) or {})
        found = self._get("history", revision=self._spec(revision), last=asked, **fields)
        if last is None and found["total"] > asked:
            raise RametError("limit_exceeded", f"cannot list all {found['total']} commands", "pass last=")
        return [as_kind(plain, ExecutionRecord) for plain in found["commands"]]

    def count_history(self, revision: RevisionLike | None = None) -> int:
        """Count the records up to a revision."""
        total: int = self._get("history", revision=self._spec(revision), last=1)["total"]
        return total

    def costs(
        self,
        revision: RevisionLike | None = None,
        *,
        by: str = "agent",
        since: float | None = None,
        until: float | None = None,
    ) -> list[CostRow]:
        """Totals of the records by `agent`, `session` or `principal`."""
        from ramet.workspace.stored.costs import CostRow

        found = self._get("costs", revision=self._spec(revision), by=by, since=since, until=until)["costs"]
        return [as_kind(plain, CostRow) for plain in found]

    def sessions(self, revision: RevisionLike | None = None) -> list[SavedSession]:
        """List the sessions, now or in a revision."""
        return [as_session(plain) for plain in self._get("sessions", revision=self._spec(revision))["sessions"]]

    def jobs(self, revision: RevisionLike | None = None) -> list[EndedJob]:
        """List the background jobs that have ended."""
        from ramet.workspace.stored.saved_state import EndedJob

        return [as_kind(plain, EndedJob) for plain in self._get("ended-jobs", revision=self._spec(revision))["jobs"]]

    def mounts(self, revision: RevisionLike | None = None) -> tuple[MountState, ...]:
        """List the mounts, now or in a revision."""
        return tuple(as_mount(plain) for plain in self._get("mounts", revision=self._spec(revision))["mounts"])

    # ------------------------------------------------------------------------------------ moving the head

    def fork(self, revision: RevisionLike | None, new_name: str) -> Revision:
        return as_revision(self._post("fork", name=new_name, revision=self._spec(revision))["head"])

    def rename(self, new_name: str) -> RemoteRef:
        """Continue this workspace under another name, with history, tags and grants; the old name is in the trash."""
        self._post("rename", name=new_name)
        return RemoteRef(self._http, self._address, new_name)

    def revert(self, revision: RevisionLike, message: str = "", paths: list[str] | None = None) -> Revision:
        """Restore a past revision as a new one: all of it, or only these paths."""
        return as_revision(self._post("revert", revision=self._spec(revision), message=message, paths=paths))

    def undo(self, *, agent: str | None = None, run: str | None = None, message: str = "") -> MergeResult:
        """Undo the last change, or what an agent or run changed and nothing else. Conflicts change nothing."""
        return self._merge_result(self._post("undo", 409, agent=agent, run=run, message=message))

    def merge(
        self,
        other: str | Revision,
        message: str = "",
        *,
        take: Mapping[str, Side] | None = None,
        edited: Mapping[str, bytes] | None = None,
    ) -> MergeResult:
        """Merge another workspace (`OTHER` or `OTHER@REV`) into this one. Conflicts are returned and change nothing.

        `take` resolves conflicts by a side (`{"/f": "theirs"}`, `{"*": "ours"}`), `edited` by a new content.
        """
        name = f"{other.workspace}@{other.id.hex()}" if isinstance(other, Revision) else other
        contents = {path: base64.b64encode(content).decode() for path, content in (edited or {}).items()}
        return self._merge_result(
            self._post("merge", 409, other=name, message=message, take=dict(take or {}), edited=contents)
        )

    def _merge_result(self, found: dict[str, Any]) -> MergeResult:
        from ramet.store.verbs.merge import MergeConflict
        from ramet.store.verbs.revert import MergeResult

        if "conflicts" not in found:
            raise refusal(found["status"], json.dumps(found).encode(), self._url)
        conflicts = tuple(MergeConflict(c["path"], c["why"], None, None, None) for c in found["conflicts"])
        revision = None if found["revision"] is None else as_revision(found["revision"])
        return MergeResult(revision, conflicts, found.get("base", ""))

    # ------------------------------------------------------------------------- tags, grants, pins

    def tag(
        self,
        tag: str,
        revision: RevisionLike | None = None,
        *,
        message: str = "",
        author: str = "",
        force: bool = False,
    ) -> Tag:
        """Tag a revision: `NAME@TAG` names it, and gc keeps it."""
        body = without_none({"revision": self._spec(revision), "message": message, "author": author, "force": force})
        return as_tag(self.name, self._http.ask("PUT", f"{self._url}/tags/{quote_text(tag)}", body))

    def tags(self) -> list[Tag]:
        return [as_tag(self.name, plain) for plain in self._get("tags")["tags"]]

    def untag(self, tag: str) -> None:
        self._http.ask("DELETE", f"{self._url}/tags/{quote_text(tag)}")

    def note(
        self, message: str, revision: RevisionLike | None = None, *, path: str = "", line: int = 0, author: str = ""
    ) -> Revision:
        """Add a note to a revision, or to a file or a line of it; return the revision with its `notes`."""
        body = {"message": message, "revision": self._spec(revision), "path": path or None, "line": line}
        return as_revision(self._http.ask("POST", f"{self._url}/notes", without_none({**body, "author": author})))

    def grants(self) -> Mapping[str, str]:
        """Return the access of each principal, `readonly` or `readwrite`; empty means that everyone has both."""
        found: dict[str, str] = self._get("grants")["grants"]
        return found

    def grant(self, principal: str, access: Access) -> None:
        """Allow a principal to read or write; after the first grant, only principals with one have access."""
        self._http.ask("PUT", f"{self._url}/grants/{quote_text(principal)}", {"access": access})

    def revoke(self, principal: str) -> None:
        """Revoke a principal's grant."""
        self._http.ask("DELETE", f"{self._url}/grants/{quote_text(principal)}")

    def pin(self, revision: RevisionLike | None = None, *, seconds: float | None = None, why: str = "") -> Pin:
        """Keep a revision from expiring, for a time or until the pin is removed."""
        return as_pin(self._post("pins", revision=self._spec(revision), seconds=seconds, why=why))

    # --------------------------------------------------------------------------------------- interchange

    def checkout(
        self,
        target: str | os.PathLike[str],
        revision: RevisionLike | None = None,
        prefix: str | None = None,
        *,
        how: How = "copy",
        verify: bool = False,
        progress: Progress = silent,
    ) -> Receipt:
        """Write all mounts, or the one at `prefix`, to a local directory; `left_out` names mounts without content."""
        from ramet.workspace.stored.store import Store

        with tempfile.TemporaryDirectory(prefix="ramet-checkout-") as place:
            with open(f"{place}/snapshot", "w+b") as file:
                self.export(file, revision)
                file.seek(0)
                here = Store(f"{place}/store")
                here.import_archive("it", file, kind="snapshot")
            return here["it"].checkout(target, None, prefix, how=how, verify=verify, progress=progress)

    def export(
        self,
        target: Target,
        revision: RevisionLike | None = None,
        *,
        kind: str = "snapshot",
        compress: str | None = None,
        progress: Progress = silent,
    ) -> Revision:
        """Download a revision as a snapshot tar, or a plain one with `kind="tar"`; a file appears when complete."""
        found = self.find(revision)
        if not isinstance(target, str | os.PathLike):
            self._download(target, found, kind, compress, progress)
            return found
        with atomic_file(target) as file:
            self._download(file, found, kind, compress, progress)
        return found

    def _download(
        self, sink: IO[bytes], found: Revision, kind: str, compress: str | None, progress: Progress
    ) -> None:  # fmt: skip
        query = {"revision": found.id.hex(), "kind": kind, "compress": compress}
        done = 0
        for piece in self._http.blocks("GET", f"{self._url}/snapshot", query=query):
            sink.write(piece)
            done += len(piece)
            progress("bytes", done, None)

    def export_git(self, target: str, *, progress: Progress = silent) -> GitExport:
        """Export the whole history as a git repository in a new directory (bare if its name ends in `.git`)."""
        from ramet.store.verbs.git_export import GitExport, branch_name
        from ramet.workspace.stored.export import write_git

        done = GitExport(branch_name(self.name))
        write_git(target, done, self._pass_report(done, progress))
        return done

    def git_stream(self, *, progress: Progress = silent) -> Iterator[bytes]:
        """Export the whole history for `git fast-import`."""
        done = 0
        for piece in self._http.blocks("GET", f"{self._url}/git"):
            done += len(piece)
            progress("bytes", done, None)
            yield piece

    def _pass_report(self, done: GitExport, progress: Progress) -> Iterator[bytes]:
        """Pass the stream on; copy the report in its last comment to `done`."""
        end = b""
        for piece in self.git_stream(progress=progress):
            end = (end + piece)[-(1 << 20) :]
            yield piece
        note = end.rpartition(NOTE)[2].partition(b"\n")[0]
        try:
            said = json.loads(note)
            done.commits, done.blobs, done.tags = said["commits"], said["blobs"], said["tags"]
            done.left_out += said["left_out"]
        except (ValueError, KeyError, TypeError):
            raise RametError("unavailable", "the export ended early", "see the server's log, then repeat") from None

    def push(
        self,
        remote: str,
        revision: RevisionLike | None = None,
        *,
        branch: str = "{{.name}}",
        paths: Sequence[str] = ("/",),
        token: str | None = None,
        username: str = "x-access-token",
    ) -> Pushed:
        """Let the server push a revision to a git branch as one commit; the server limits the remotes."""
        from ramet.workspace.stored.git_push import Pushed

        found = self._post(
            "push", remote=remote, revision=self._spec(revision), branch=branch, paths=list(paths), token=token,
            username=username,
        )  # fmt: skip
        return as_kind(found, Pushed)

    def pushes(self) -> list[Push]:
        """List pending pushes."""
        return [as_push(plain) for plain in self._get("pushes")["pushes"]]

    def push_again(self, push: Push, secrets: Secrets) -> Pushed:
        """Retry a push; `secrets` has its secrets by name and key."""
        from ramet.workspace.stored.git_push import Pushed

        plain = {name: dict(keys) for name, keys in secrets.items()}
        found = self._post("pushes", revision=push.revision, branch=push.branch, secrets=plain)
        if found["failed"]:
            raise RametError("unavailable", found["failed"][0], "retry later; the push stays pending")
        if not found["pushed"]:
            raise RametError("not_found", f"no pending push to {push.branch}", "see `pushes`")
        return as_kind(found["pushed"][0], Pushed)

    def ports(self) -> list[ListeningPort]:
        """List the ports at which programs of the workspace listen, while the server has it open."""
        return as_ports(self._get("ports"))

    @asynccontextmanager
    async def forward(
        self, port: int, local: int | socket.socket = 0, *, failed: Failed | None = None
    ) -> AsyncIterator[Forward]:
        """Lead a port of this machine's loopback to one of the workspace: `async with ref.forward(8000) as forward`.

        `local` is that port, or a socket that listens; 0 picks a free one, `forward.port`. `failed` is told why a
        connection could not be made.
        """
        from ramet.apps.client.tunnel import connect_port

        dial = partial(connect_port, self._address, self.name, port)
        async with Forward(listen_on_loopback(local), dial, failed=failed) as forward:
            yield forward

    def import_archive(
        self,
        source: Target,
        *,
        prefix: str = "/",
        message: str = "",
        author: str = "",
        kind: str | None = None,
        progress: Progress = silent,
    ) -> ImportResult:
        """Upload a tar as the next revision: a snapshot replaces everything, any other tar the mount at `prefix`."""
        if isinstance(source, str | os.PathLike):
            with open(source, "rb") as file:
                return self.import_archive(
                    file, prefix=prefix, message=message, author=author, kind=kind, progress=progress
                )
        query = {"prefix": prefix, "message": message, "author": author, "kind": kind}
        sent = self._http.ask("PUT", f"{self._url}/snapshot", query=query, content=_report_progress(source, progress))
        return as_imported(sent)


def _report_progress(source: IO[bytes], progress: Progress) -> Iterator[bytes]:
    done = 0
    for block in blocks_of(source):
        done += len(block)
        progress("bytes", done, None)
        yield block
