"""After `os.fork()` a child runs commands, opens its store and talks to its server, whatever the parent did before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

CHILD = """
import faulthandler, os, signal, sys
def forked(work):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(40, exit=True)
        try:
            work()
        except BaseException:
            import traceback; traceback.print_exc()
            os._exit(3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

EXEC = """
import asyncio
from ramet import Workspace
LARGE = "seq 200000 | sort -n | tail -n 1; jq -n '[range(100000)] | length'; tsort <<< 'a b' | tail -n 1"
async def run():
    async with Workspace() as ws:
        result = await ws.execute(LARGE, timeout=30)
        assert result.text == "200000\\n100000\\nb\\n", result
asyncio.run(run())
forked(lambda: asyncio.run(run()))
"""

HELD = """
import asyncio, threading
import ramet.shell.syntax.cache as cache, ramet.concurrency.recursion as recursion
from ramet.commands.framework import table
from ramet import Workspace
async def run():
    async with Workspace() as ws:
        assert (await ws.execute("echo a | tsort; echo b", timeout=30)).text.endswith("b\\n")
held, gate = threading.Event(), threading.Event()
def hold():
    with cache._lock, recursion._lock, table._one_at_a_time:
        held.set()
        gate.wait()
threading.Thread(target=hold, daemon=True).start()
held.wait()
forked(lambda: asyncio.run(run()))
gate.set()
"""

SYNC = """
from ramet.workspace.sync import SyncWorkspace
ws = SyncWorkspace()
assert ws.execute("echo a").text == "a\\n"
def child():
    assert ws.execute("echo b; seq 100000 | sort | wc -l").text == "b\\n100000\\n"
forked(child)
assert ws.execute("echo c").text == "c\\n"
"""

STORE = """
import asyncio
from ramet.workspace.stored.store import Store
store = Store(PLACE)
async def change(text):
    async with store.open("w") as ws:
        await ws.execute(f"echo {text} >> f; seq 100000 > big", timeout=30)
        await ws.commit()
        return (await ws.execute("cat f")).text
store.create("w")
assert asyncio.run(change("one")) == "one\\n"
def child():
    assert asyncio.run(change("two")) == "one\\ntwo\\n"
forked(child)
assert asyncio.run(change("three")) == "one\\ntwo\\nthree\\n"
"""

CLIENT = """
import http.server, json, threading
from ramet.apps.client.http import Address, Http
class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = json.dumps(self.client_address[1]).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
client = Http(Address(f"http://127.0.0.1:{server.server_port}", None, 20))
connection = client.ask("GET", "/")
assert client.ask("GET", "/") == connection
def child():
    assert client.ask("GET", "/") != connection
forked(child)
assert client.ask("GET", "/") == connection
"""


def run(script: str) -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", CHILD + script], capture_output=True, timeout=100)
    assert done.returncode == 0, done.stderr.decode()[-3000:]


@pytest.mark.parametrize("name", ["EXEC", "HELD", "SYNC", "CLIENT"])
def test_commands(name: str) -> None:
    run(globals()[name])


def test_a_store(tmp_path: Path) -> None:
    run(f"PLACE = {str(tmp_path / 'store')!r}\n" + STORE)
