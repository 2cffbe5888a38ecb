"""`RemoteAgentRun`: synchronous sandboxes of a server, with the methods of `AgentRun`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ramet.apps.client.http import Http, json_of, quote_text, report_of, result_of, where, without_none
from ramet.apps.client.reference import RemoteRef, as_kind, as_revision
from ramet.apps.client.workspace import SHORT, exec_body, piece_of
from ramet.core.errors import RametError
from ramet.core.paths import encode, parse
from ramet.native.options import NativeForm
from ramet.store.model.revisions import Revision
from ramet.workspace.record.history import MetaValue
from ramet.workspace.result import IOResult
from ramet.workspace.session import DEFAULT_AGENT_ID, DEFAULT_SESSION_ID
from ramet.workspace.stored.git_push import GitSettings, Pushed, Secrets

if TYPE_CHECKING:
    from ramet.apps.client.client import RemoteStore

HOME: Final = "/workspace"
Output = str | Mapping[str, Any]


class RemoteAgentRun:
    """The workspaces and sandboxes of a server, which serves one namespace: `default`."""

    namespace = "default"

    def __init__(self, store: RemoteStore) -> None:
        self.store = store

    def create_workspace(self, name: str, *, native: NativeForm = False) -> RemoteRef:
        """Create an empty workspace; sandboxes of a `native` one run real programs, where the server allows it."""
        return self.store.create(name, native=native)

    def workspace(self, name: str) -> RemoteRef:
        return self.store[name]

    def sandbox(
        self,
        image: str | None = None,
        *,
        workspace: str | None = None,
        ready: bool = True,
        name: str | None = None,
        from_revision: str | None = None,
        wait: float = 0.0,
        lifetime: float | None = None,
        idle: float | None = None,
        env: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        git: GitSettings | None = None,
        git_secrets: Secrets | None = None,
    ) -> RemoteSandbox:
        """Create a sandbox, bound to a workspace if one is named; it ends after the server's limits or these seconds.

        `git` says which paths a `{git: ...}` output pushes, and which of `git_secrets` it uses; the server limits the
        remotes.
        """
        body = {
            "image": image or "", "workspace": workspace, "name": name, "from_revision": from_revision,
            "wait_seconds": wait, "lifetime_seconds": lifetime, "idle_seconds": idle, "env": dict(env or {}),
            "secrets": dict(secrets or {}), "git": None if git is None else _plain(git),
            "git_secrets": {one: dict(keys) for one, keys in (git_secrets or {}).items()},
        }  # fmt: skip
        made = RemoteSandbox(self.store._http, without_none(body))
        return made.start() if ready else made

    def sandboxes(self) -> list[RemoteSandbox]:
        """List the running sandboxes that this client may use."""
        http = self.store._http
        return [RemoteSandbox(http, {}, plain) for plain in http.get("/v1/sandboxes")["sandboxes"]]


class RemoteSandbox:
    """A sandbox on a server, with its files at `/workspace`. Created by `RemoteAgentRun.sandbox`."""

    def __init__(self, http: Http, wanted: Mapping[str, Any], plain: Mapping[str, Any] | None = None) -> None:
        self._http, self._wanted = http, wanted
        self.name: str = wanted.get("name") or ""
        self.workspace: str | None = wanted.get("workspace")
        self.image: str | None = wanted.get("image") or None
        self.revision: Revision | None = None
        """The final revision; None before the end, and without a workspace."""
        self.pushed: list[Pushed] = []
        self.warnings: list[str] = []
        self.phase = "Pending"
        self.files = RemoteFiles(self)
        if plain is not None:
            self._take(plain)

    def __repr__(self) -> str:
        return f"RemoteSandbox({self.name!r}, workspace={self.workspace!r}, {self.phase})"

    def __enter__(self) -> RemoteSandbox:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.terminate()

    @property
    def _url(self) -> str:
        return f"/v1/workspaces/{quote_text(self.name)}"

    def _take(self, plain: Mapping[str, Any]) -> RemoteSandbox:
        self.name, self.workspace, self.phase = plain["name"], plain["workspace"], plain["phase"]
        self.image = plain["image"] or None
        self.pushed, self.warnings = [as_kind(one, Pushed) for one in plain["pushed"]], plain["warnings"]
        self.revision = None if plain["revision"] is None else as_revision(plain["revision"])
        return self

    def start(self) -> RemoteSandbox:
        """Start the sandbox. Does nothing if it runs; a terminated sandbox cannot start again."""
        if self.phase == "Terminated":
            raise RametError("closed", f"{self.name} has ended", "create another sandbox")
        return self if self.phase == "Ready" else self._take(self._http.ask("POST", "/v1/sandboxes", self._wanted))

    def refresh(self) -> RemoteSandbox:
        """Fetch its state: it may have ended."""
        return self._take(self._http.get(f"/v1/sandboxes/{quote_text(self.name)}"))

    def _check_running(self) -> None:
        if self.phase != "Ready":
            raise RametError("closed", f"{self.name or 'the sandbox'} is not running", "start it, or create another")

    def exec(
        self,
        command: str | Sequence[str],
        *,
        session_id: str = DEFAULT_SESSION_ID,
        stdin: bytes | str | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        meta: Mapping[str, MetaValue] | None = None,
    ) -> IOResult:
        """Run shell text, or an argv; options as for `execute`."""
        self._check_running()
        text = command if isinstance(command, str) else shlex.join(command)
        body = exec_body(text, session_id, agent_id, cwd, env, timeout, meta)
        following = encode(stdin) if isinstance(stdin, str) else stdin
        if following is not None and len(following) <= SHORT:
            import base64

            body["stdin_base64"], following = base64.b64encode(following).decode(), None
        pieces: dict[int, list[bytes]] = {1: [], 2: []}
        last: Mapping[str, Any] | None = None
        for row in self._http.lines("POST", f"{self._url}/exec", {**body, "stream": True}, following):
            if "fd" in row:
                pieces[row["fd"]].append(piece_of(row))
            else:
                last = row
        return result_of(report_of(last, self._url), b"".join(pieces[1]), b"".join(pieces[2]))

    def terminate(self, outputs: Iterable[Output] | None = None, checkpoint: bool = False) -> Revision | None:
        """End the sandbox and commit its revision. Idempotent: a second call returns the same revision."""
        if self.phase == "Pending":
            self.phase = "Terminated"
        if self.phase == "Terminated":
            return self.revision
        body: dict[str, Any] = {"checkpoint": checkpoint}
        if outputs is not None:
            body["outputs"] = [one if isinstance(one, str) else dict(one) for one in outputs]
        return self._take(self._http.ask("POST", f"/v1/sandboxes/{quote_text(self.name)}/terminate", body)).revision


def _plain(git: GitSettings) -> dict[str, Any]:
    secret = git.credentials_secret
    return without_none({
        "paths": list(git.paths), "remotes": dict(git.remotes), "username": git.credentials_username,
        "secret": None if secret is None else list(secret),
    })  # fmt: skip


class RemoteFiles:
    """The files of a sandbox; relative paths start at `/workspace`."""

    def __init__(self, sandbox: RemoteSandbox) -> None:
        self._sandbox = sandbox

    def _place(self, verb: str, path: str) -> str:
        self._sandbox._check_running()
        return f"{self._sandbox._url}/{verb}?{where(str(parse(path, parse(HOME))))}"

    def write(self, path: str, data: str | bytes) -> None:
        """Write a file; creates parent directories."""
        content = data.encode() if isinstance(data, str) else data
        self._sandbox._http.ask("PUT", self._place("file", path) + "&parents=true", content=content)

    def read(self, path: str) -> bytes:
        return b"".join(self._sandbox._http.blocks("GET", self._place("file", path)))

    def read_text(self, path: str) -> str:
        return self.read(path).decode()

    def list(self, path: str = HOME) -> list[str]:
        found = self._sandbox._http.ask("GET", self._place("dir", path))["entries"]
        return [plain["path"].rpartition("/")[2] for plain in found]

    def exists(self, path: str) -> bool:
        try:
            json_of(self._sandbox._http.raw.get(self._place("stat", path)))
        except FileNotFoundError:
            return False
        return True

    def mkdir(self, path: str) -> None:
        self._sandbox._http.ask("PUT", self._place("dir", path) + "&parents=true")

    def remove(self, path: str) -> None:
        self._sandbox._http.ask("DELETE", self._place("file", path) + "&recursive=true")
