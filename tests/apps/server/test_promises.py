"""What a server promises beside its routes: TLS, when changes are durable, idle workspaces, keys, rendezvous."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import re
import shutil
import ssl
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest
from tests.apps.server.harness import TOKEN, Process, run, serving

from ramet import DiskResource, Store

W = "/v1/workspaces/p"


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that vouches for itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ramet")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    cert, secret = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return cert, secret


def started(*words: str) -> tuple[subprocess.Popen[str], int]:
    """A server on a port that it found by itself, and that it listens on when it has said so."""
    process = subprocess.Popen([sys.executable, "-m", "ramet.apps.cli", *words], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    found = re.search(r":(\d+), token", process.stderr.readline())
    assert found is not None
    return process, int(found[1])


def ended(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stderr is not None
    process.stderr.close()


def test_tls(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    words = ["serve", "--store", str(tmp_path / "store"), "--port", "0", "--certificate", str(cert)]
    half = subprocess.run([sys.executable, "-m", "ramet.apps.cli", *words], capture_output=True, text=True, check=False)
    assert half.returncode == 2 and "need each other" in half.stderr
    process, port = started(*words, "--key", str(key))
    try:
        trusted = ssl.create_default_context(cafile=str(cert))
        with httpx2.Client(verify=trusted, base_url=f"https://127.0.0.1:{port}", timeout=200) as http:
            assert http.get("/v1/health").json()["status"] == "ok"
            assert http.get("/v1/workspaces").status_code == 401
            token = (tmp_path / "store" / "server-token").read_text().strip()
            given = {"authorization": f"Bearer {token}"}
            assert http.get("/v1/workspaces", headers=given).json() == {"workspaces": []}
        with (
            httpx2.Client(verify=ssl.create_default_context(), timeout=200) as http,
            pytest.raises(httpx2.ConnectError),
        ):
            http.get(f"https://127.0.0.1:{port}/v1/health")
    finally:
        ended(process)


def written(tmp_path: Path, *options: str) -> tuple[Process, str]:
    """A server in which a file was written and answered for."""
    server = Process(tmp_path, *options)
    with server.client() as http:
        http.post("/v1/workspaces", json={"name": "p"})
        assert http.put(f"{W}/file?path=/f", content=b"1").status_code == 200
        return server, "/f"


def after_a_kill(server: Process) -> int:
    server.kill()
    server.start()
    try:
        with server.client() as http:
            return http.get(f"{W}/file?path=/f").status_code
    finally:
        server.kill()


def test_durable_on_close(tmp_path: Path) -> None:
    server, _ = written(tmp_path, "--durable", "close")
    assert after_a_kill(server) == 404
    server.start()
    with server.client() as http:
        http.put(f"{W}/file?path=/f", content=b"1")
        assert http.post(f"{W}/commit", json={"message": "now"}).json()["seq"] == 1
    assert after_a_kill(server) == 200


def test_durable_on_a_timer(tmp_path: Path) -> None:
    server, _ = written(tmp_path, "--durable", "timer", "--every", "0.05")
    with server.client() as http:
        for _ in range(10_000):
            if http.get(f"{W}/log").json()["revisions"]:
                break
            time.sleep(0.02)
    assert after_a_kill(server) == 200


def test_an_idle_workspace_is_committed_and_let_go(tmp_path: Path) -> None:
    async def test() -> None:
        store = Store(str(tmp_path))
        async with serving(store, durable="close", idle=0.1) as (http, app):
            await http.post("/v1/workspaces", json={"name": "p"})
            await http.put(f"{W}/file?path=/f", content=b"1")
            for _ in range(10_000):
                if app.workspaces.find("p") is None and store.repository.refs.last("p").holder == "":
                    break
                await asyncio.sleep(0.02)
            async with store.open("p") as ws:
                assert (await ws.execute("cat /f")).text == "1"
            assert (await http.get(f"{W}/file?path=/f")).content == b"1"

    run(test)


def test_an_effect_whose_answer_was_lost_is_reported(tmp_path: Path) -> None:
    async def test() -> None:
        key = {"idempotency-key": "one"}
        body = {"command": "echo x >> /n"}
        store = Store(str(tmp_path))
        async with serving(store) as (http, _):
            await http.post("/v1/workspaces", json={"name": "p"})
            assert (await http.post(f"{W}/exec", json=body, headers=key)).status_code == 200
        for name in list(store.repository.objects.list("server/answers/")):
            store.repository.objects.delete(name)  # as if the server had ended before it could keep the answer
        async with serving(store) as (http, _):
            refused = await http.post(f"{W}/exec", json=body, headers=key)
            assert refused.json()["code"] == "outcome_unknown" and refused.status_code == 409
            assert (await http.get(f"{W}/file?path=/n")).content == b"x\n"
            assert (await http.post(f"{W}/exec", json=body, headers={"idempotency-key": "two"})).status_code == 200

    run(test)


def test_answers_expire(tmp_path: Path) -> None:
    async def test() -> None:
        store, body = Store(str(tmp_path)), {"command": "echo x >> /n; cat /n"}
        async with serving(store) as (http, app):
            await http.post("/v1/workspaces", json={"name": "p"})
            now = time.time()
            app.api.keys._clock = lambda: now - 3 * 86_400
            await http.post(f"{W}/exec", json=body, headers={"idempotency-key": "old"})
            assert len(list(store.repository.objects.list("server/answers/"))) == 1
            app.api.keys._clock = lambda: now
            await http.post(f"{W}/exec", json=body, headers={"idempotency-key": "new"})
            (left,) = store.repository.objects.list("server/answers/")
            assert left.split("/")[2] == str(int(now // 86_400))

    run(test)


def test_a_file_of_a_revision_says_how_long_it_is(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(Store(str(tmp_path))) as (http, _):
            await http.post("/v1/workspaces", json={"name": "p"})
            await http.put(f"{W}/file?path=/f", content=b"x" * 300_000)
            await http.put(f"{W}/file?path=/f", content=b"short")
            where = f"{W}/file?path=/f&revision=1"
            head = await http.head(where)
            assert (head.status_code, head.headers["content-length"], head.content) == (200, "300000", b"")
            whole = await http.get(where)
            assert whole.content == b"x" * 300_000 and whole.headers["etag"] == head.headers["etag"]
            assert (await http.get(where, headers={"if-none-match": head.headers["etag"]})).status_code == 304
            assert (await http.head(f"{W}/file?path=/f&revision=head")).headers["content-length"] == "5"
            assert (await http.head(f"{W}/file?path=/none&revision=1")).status_code == 404
            assert (await http.get(f"{W}/file?path=/&revision=1")).status_code == 404
            for asked, size, said in (("5-9", 5, "5-9"), ("-3", 3, "299997-299999"), ("299999-", 1, "299999-299999")):
                part = await http.get(where, headers={"range": f"bytes={asked}"})
                assert (part.status_code, part.content) == (206, b"x" * size)
                assert part.headers["content-range"] == f"bytes {said}/300000"
            beyond = await http.get(where, headers={"range": "bytes=300000-"})
            assert beyond.status_code == 416 and beyond.headers["content-range"] == "bytes */300000"

    run(test)


def test_commands_on_a_revision(tmp_path: Path) -> None:
    async def test() -> None:
        (tmp_path / "disk").mkdir()
        store, disk = Store(str(tmp_path / "store")), DiskResource(str(tmp_path / "disk"), create=True)
        async with serving(store, mounts={"p": {"/data": disk}}) as (http, _):
            await http.post("/v1/workspaces", json={"name": "p"})
            for text in ("one", "two"):
                await http.post(f"{W}/exec", json={"command": f"echo {text} > /f; echo {text} > /data/f"})
            body = {"command": "cat /f /data/f; rm /f /data/f", "revision": "1"}
            for _ in range(2):
                done = await http.post(f"{W}/exec", json=body)
                assert (done.status_code, done.json()["stdout"]) == (200, "one\none\n"), "the past, each time"
            streamed = await http.post(f"{W}/exec", json={**body, "stream": True})
            assert streamed.text.count("one") == 2 and '"exit_code":0' in streamed.text
            assert (tmp_path / "disk" / "f").read_text() == "two\n", "the present is not reached"
            assert (await http.get(f"{W}/file?path=/f")).text == "two\n"
            listed = (await http.get(f"{W}/dir?path=/data&revision=1")).json()["entries"]
            assert [(entry["path"], entry["size"], entry["etag"]) for entry in listed] == [("/data/f", 4, None)]
            assert (await http.post(f"{W}/exec", json={**body, "detach": True})).json()["code"] == "unsupported"
            assert (await http.post(f"{W}/exec", json={**body, "revision": "9"})).status_code == 404
            assert (await http.get(f"{W}/stat?path=/f&revision=none")).status_code == 404
            assert len((await http.get(f"{W}/log")).json()["revisions"]) == 2, "nothing was committed"

    run(test)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_pushed_branches_become_workspaces_of_their_name(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    words = ["serve", "--store", str(tmp_path / "store"), "--port", "0", "--token-file", str(token)]
    process, port = started(*words, "--rendezvous", str(tmp_path / "git"))

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        quiet = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0"}
        who = {
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@b",
        }
        return subprocess.run(
            ["git", *arguments], cwd=tmp_path / "work", env={"PATH": "/usr/bin:/bin", **quiet, **who},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    try:
        (tmp_path / "work").mkdir()
        git("init", "--quiet", "-b", "main")
        git("commit", "--quiet", "--allow-empty", "-m", "first")
        refused = git("push", f"http://x:wrong@127.0.0.1:{port}/git/proj.git", "main")
        assert refused.returncode != 0
        pushed = git("push", f"http://x:{TOKEN}@127.0.0.1:{port}/git/proj.git", "main")
        assert pushed.returncode == 0, pushed.stderr
        assert (tmp_path / "git" / "proj.git" / "refs" / "heads" / "main").exists()
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=200) as http:
            assert http.get("/git/proj.git/info/refs").status_code == 401
            assert http.get("/git/proj.git/info/refs", headers={"host": "evil"}).status_code == 421
            given = {"authorization": f"Bearer {TOKEN}"}
            assert http.get("/v1/workspaces", headers=given).status_code == 200
    finally:
        ended(process)
