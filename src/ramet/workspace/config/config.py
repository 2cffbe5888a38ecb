"""`Config`: a checked configuration, and the workspaces it creates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ramet.core.errors import RametError
from ramet.core.limits import Limits
from ramet.core.paths import parse
from ramet.core.proc import User
from ramet.core.resource import Resource
from ramet.layers.retry import Patience
from ramet.native.options import Native, as_native
from ramet.network.network import Network
from ramet.workspace.config.declaration import declaration
from ramet.workspace.config.kinds import INVALID
from ramet.workspace.config.nodes import Node, Position
from ramet.workspace.config.problems import ConfigError, ConfigReader, Problem, Setting
from ramet.workspace.config.resources import BACKENDS, import_reference
from ramet.workspace.mounts import Mount, as_mode
from ramet.workspace.policy import Policy
from ramet.workspace.workspace import Settings, Workspace

if TYPE_CHECKING:
    from ramet.workspace.stored.store import Store, WorkspaceOpener


@dataclass(frozen=True)
class MountConfig:
    """One configured mount; every workspace gets a new resource."""

    prefix: str
    resource: str
    config: Mapping[str, Any] = field(repr=False)
    mode: str
    cached: bool
    patience: Patience | None
    pin: str | None
    place: Position

    def make(self) -> Mount:
        if self.resource in BACKENDS:
            made: Resource = BACKENDS[self.resource].make(self.config)
        else:
            made = import_reference(self.resource)(**self.config)
        return Mount(parse(self.prefix), made, as_mode(self.mode), self.cached, self.patience)


@dataclass(frozen=True)
class CommandConfig:
    python: str
    mount: str | None
    suffix: str | None


@dataclass(frozen=True)
class SessionConfig:
    cwd: str
    env: Mapping[str, str]


@dataclass(frozen=True)
class CommitConfig:
    when: str = "close"
    every: float | None = None
    withhold: tuple[str, ...] = ()
    drafts: str | float = "off"
    scan: str = "off"


@dataclass(frozen=True)
class Config:
    """A configuration. `settings` lists every value with its origin, without secrets."""

    file: str
    name: str | None
    store: str | None
    mounts: tuple[MountConfig, ...]
    env: Mapping[str, str]
    secrets: Mapping[str, str] = field(repr=False)
    workspace_settings: Settings
    policy: Mapping[str, Any] | None
    commands: Mapping[str, CommandConfig]
    sessions: Mapping[str, SessionConfig]
    commit: CommitConfig
    server: Mapping[str, Any]
    native: Native | None
    network: Network | None
    settings: tuple[Setting, ...] = field(repr=False)

    def make_mounts(self) -> dict[str, Mount]:
        """Create the mounts; raises one error with all problems and their positions."""
        made: dict[str, Mount] = {}
        problems: list[Problem] = []
        for mount in self.mounts:
            try:
                made[mount.prefix] = mount.make()
            except RametError as error:
                cause, remedy = error.cause, error.remediation
                problems.append(Problem(self.file, *mount.place, f"mounts.{mount.prefix}", cause, remedy))
            except Exception as error:  # any error of a constructor, also of its library
                why = error.strerror if isinstance(error, OSError) and error.strerror else str(error).partition("\n")[0]
                problems.append(Problem(self.file, *mount.place, f"mounts.{mount.prefix}", why or repr(error)))
        if problems:
            raise ConfigError(problems)
        return made

    def workspace(self, *, native: Native | bool | None = None, network: Network | None = None) -> Workspace:
        """Create the configured workspace, without the store; `native` and `network` override the file."""
        ws = Workspace(
            self.make_mounts(), env=self.env, secrets=self.secrets, policy=self.policy,
            settings=self.workspace_settings, native=self.native if native is None else native,
            network=network or self.network,
        )  # fmt: skip
        self.prepare(ws)
        return ws

    def open(
        self, store: Store | None = None, name: str | None = None, revision: str | None = None, **options: Any
    ) -> WorkspaceOpener:
        """Open the configured workspace of the store, created if it does not exist. Use it with `async with`.

        A directory is mounted as it is; memory has the content of the revision. The options are those of `Store.open`,
        and override the file.
        """
        from ramet.workspace.stored.store import Store

        name = name or self.name
        if name is None:
            raise RametError("invalid_config", f"{self.file} names no workspace", "add `name:`, or give one")
        found = store or Store(self.store)
        if revision is None and name not in found:
            found.create(name)
        head = found[name].head if revision is None else found[name].find(revision)
        saved = {state.prefix for state in head.mounts if state.tree is not None} if head is not None else set()
        mounts = {
            prefix: mount
            for prefix, mount in self.make_mounts().items()
            if not (prefix in saved and mount.memory is not None)  # memory has the content of the revision
        }
        said: dict[str, Any] = {
            "settings": self.workspace_settings, "secrets": self.secrets, "env": self.env, "policy": self.policy,
            "commit": self.commit.when, "every": self.commit.every, "withhold": self.commit.withhold,
            "drafts": self.commit.drafts, "scan": self.commit.scan, "native": self.native,
            "network": self.network,
            "pins": {mount.prefix: mount.pin for mount in self.mounts if mount.pin is not None},
        }  # fmt: skip
        return found.open(name, revision, mounts=mounts, prepare=self.prepare, **{**said, **options})

    def prepare(self, ws: Workspace) -> None:
        """Add the configured commands and sessions to a workspace."""
        for name, command in self.commands.items():
            ws.command(name, mount=command.mount, filetype=command.suffix)(import_reference(command.python))
        for session_id, session in self.sessions.items():
            if session_id not in ws.sessions:
                ws.create_session(session_id, env=session.env, cwd=session.cwd)


def _limits(given: Mapping[str, Any]) -> Limits:
    """The limits that a file sets; what it leaves out has its default, which may depend on the machine."""
    return Limits(**{name: value for name, value in given.items() if value is not None})


def config_of(top: Node, reading: ConfigReader) -> Config | None:
    """Create the configuration from the nodes of a file; None when `reading` has problems."""
    found = declaration().read(top, "", reading)
    if found is not INVALID:
        _check_together(found, top, reading)
    if reading.problems or found is INVALID:
        return None
    top_mounts = top.value["mounts"].value if isinstance(top.value, dict) and "mounts" in top.value else {}
    assert isinstance(top_mounts, dict)
    cache = found["cache"] or {}
    plain = Settings()
    settings = Settings(
        user=User(**found["user"]) if found["user"] else plain.user,
        limits=_limits(found["limits"]) if found["limits"] else plain.limits,
        cache_bytes=cache.get("bytes", plain.cache_bytes),
        cache_dir=cache.get("directory"),
        cache_url=cache.get("url"),
        max_drain_bytes=cache.get("drain_bytes", plain.max_drain_bytes),
    )
    commit = found["commit"] or {}
    network = _network(found["network"], top, reading)
    native = _native(found["native"], top, reading)
    policy = _policy(found["policy"])
    if native is not None and policy is not None:
        _check_programs(policy, found["mounts"] or {}, top, reading)
    if reading.problems:
        return None
    return Config(
        file=reading.file,
        name=found["name"],
        store=found["store"],
        mounts=tuple(
            _mount(prefix, row, top_mounts[prefix].key or top_mounts[prefix].place)
            for prefix, row in (found["mounts"] or {}).items()
        ),
        env=found["env"] or {},
        secrets=found["secrets"] or {},
        workspace_settings=settings,
        policy=policy,
        commands={name: CommandConfig(**row) for name, row in (found["commands"] or {}).items()},
        sessions={name: SessionConfig(row["cwd"], row["env"] or {}) for name, row in (found["sessions"] or {}).items()},
        commit=CommitConfig(
            commit.get("when", "close"),
            commit.get("every"),
            commit.get("withhold") or (),
            commit.get("drafts", "off"),
            commit.get("scan", "off"),
        ),
        server=found["server"] or {},
        native=native,
        network=network,
        settings=tuple(reading.settings),
    )


def _network(found: Mapping[str, Any] | None, top: Node, reading: ConfigReader) -> Network | None:
    """The network policy of a file; what its rules and credentials get wrong is a problem of the file."""
    if found is None:
        return None
    try:
        return Network.of({name: value for name, value in found.items() if value is not None})
    except RametError as error:
        assert isinstance(top.value, dict)
        reading.wrong(top.value["network"].place, "network", error.cause, error.remediation)
        return None


def _native(found: Mapping[str, Any] | bool | None, top: Node, reading: ConfigReader) -> Native | None:
    """The bounds of real programs; a wrong one is a problem of the file."""
    if not isinstance(found, Mapping):
        return as_native(found)
    limits = {name: value for name, value in (found["limits"] or {}).items() if value is not None}
    try:
        return as_native({**found, "limits": limits})
    except RametError as error:
        assert isinstance(top.value, dict)
        reading.wrong(top.value["native"].place, "native.limits", error.cause, error.remediation)
        return None


def _mount(prefix: str, row: Mapping[str, Any], place: Position) -> MountConfig:
    patience = None if row["patience"] is None else Patience(**row["patience"])
    return MountConfig(prefix, row["resource"], row["config"], row["mode"], row["cache"], patience, row["pin"], place)


def _policy(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the arguments of `Policy.from_dict`."""
    if found is None:
        return None
    made: dict[str, Any] = {"default": found["default"]}
    for name in ("hide", "deny", "ask", "allow", "limit"):
        if found[name]:
            made[name] = [{key: value for key, value in row.items() if value is not None} for row in found[name]]
    return made


