"""`ramet ui`: open the web page, served here or by a running server. It never prints the token."""

from __future__ import annotations

import json
import os
import secrets
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final
from urllib import error as url_error
from urllib import request as url_request
from urllib.parse import quote, quote_from_bytes

from ramet.apps.cli.addresses import address
from ramet.apps.cli.listen_port import listen
from ramet.apps.cli.options import ConfigFile, Where, known_names
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.stores import HOME, config_of, local_store, store_for
from ramet.core.errors import RametError
from ramet.core.paths import encode

PATIENCE: Final = 30.0
IDLE: Final = 20.0
"""Seconds after a command in the page's terminal until other writers can open the workspace."""


def ui(
    name: Annotated[
        str | None,
        Argument(help="Start page: NAME, NAME@REVISION or NAME@REVISION:/path.", complete=known_names),
    ] = None,
    store: Where = HOME,
    url: Annotated[str | None, Option(help="Use a running server (started with --ui) instead of this store.")] = None,
    token_file: Annotated[
        str | None,
        Option(value="FILE", help="File with the token of --url. Default: $RAMET_TOKEN, then STORE/server-token."),
    ] = None,
    port: Annotated[int, Option(help="Port on 127.0.0.1; 0 picks a free port.")] = 0,
    browser: Annotated[bool, Option(help="Open a browser if there is a display.")] = True,
    config: ConfigFile = None,
) -> None:
    """Open workspaces in a browser: history, files, diffs, blame and a terminal.

    The printed link works once, in one browser, within ten minutes. The server listens on 127.0.0.1 only.
    """
    place = place_of(name)
    if url is None and store.startswith(("http://", "https://")):
        url = store
    if url is not None:
        token = token_of(token_file, HOME if "://" in store else store)
        show_link(request_link(url.rstrip("/"), token, place), browser)
        return
    if store.startswith("unix:"):
        raise RametError("unsupported", "cannot open a unix socket in a browser", "serve on a port, and pass --url")
    _serve(store, place, name, port, browser, config)


def place_of(name: str | None) -> str:
    """Return the page's address of NAME, NAME@REVISION or NAME@REVISION:/path."""
    if name is None:
        return ""
    found = address(name)
    state = found.name if found.revision is None else f"{found.name}@{quote(found.revision, safe='~^@')}"
    return f"ws/{state}" + ("" if found.path is None else quote_from_bytes(encode(found.path), safe="/"))


def _serve(store: str, place: str, name: str | None, port: int, browser: bool, config: str | None) -> None:
    from ramet.apps.server.app import UI, serve
    from ramet.apps.server.settings import ServerSettings
    from ramet.apps.ui.pages import Pages

    described = config_of(config)
    served = local_store(store if described is None else store_for(store, described))
    wanted = None if name is None else address(name).name
    if wanted is not None and wanted not in served and (described is None or described.name != wanted):
        raise RametError("workspace_not_found", f"no workspace {wanted!r}", "see `ramet ls`, or create it")
    token = secrets.token_urlsafe(32)  # for this run only: useless after it ends
    pages = Pages(token)
    at = listen("127.0.0.1", port)
    origin = f"http://127.0.0.1:{at.getsockname()[1]}"

    def link() -> str:
        return pages.link(origin, place)

    show_link(link(), browser)
    told = "Press Ctrl-C to stop."
    if sys.stdin.isatty():
        threading.Thread(target=_more_links, args=(link,), daemon=True).start()
        told = "Press Enter for a new link, Ctrl-C to stop."
    print(f"The link works once. {told}", file=sys.stderr)
    configs = {} if described is None else {described.name or "*": described}
    # As `ramet exec` does for the same user, it runs real programs in workspaces that were created --native.
    settings = ServerSettings(token=token, configs=configs, idle=IDLE, native=True, tune_gc=True)
    serve(served, settings=settings, mounts={UI: pages}, listening=at)


def _more_links(link: Callable[[], str]) -> None:
    for _ in sys.stdin:
        print(link(), flush=True)


def token_of(file: str | None, store: str) -> str:
    """Read a server's token from the named file, from `RAMET_TOKEN`, or from the file of `ramet serve`."""
    from ramet.apps.server.settings import read_token

    told = os.environ.get("RAMET_TOKEN")
    if file is None and told:
        return told
    place = Path(file if file is not None else f"{store}/server-token").expanduser()
    if not place.exists():  # reading would create a token that the server does not know
        raise RametError("invalid_argument", f"no token in {place}", "pass --token-file, or set RAMET_TOKEN")
    return read_token(place)


def request_link(url: str, token: str, place: str) -> str:
    """Request a link from a running server."""
    headers = {"Authorization": f"Bearer {token}"}
    try:
        request = url_request.Request(f"{url}/ui/link", data=b"", headers=headers, method="POST")
        with url_request.urlopen(request, timeout=PATIENCE) as answer:
            code = json.load(answer)["link"]
    except url_error.HTTPError as refused:
        refused.close()
        if refused.code == 401:
            raise RametError(
                "unauthenticated", f"{url} rejects the token", "check --token-file and RAMET_TOKEN"
            ) from None
        raise RametError(
            "unsupported", f"{url} does not serve the web page ({refused.code})", "start it with `ramet serve --ui`"
        ) from None
    except (url_error.URLError, OSError) as failed:
        why = getattr(failed, "reason", failed)
        raise RametError("unavailable", f"cannot reach {url}: {why}", "check that the server runs") from None
    return f"{url}/ui/#/{place}?link={code}"


def show_link(link: str, browser: bool) -> None:
    print(link, flush=True)
    if browser and _has_display():
        import webbrowser

        webbrowser.open(link)


def _has_display() -> bool:
    """Return whether the user would see a browser; one in the terminal or on a remote screen does not count."""
    if sys.platform in ("darwin", "win32"):
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
