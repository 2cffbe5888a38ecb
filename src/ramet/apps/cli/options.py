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
    from ramet.native.options import Native
    from ramet.workspace.config import Config

Where = Annotated[
    str,
    Option("--store", envvar="RAMET_HOME", help="Directory or URL of the store, or of a server (http://, unix:)."),
]
AsJson = Annotated[bool, Option("--json", envvar="RAMET_OUTPUT=json", help="Print JSON.")]
Message = Annotated[str, Option("--message", "-m", help="Message of the revision.")]
Since = Annotated[
    str | None, Option(help="Only from this time on: 2026-01-31, 2026-01-31T12:00, or 3d for the last three days.")
]
Agent = Annotated[
    str | None,
    Option(envvar="RAMET_AGENT", help="Agent that the history names as the author. Default: your user name."),
]
Wait = Annotated[float, Option(help="Seconds to wait while another process holds the workspace.")]
AllowHost = Annotated[
    list[str] | None,
    Option(help="Let commands reach this host: api.example.org, *.example.org:443, 127.0.0.1:8080; repeatable."),
]
NativeFlag = Annotated[bool, Option("--native", help="Run real programs too, such as python3, in a box.")]
NativeMemory = Annotated[
    str | None, Option(help="Memory that its real programs may use together: 2GiB. Implies --native.")
]
NativeImage = Annotated[
    str | None,
    Option(help="Where programs come from: a root directory, an OCI layout, or a tar of either. Implies --native."),
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


def known_names(prefix: str, store: str) -> list[str]:
    """List what an address can be completed to: workspaces, `NAME@REVISION`, or `NAME[@REVISION]:/path`."""
    try:
        found = any_store(store)
        place, colon, path = prefix.partition(":")
        name, at, revision = place.partition("@")
        if colon:
            top = path.rpartition("/")[0]
            listed = found[name].ls(top or "/", revision or None)
            words = [f"{place}:{top}/{one}{'/' * (stat.kind is Kind.DIR)}" for one, stat in listed]
        elif at:
            tags = [tag.name for tag in found[name].tags()]
            words = [f"{name}@{one}" for one in ("head", *tags, *(str(r.seq) for r in found[name].log()))]
        else:
            words = found.ls()
    except (OSError, RametError):
        return []
    return [word for word in words if word.startswith(prefix)]


Name = Annotated[str, Argument(help="Workspace: NAME, or NAME@REVISION for verbs that read.", complete=known_names)]

ConfigFile = Annotated[str | None, Option("--config", envvar="RAMET_CONFIG", help="Configuration of the workspace.")]