def _check_programs(policy: Mapping[str, Any], mounts: Mapping[str, Any], top: Node, reading: ConfigReader) -> None:
    """A rule that native programs cannot be held to is a problem of the file."""
    served = [prefix for prefix, row in mounts.items() if row["resource"] not in ("ram", "disk")]
    try:
        Policy.from_dict(policy).check_programs(served)
    except RametError as error:
        assert isinstance(top.value, dict)
        reading.wrong(top.value["policy"].place, "policy", error.cause, error.remediation)


def _check_together(found: Mapping[str, Any], top: Node, reading: ConfigReader) -> None:
    """Check settings that depend on each other."""
    assert isinstance(top.value, dict)
    mounts = top.value.get("mounts")
    if mounts is not None and isinstance(mounts.value, dict):
        seen: dict[str, str] = {}
        for prefix, node in mounts.value.items():
            if prefix.startswith("/"):
                same = seen.setdefault(str(parse(prefix)), prefix)
                if same != prefix:
                    reading.wrong(node.key or node.place, "mounts", f"{prefix} and {same} are the same place")
        for mount in (found["commands"] or {}).values():
            where = None if mount is INVALID else mount["mount"]
            if isinstance(where, str) and str(parse(where)) not in seen:
                reading.wrong(top.value["commands"].place, "commands", f"nothing is mounted at {where}")
    commit = found["commit"]
    if isinstance(commit, dict) and INVALID not in commit.values():
        place = top.value["commit"].place
        if commit["when"] == "timer" and commit["every"] is None:
            reading.wrong(place, "commit", "a timer needs every", "give the seconds between commits")
        if commit["when"] in ("close", "never") and commit["every"] is not None:
            reading.wrong(place, "commit.every", f"every has no effect with {commit['when']}", "leave it out")
    server = found["server"]
    if isinstance(server, dict) and (server["certificate"] is None) != (server["key"] is None):
        reading.wrong(top.value["server"].place, "server", "a certificate and its key belong together")
