"""Verbs that serve workspaces: HTTP, MCP, git rendezvous."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from ramet.apps.cli.listen_port import listen
from ramet.apps.cli.options import AllowHost, ConfigFile, NativeFlag, Where, network_options
from ramet.apps.cli.parameters import Argument, Given, Option
from ramet.apps.cli.stores import HOME, SERVERS, any_store, config_for, config_of, local_store, store_for
from ramet.core.errors import RametError, missing_extra
from ramet.network.network import Network


def serve(
    given: Given,
    store: Where = HOME,
    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(help="Port to listen on; 0 picks a free port.")] = 8750,
    uds: Annotated[str | None, Option("--socket", help="Unix socket to listen on instead.")] = None,
    token_file: Annotated[
        str | None, Option(value="FILE", help="File with the token; created if missing. Default: STORE/server-token.")
    ] = None,
    principals: Annotated[
        str | None,
        Option(value="FILE", help="File with lines `NAME TOKEN`: tokens of further principals, see `grant`."),
    ] = None,
    certificate: Annotated[str | None, Option(help="TLS certificate (PEM).")] = None,
    key: Annotated[str | None, Option(help="TLS key (PEM).")] = None,
    allow_hosts: Annotated[list[str] | None, Option("--allow-host", help="Accept this Host header as well.")] = None,
    durable: Annotated[
        str, Option(help="When to commit: before each response (answer), on a timer (timer), or on close (close).")
    ] = "answer",
    every: Annotated[float, Option(value="SECONDS", help="Seconds between commits with --durable timer.")] = 5.0,
    concurrency: Annotated[int, Option(help="Concurrent requests per client.")] = 64,
    rate: Annotated[float, Option(help="Requests per second and client; 0 sets no limit.")] = 0.0,
    idle: Annotated[float, Option(value="SECONDS", help="Seconds after which an unused workspace is closed.")] = 600.0,
    rendezvous: Annotated[
        str | None, Option(value="DIRECTORY", help="Directory of git repositories that receive pushes at /git.")
    ] = None,
    ui: Annotated[bool, Option("--ui", help="Also serve the console at /ui/; see `ramet ui`.")] = False,
    push_to: Annotated[
        list[str] | None, Option(help="Allow clients to push to URLs with this prefix; may be repeated.")
    ] = None,
    mount: Annotated[
        list[str] | None, Option(help="Mount a directory: NAME:/prefix=DIRECTORY[:ro]; NAME may be *.")
    ] = None,
    config: Annotated[
        list[str] | None,
        Option("--config", value="FILE", help="Configuration file of one workspace, or of all; may be repeated."),
    ] = None,
    native: Annotated[
        bool, Option("--native", help="Run real programs on this machine, in workspaces that were created --native.")
    ] = False,
    network_allow: Annotated[
        list[str] | None,
        Option(help="Let commands of every workspace that has no `network:` reach this host; repeatable."),
    ] = None,
    answer_seconds: Annotated[
        float,
        Option(value="SECONDS", help="Seconds that a command waits for the answer to a question of an `ask` rule."),
    ] = 300.0,
) -> None:
    """Serve the workspaces of the store over HTTP until interrupted; `docs/http.md` describes the API."""
    from ramet.apps.server.app import serve as run
    from ramet.apps.server.settings import Bounds, ServerSettings, read_principals, read_token
    from ramet.workspace.config import load_config

    configs = [load_config(file) for file in config or ()]
    said = next((found.server for found in configs if found.server), {})

    def value(name: str, default: Any) -> Any:
        """Return the value from the command line, else from a file, else the default."""
        told = said.get(name)
        return told if told is not None and ("uds" if name == "socket" else name) not in given else default

    durable, socket, tls = value("durable", durable), value("socket", uds), value("certificate", certificate)
    if durable not in ("answer", "timer", "close"):
        raise RametError("invalid_argument", f"unknown --durable {durable!r}", "use answer, timer or close")
    if (tls is None) != (value("key", key) is None):
        raise RametError("invalid_argument", "--certificate and --key need each other", "pass both")
    store = next((found.store for found in configs if found.store and store == HOME), store)
    plain = ServerSettings()
    settings = ServerSettings(
        hosts=plain.hosts | frozenset(name.lower() for name in value("allow_hosts", allow_hosts) or ()),
        durable=durable,  # type: ignore[arg-type]
        every=value("every", every), idle=value("idle", idle), mounts=_mounts(mount or []),
        bounds=Bounds(concurrency=value("concurrency", concurrency), rate=value("rate", rate)),
        configs={found.name or "*": found for found in configs},
        principals={} if principals is None else read_principals(principals), push_to=tuple(push_to or ()),
        tune_gc=True, native=native, network=Network.with_hosts(None, network_allow),
        answer_seconds=answer_seconds,
    )  # fmt: skip
    token = value("token_file", token_file)
    if token is None and (socket is None or value("rendezvous", rendezvous) is not None):
        token = str(Path(store).expanduser() / "server-token") if "://" not in store else "~/.ramet/server-token"
    address, number = value("host", host), value("port", port)
    served = local_store(store)
    if token is not None:
        read_token(token)  # before the port opens, so that a client that connects finds the token file
    at = None
    if socket is None:
        at = listen(address, number)
        number = at.getsockname()[1]
    where = socket or f"{'https' if tls else 'http'}://{address}:{number}"
    print(f"ramet serves {store} on {where}" + (f", token in {token}" if token else ""), file=sys.stderr)
    for found in configs:
        if found.name is not None and found.name not in served:
            served.create(found.name)
    run(
        served, host=address, port=number, uds=socket, token_file=token, certificate=tls,
        key=value("key", key), settings=settings, rendezvous=value("rendezvous", rendezvous), ui=ui,
        listening=at,
    )  # fmt: skip


def _mounts(texts: list[str]) -> dict[str, dict[str, Any]]:
    from ramet.backends.local.disk import DiskResource

    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, colon, rest = text.partition(":")
        prefix, equals, directory = rest.partition("=")
        if not (colon and equals and prefix.startswith("/") and directory):
            raise RametError("invalid_argument", f"cannot parse --mount {text!r}", "write NAME:/prefix=DIRECTORY")
        mode = "read" if directory.endswith(":ro") else "write"
        found.setdefault(name, {})[prefix] = (DiskResource(directory.removesuffix(":ro")), mode)
    return found


def rendezvous(
    folder: Annotated[str, Argument(help="Directory for the bare repositories; created if missing.")],
    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(help="Port to listen on.")] = 8751,
    token_file: Annotated[
        str | None, Option(value="FILE", help="File with the token; created if missing. Default: FOLDER/.token.")
    ] = None,
) -> None:
    """Receive branches that sandboxes push, over HTTP with a token. `docs/agent-run.md` describes the push."""
    try:
        import uvicorn
    except ImportError as error:
        raise missing_extra("server", "the server for pushes") from error

    from ramet.apps.git_server import rendezvous as app
    from ramet.apps.server.connections import configure
    from ramet.apps.server.settings import Bounds, read_token

    place = Path(folder).expanduser()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    where = token_file or str(place / ".token")
    served = app(str(place), read_token(where))
    at = listen(host, port)
    number = at.getsockname()[1]
    print(f"ramet receives branches on http://{host}:{number}/NAME.git, token in {where}", file=sys.stderr)
    uvicorn.Server(configure(served, Bounds())).run([at])


def mcp(
    name: Annotated[str, Argument(help="Name of the workspace; created if it does not exist.")],
    store: Where = HOME,
    tools: Annotated[str | None, Option(help="Only these tools, such as `bash,read`.")] = None,
    http: Annotated[int | None, Option(help="Serve streamable HTTP on this port instead of stdio.")] = None,
    config: ConfigFile = None,
    native: NativeFlag = False,
    allow_host: AllowHost = None,
) -> None:
    """Serve a workspace to a model over MCP; `docs/mcp.md` describes the tools."""
    import asyncio

    from ramet.apps.mcp.server import run_http, run_stdio
    from ramet.apps.server.settings import read_token

    described = config_of(config)
    store = store if described is None else store_for(store, described)
    if not store.startswith(SERVERS):
        described = config_for(local_store(store), name, config)
    some = None if tools is None else tools.split(",")
    network = network_options(described, allow_host, store).get("network")
    if http is None:
        asyncio.run(run_stdio(any_store(store), name, some, config=described, native=native, network=network))
    else:
        home = HOME if store.startswith(SERVERS) else store
        token = read_token(Path(home).expanduser() / "server-token")
        at = listen("127.0.0.1", http)
        number = at.getsockname()[1]
        print(f"ramet serves {name} on http://127.0.0.1:{number}/mcp, token in {home}/server-token", file=sys.stderr)
        asyncio.run(
            run_http(
                any_store(store),
                name,
                some,
                token=token,
                config=described,
                listening=at,
                native=native,
                network=network,
            )
        )
