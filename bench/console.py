"""The web console over a workspace of 10,000 revisions: requests to the server, and what Chromium has painted when.

A view is opened by its link, in a page that knows nothing yet, and again from another view of the same page. Its time
ends with the frame that shows the heading, or its first content: a row, a line of a file, a line of a difference.
Requests are those that the view itself made, sent again one after another.
"""

from __future__ import annotations

import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from tests.apps.ui.browser import PROGRAM, Browser, serving

from bench.console_store import FILE, NAME, PER_RUN, PROPOSAL
from bench.harness import Case
from ramet.apps.cli.verbs.ui import request_link

REVISIONS = 10_000
ROWS = 2_000
MARK = 0.2
"""Seconds that a request, and the first of a view, may take."""
REPEAT = 5


@dataclass(frozen=True)
class View:
    """A place of the console, and the selector of the first content that a reader waits for."""

    name: str
    place: str
    content: str
    heading: str = "main .heading h1"


MIDDLE, OLD, NEW = (f"{NAME}-{REVISIONS * part // 100}" for part in (50, 5, 95))
AWAY = "#/"
"""The list of workspaces, from where other views are opened: it has no heading of a workspace."""
VIEWS = (
    View("files", f"#/ws/{NAME}/", ".listing tbody tr"),
    View("a file", f"#/ws/{NAME}{FILE}", ".code .text"),
    View("history", f"#/ws/{NAME}", ".graph .row"),
    View(f"history of {ROWS:,} rows", f"#/ws/{NAME}?limit={ROWS}", ".graph .row"),
    View("a revision", f"#/ws/{NAME}@{MIDDLE}", ".diff tr"),
    View("compare", f"#/diff/{NAME}@{NEW}?against={OLD}", ".diff tr"),
    View("agents", f"#/agents/{NAME}", ".totals tbody tr"),
    View("an agent", f"#/agents/{NAME}?agent=agent-3", ".waterfall li"),
    View("a run", f"#/agents/{NAME}?run=r{REVISIONS // PER_RUN // 2}", ".waterfall li"),
    View("costs of all runs", f"#/agents/{NAME}?by=run", ".totals tbody tr"),
    View("commands", f"#/cmds/{NAME}", ".command"),
    View("commands, searched", f"#/cmds/{NAME}?text=return%2042", ".command"),
    View("proposals", f"#/review/{NAME}", ".proposal"),
    View("review", f"#/review/{NAME}?other={PROPOSAL}", ".diff tr"),
    View("blame", f"#/ws/{NAME}{FILE}?blame", ".blame tr"),
    View("blame with its writers", f"#/ws/{NAME}{FILE}?blame", ".blame .by a"),
    View("terminal", f"#/term/{NAME}", "#command"),
)

WATCH = """
window.painted = (zero, selector) => new Promise((resolve, reject) => {
  setTimeout(() => reject(new Error(`nothing shows ${selector}`)), 20000);
  const frame = () => requestAnimationFrame(() => {
    const after = new MessageChannel();
    after.port1.onmessage = () => resolve((performance.now() - zero) / 1000);
    after.port2.postMessage(0);
  });
  const look = () => document.querySelector(selector) && (watcher.disconnect(), frame(), true);
  const watcher = new MutationObserver(look);
  if (!look()) watcher.observe(document, { childList: true, subtree: true });
});
"""
"""Waits for an element, and then for the frame that shows it."""
MADE = "performance.getEntriesByType('resource').map((one) => one.name).filter((one) => one.includes('/v1/'))"


@dataclass
class Console:
    """A page of the console, and a connection for requests of its own."""

    page: Browser
    url: str
    token: str
    requests: dict[str, list[str]] = field(default_factory=dict)
    """The paths that each view asked for, without streams."""

    def linked(self, view: View, selector: str) -> float:
        """Open a view by its link; returns seconds from the navigation to the frame with the element."""
        self.page.send("Page.navigate", url="about:blank")
        begin = f"{WATCH}; window.shown = painted(0, {json.dumps(selector)})"
        script = self.page.send("Page.addScriptToEvaluateOnNewDocument", source=begin)["identifier"]
        self.page.send("Page.navigate", url=f"{self.url}/ui/{view.place}")
        found: float = self.page.run("window.shown")
        self.page.send("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
        self._settle()
        return found

    def followed(self, view: View, selector: str) -> float:
        """The same from another view of the page."""
        self.page.go(AWAY)
        self.page.until("document.querySelector('main .card') && !document.querySelector('main .heading')")
        self._settle()
        self.page.run(WATCH)
        steps = f"const zero = performance.now(); location.hash = {json.dumps(view.place)};"
        found: float = self.page.run(f"(() => {{ {steps} return painted(zero, {json.dumps(selector)}) }})()")
        self._settle()
        return found

    def _settle(self) -> None:
        """Wait until nothing was requested for a moment, so that the next measure has the server for itself."""
        self.page.run(
            "new Promise((resolve) => { let last = -1; const look = () => { const now = "
            "performance.getEntriesByType('resource').length; if (now === last) resolve(); else { last = now; "
            "setTimeout(look, 300); } }; look(); })"
        )

    def learn(self, view: View) -> None:
        """Note what a view asks the server for."""
        self.linked(view, view.content)
        self.page.run("scrollTo(0, document.body.scrollHeight)")
        self._settle()
        found = [one.removeprefix(self.url) for one in self.page.run(MADE)]
        self.requests[view.name] = list(dict.fromkeys(one for one in found if "/events" not in one))

    def asked(self, view: View) -> list[float]:
        """Send the requests of a view again; returns the seconds of each."""
        address = urlsplit(self.url)
        found = []
        with closing(http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)) as line:
            for path in self.requests[view.name]:
                began = time.perf_counter()
                line.request("GET", path, headers={"authorization": f"Bearer {self.token}"})
                answer = line.getresponse()
                answer.read()
                found.append(time.perf_counter() - began)
                if answer.status >= 300:
                    raise RuntimeError(f"{path} was answered with {answer.status}")
        return found


def cases() -> Iterator[Case]:
    if PROGRAM is None:
        print("SKIPPED: console: Chromium is not installed", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as home:
        store = Path(home) / "store"
        subprocess.run([sys.executable, "-m", "bench.console_store", str(store), str(REVISIONS)], check=True)
        with serving(store) as (url, token), closing(Browser(Path(home) / "browser")) as page:
            page.send("Page.navigate", url=request_link(url, token, ""))
            page.sees(NAME)
            console = Console(page, url, token)
            for view in VIEWS:
                yield from _view(console, view)


def _view(console: Console, view: View) -> Iterator[Case]:
    console.learn(view)
    count = len(console.requests[view.name])
    yield Case(
        f"{view.name}: slowest of {count} requests", lambda: max(console.asked(view)), absolute_mark=MARK,
        repeat=REPEAT, peers={"the median": lambda: statistics.median(console.asked(view))},
    )  # fmt: skip
    for what, selector in (("heading", view.heading), ("first content", view.content)):
        for way, opened in (("by link", console.linked), ("from a view", console.followed)):
            measure = partial(opened, view, selector)
            yield Case(f"{view.name}: {what}, {way}", measure, absolute_mark=MARK, repeat=REPEAT)
