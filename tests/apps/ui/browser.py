"""A Chromium that a test drives through its debugging port: just enough to open a page, wait, click and type."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2

PROGRAM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
PATIENCE = 200.0
BETWEEN_PAGES = ("Cannot find default execution context", "Execution context was destroyed", "navigated or closed")
"""What Chromium answers to a script that meets no page."""


@contextmanager
def serving(store: Path, *options: str) -> Iterator[tuple[str, str]]:
    """`ramet serve --ui` on a store: its URL and its token."""
    words = [sys.executable, "-m", "ramet.apps.cli", "serve", "--store", str(store), "--port", "0", "--ui", *options]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            told = process.stderr.readline()
            url = re.search(r"http://\S+:\d+", told)
            assert url, told + process.stderr.read()
            for _ in range(4_000):
                try:
                    httpx2.get(f"{url[0]}/v1/health", timeout=PATIENCE)
                    break
                except httpx2.TransportError:
                    time.sleep(0.05)
            yield url[0], (store / "server-token").read_text().strip()
        finally:
            process.terminate()
            process.wait(PATIENCE)


class Browser:
    """One page. What the browser complains about (a policy that was violated, an exception) is in `complaints`."""

    def __init__(self, folder: Path) -> None:
        assert PROGRAM is not None
        self._process = subprocess.Popen(
            [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
             "--window-size=1280,900", "--disable-ipc-flooding-protection",
             "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"],
            stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        self.complaints: list[str] = []
        self._number = 0
        self._open = ExitStack()
        try:
            self._begin(folder / "DevToolsActivePort")
        except BaseException:
            self.close()
            raise

    def _begin(self, told: Path) -> None:
        from websockets.sync.client import connect

        end = time.monotonic() + PATIENCE
        while not (told.exists() and told.read_text().count("\n")):
            assert time.monotonic() < end and self._process.poll() is None, "the browser does not start"
            time.sleep(0.02)
        port = told.read_text().partition("\n")[0]
        pages: list[dict[str, Any]] = []
        while not pages:
            found = httpx2.get(f"http://127.0.0.1:{port}/json/list", timeout=PATIENCE).json()
            pages = [page for page in found if page["type"] == "page"]
            assert time.monotonic() < end, found
        address = pages[0]["webSocketDebuggerUrl"]
        self._socket = self._open.enter_context(connect(address, max_size=None, compression=None))
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        self._open.close()
        self._process.kill()
        self._process.wait()

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            told = json.loads(self._socket.recv(timeout=PATIENCE))
            if told.get("id") == self._number:
                assert "error" not in told, told
                result: dict[str, Any] = told["result"]
                return result
            self._heard(told)

    def _heard(self, told: dict[str, Any]) -> None:
        params = told.get("params", {})
        if told.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"]))
        elif told.get("method") == "Log.entryAdded" and params["entry"]["source"] in ("security", "violation"):
            self.complaints.append(params["entry"]["text"])

    def run(self, script: str) -> Any:
        told = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def until(self, script: str) -> Any:
        """What the script gives, as soon as that is true."""
        end = time.monotonic() + PATIENCE
        tried = f"(() => {{ try {{ return {script} }} catch {{ return null }} }})()"
        while not (found := self._look(tried)):
            assert time.monotonic() < end, (script, self.run("document.body.innerText")[:2000])
            time.sleep(0.02)
        return found

    def _look(self, script: str) -> Any:
        """What the script gives; None while one page takes the place of another."""
        try:
            return self.run(script)
        except AssertionError as error:
            if not any(words in str(error) for words in BETWEEN_PAGES):
                raise
            return None

    def go(self, place: str) -> None:
        self.run(f"location.hash = {json.dumps(place)}")

    def sees(self, text: str, where: str = "main") -> str:
        """Wait until a text can be read there."""
        found: str = self.until(
            f"document.querySelector({json.dumps(where)})?.innerText.includes({json.dumps(text)})"
            f" && document.querySelector({json.dumps(where)}).innerText"
        )
        return found

    def click(self, text: str, where: str = "main button, main a") -> None:
        has = f"(one) => one.textContent.includes({json.dumps(text)})"
        found = f"[...document.querySelectorAll({json.dumps(where)})].find({has})"
        ready = f"{found}.disabled !== true && !{found}.hasAttribute('aria-disabled')"
        self.until(f"{ready} && ({found}.click(), true)")

    def fill(self, where: str, text: str) -> None:
        self.until(f"document.querySelector({json.dumps(where)}) !== null")
        self.run(f"document.querySelector({json.dumps(where)}).focus()")
        self.run(f"document.querySelector({json.dumps(where)}).select?.()")
        self.send("Input.insertText", text=text)

    def press(self, key: str, code: int = 0, modifiers: int = 0) -> None:
        pressed: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        text = {"text": "\r"} if key == "Enter" else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", **pressed, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **pressed)

    def shortcut(self, keys: str, place: str) -> None:
        """Type a shortcut until it leads to a place: keys that are a while apart, or that meet no page, are none."""
        end = time.monotonic() + PATIENCE
        there = f"location.hash === {json.dumps(place)}"
        while not self._look(there):
            assert time.monotonic() < end, (keys, self.run("location.hash"))
            for key in keys:
                self.press(key)
            soon = time.monotonic() + 1
            while not self._look(there) and time.monotonic() < soon:
                time.sleep(0.02)
