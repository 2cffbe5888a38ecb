"""Parameters that several verbs share: the workspace, the store, the output format."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.stores import SERVERS, any_store
from ramet.core.errors import RametError
from ramet.core.stat import Kind
from ramet.network.network import Network

if TYPE_CHECKING:
    from ramet.apps.client.reference import RemoteRef
    from ramet.native.options import Native
    from ramet.workspace.config import Config
    from ramet.workspace.stored.reference import StoredWorkspaceRef

# ------------------------------------------------------------- what the shell's completion offers, as `Complete`


def known_names(prefix: str, store: str, before: list[str]) -> list[str]:
    """List what an address can be completed to: workspaces, `NAME@REVISION`, or `NAME[@REVISION]:/path`."""
    found = any_store(store)
    place, colon, path = prefix.partition(":")
    name, at, revision = place.partition("@")
    if colon:
        return [f"{place}:{one}" for one in _paths(found[name], revision or None, path)]
    if at:
        return [f"{name}@{one}" for one in _revisions(found[name])]
    return found.ls()


def known_revisions(prefix: str, store: str, before: list[str]) -> list[str]:
    """List revisions of the workspace that was named before, and other workspaces."""
    if not before or "@" in prefix:
        return known_names(prefix, store, before)
    found = any_store(store)
    return [*_revisions(found[before[0].partition("@")[0]]), *found.ls()]


def known_paths(prefix: str, store: str, before: list[str]) -> list[str]:
    """List paths in the workspace that was named before."""
    name, _, revision = before[0].partition("@") if before else ("", "", "")
    return _paths(any_store(store)[name], revision or None, prefix) if name else []


def known_sides(prefix: str, store: str, before: list[str]) -> list[str]:
    """List values of `--take`: a path, then the side."""
    path, equals, _ = prefix.partition("=")
    if equals:
        return [f"{path}=ours", f"{path}=theirs"]
    return [one if one.endswith("/") else f"{one}=" for one in known_paths(prefix, store, before)]


def known_agents(prefix: str, store: str, before: list[str]) -> list[str]:
    """List the agents in the record of the workspace that was named before."""
    return _recorded("agent", store, before)


def known_runs(prefix: str, store: str, before: list[str]) -> list[str]:
    """List the runs in the record of the workspace that was named before."""
    return _recorded("run", store, before)


def _recorded(by: str, store: str, before: list[str]) -> list[str]:
    return [row.name for row in any_store(store)[before[0].partition("@")[0]].costs(by=by)] if before else []


def _revisions(handle: StoredWorkspaceRef | RemoteRef) -> list[str]:
    return ["head", *(tag.name for tag in handle.tags()), *(str(one.seq) for one in handle.log())]


def _paths(handle: StoredWorkspaceRef | RemoteRef, revision: str | None, prefix: str) -> list[str]:
    top = prefix.rpartition("/")[0]
    return [f"{top}/{one}{'/' * (stat.kind is Kind.DIR)}" for one, stat in handle.ls(top or "/", revision)]


Where = Annotated[
    str,
    Option(
        "--store",
        value="PLACE",
        envvar="RAMET_HOME",
        help="Directory or URL of the store, or of a server (http://, unix:).",
    ),
]
AsJson = Annotated[bool, Option("--json", envvar="RAMET_OUTPUT=json", help="Print JSON.")]
Message = Annotated[str, Option("--message", "-m", help="Message of the revision.")]
Since = Annotated[
    str | None,
    Option(value="TIME", help="Only from this time on: 2026-01-31, 2026-01-31T12:00, or 3d for the last three days."),
]
Agent = Annotated[
    str | None,
    Option(
        envvar="RAMET_AGENT",
        complete=known_agents,
        help="Agent that the history names as the author. Default: your user name.",
    ),
]
Wait = Annotated[float, Option(value="SECONDS", help="Seconds to wait while another process holds the workspace.")]
AllowHost = Annotated[
    list[str] | None,
    Option(
        value="HOST",
        help="Let commands reach this host: api.example.org, *.example.org:443, 127.0.0.1:8080; repeatable.",
    ),
]
NativeFlag = Annotated[bool, Option("--native", help="Run real programs too, such as python3, in a box.")]
NativeMemory = Annotated[
    str | None, Option(value="SIZE", help="Memory that its real programs may use together: 2GiB. Implies --native.")
]
NativeImage = Annotated[
    str | None,
    Option(
        value="PATH",
        help="Where programs come from: a root directory, an OCI layout, or a tar of either. Implies --native.",
    ),
]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Show no progress.")]


def network_options(config: Config | None, hosts: list[str] | None, place: str) -> dict[str, Any]:
    """The option of `Store.open` for `--allow-host`: what the configuration allows, and these hosts."""
    if not hosts:
        return {}
    if place.startswith(SERVERS):
        raise RametError(
            "unsupported", "cannot open the network to a server's workspace from here",
            "Pass --network-allow to `ramet serve`, or `network:` in its configuration.",
        )  # fmt: skip
    return {"network": Network.with_hosts(None if config is None else config.network, hosts)}


def native_option(native: bool, memory: str | None = None, image: str | None = None) -> Native | bool:
    """The option of `Store.create` and `Store.open` for `--native`, its bounds and its image."""
    if memory is None and image is None:
        return native
    from ramet.native.options import Native, NativeLimits
    from ramet.workspace.config.kinds import NumberKind

    if image is not None and not os.path.exists(image):
        raise RametError(
            "not_found", f"cannot find the image {image}", "Name a root directory, an OCI layout or a tar."
        )
    limits = NativeLimits()
    if memory is not None:
        found = NumberKind("size").parse(memory)
        if found is None:
            raise RametError("invalid_argument", f"--native-memory {memory!r} is no size", "write 2GiB")
        limits = NativeLimits(memory_bytes=int(found))
    return Native(limits, image=image)


def user_name() -> str:
    """Return the agent that the history names for commands typed here: `RAMET_AGENT`, else the user."""
    import getpass

    try:
        return os.environ.get("RAMET_AGENT") or getpass.getuser()
    except (KeyError, OSError):  # an unnamed user id, as in many containers
        return f"uid {os.getuid()}"


Name = Annotated[str, Argument(help="Name of the workspace, or NAME@REVISION for a past state.", complete=known_names)]
WholeName = Annotated[str, Argument(help="Name of the workspace.", complete=known_names)]

ConfigFile = Annotated[
    str | None, Option("--config", value="FILE", envvar="RAMET_CONFIG", help="Configuration of the workspace.")
]
