"""Attempts pushed by sandboxes to a real git server: merged by plain git, and the token nowhere to be found."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.cmdlines import command_lines

from ramet import AgentRun, RametError
from ramet.apps.git_server import rendezvous
from ramet.workspace.stored.git_push import GitSettings, pending_pushes

uvicorn = pytest.importorskip("uvicorn")
if shutil.which("git") is None:
    pytest.skip("git is not installed", allow_module_level=True)

TOKEN = "t0k3n-hunter2/+%"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    config = uvicorn.Config(rendezvous(str(tmp_path / "repos"), TOKEN), port=0, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def git(*words: str, cwd: Path) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd), "GIT_CONFIG_NOSYSTEM": "1"}
    names = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *names, *words], cwd=cwd, env=env, check=True, capture_output=True, text=True).stdout


def settings(url: str) -> GitSettings:
    return GitSettings(("/workspace/repo",), {"rendezvous": f"{url}/proj.git"}, credentials_secret=("creds", "token"))


def test_two_attempts_are_pushed_and_merged_by_plain_git(url: str, tmp_path: Path) -> None:
    run = AgentRun(store=str(tmp_path / "store"))
    run.create_workspace("base")
    secrets = {"creds": {"token": TOKEN}}
    output = [{"git": {"remote": "rendezvous", "branch": "attempt/{{.name}}"}}]
    first = run.sandbox(workspace="base", name="main", git=settings(url), git_secrets=secrets)
    first.exec(
        "mkdir repo; cd repo; printf '1\\n2\\n3\\n4\\n5\\n' > f; echo '#!/bin/sh' > run; chmod +x run; ln -s f link"
    )
    first.terminate(outputs=output)
    for name, change in (("one", "sed -i s/1/one/ repo/f"), ("two", "sed -i s/5/five/ repo/f")):
        run.workspace("base").fork(None, name)
        sandbox = run.sandbox(workspace=name, name="main", git=settings(url), git_secrets=secrets)
        sandbox.exec(change)
        sandbox.terminate(outputs=[{"git": {"remote": "rendezvous", "branch": f"attempt/{name}"}}])
        assert sandbox.pushed[0].branch == f"attempt/{name}"
    bare = tmp_path / "repos" / "proj.git"
    clone = tmp_path / "clone"
    git("clone", "-q", "-b", "attempt/main", str(bare), str(clone), cwd=tmp_path)
    assert git("ls-files", "-s", cwd=clone).splitlines()[1].startswith("120000") and os.access(clone / "run", os.X_OK)
    git("merge", "-q", "origin/attempt/one", cwd=clone)
    git("merge", "-q", "-m", "both", "origin/attempt/two", cwd=clone)
    assert (clone / "f").read_text() == "one\n2\n3\n4\nfive\n"
    again = run.sandbox(workspace="base", name="main", git=settings(url), git_secrets=secrets)
    again.exec("echo more > repo/new")
    again.terminate(outputs=output)
    log = git("log", "--format=%H %P", "attempt/main", cwd=bare).splitlines()
    assert len(log) == 2 and log[0].split()[1] == log[1].split()[0], "a push follows the last one of its branch"
    assert pending_pushes(run.store.repository) == []


def test_a_failed_push_is_reported_kept_and_tried_again_without_the_token_anywhere(url: str, tmp_path: Path) -> None:
    run = AgentRun(store=str(tmp_path / "store"))
    ws = run.create_workspace("p")
    wrong = run.sandbox(workspace="p", git=settings(url), git_secrets={"creds": {"token": TOKEN + "x"}})
    wrong.exec("mkdir repo; echo 1 > repo/f")
    with pytest.raises(RametError) as raised:
        wrong.terminate(outputs=[{"git": {"remote": "rendezvous"}}])
    assert raised.value.code == "invalid_git_credentials" and raised.value.cause == "the remote refuses the credentials"
    assert TOKEN not in repr(raised.value.as_dict())
    assert len(ws.log()) == 1 and len(pending_pushes(run.store.repository)) == 1
    with pytest.raises(RametError, match="'creds' has no key 'token'"):
        wrong._options = replace(wrong._options, git_secrets={})
        wrong.retry_pushes()
    wrong._options = replace(wrong._options, git_secrets={"creds": {"token": TOKEN}})
    assert wrong.retry_pushes()[0].branch == f"attempt/{wrong.name}" and pending_pushes(run.store.repository) == []
    for path in (tmp_path / "store").rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes()


def test_the_token_is_on_no_command_line(url: str, tmp_path: Path) -> None:
    run = AgentRun(store=str(tmp_path / "store"))
    run.create_workspace("p")
    sandbox = run.sandbox(workspace="p", git=settings(url), git_secrets={"creds": {"token": TOKEN}})
    sandbox.exec("mkdir repo; seq 100000 > repo/f")
    with command_lines() as seen:
        sandbox.terminate(outputs=[{"git": {"remote": "rendezvous"}}])
    assert any(b"push" in line for line in seen), "the push was looked at"
    assert not any(b"t0k3n-hunter2" in line for line in seen)


@pytest.mark.parametrize("header", [None, "Basic !!!", "Basic eDp3cm9uZw==", "Bearer t0k3n-hunter2/+%"])
def test_requests_without_the_token_are_refused(url: str, header: str | None, tmp_path: Path) -> None:
    for path in ("/proj.git/info/refs?service=git-receive-pack", "/../x", "/proj.git/HEAD"):
        request = urllib.request.Request(url + path, headers={} if header is None else {"Authorization": header})
        with pytest.raises(urllib.error.HTTPError) as raised:
            urllib.request.urlopen(request, timeout=200)
        assert raised.value.code == 401
        raised.value.close()
    assert not list((tmp_path / "repos").iterdir())


def test_outputs_that_cannot_be_are_refused_before_anything_ends(tmp_path: Path) -> None:
    run = AgentRun(store=str(tmp_path / "store"))
    run.create_workspace("p")
    with run.sandbox(workspace="p") as sandbox:
        for output in ({"remote": "x", "branch": "a b"}, {"branch": "x"}, {"remote": "https://u:p@h/x"}):
            with pytest.raises(RametError) as raised:
                sandbox.terminate(outputs=[{"git": output}])
            assert raised.value.code in ("invalid_output", "invalid_git_credentials") and sandbox.phase == "Ready"
        assert run.workspace("p").log() == []
        sandbox.terminate(outputs=[{"git": {"remote": "rendezvous"}}])
        assert "nothing to push" in sandbox.warnings[0]


def ask(url: str, path: str, method: str = "GET", body: bytes = b"") -> int:
    """Send a request whose path is exactly this; return its status."""
    host = url.removeprefix("http://")
    token = base64.b64encode(f"x:{TOKEN}".encode()).decode()
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Basic {token}\r\nConnection: close\r\n"
    with socket.create_connection(tuple(host.split(":")), timeout=200) as made:  # type: ignore[arg-type]
        made.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return int(made.makefile("rb").readline().split()[1])


REPOSITORIES = (
    "..", "../x", "..%2fx", "%2e%2e/x", "a/../../x", "a%2f..%2f..%2fx", ".hidden", "-oProxyCommand=x",
    "--upload-pack=x", "a%00b", "a%0ab", "a b", "x/y", "", ".", "~root", "%2fetc", "a" * 101,
)  # fmt: skip


@pytest.mark.parametrize("name", REPOSITORIES)
def test_no_name_of_a_repository_leads_out_of_its_folder(url: str, name: str, tmp_path: Path) -> None:
    for rest in ("info/refs?service=git-receive-pack", "git-receive-pack", "HEAD", "config", "objects/info/packs"):
        for method in ("GET", "POST"):
            assert ask(url, f"/{name}.git/{rest}".replace(" ", "%20"), method) in (400, 404), (name, rest)
    assert {path.name for path in tmp_path.iterdir()} == {"repos"} and not list((tmp_path / "repos").iterdir())


def test_refs_with_odd_names_are_refused_and_files_of_a_repository_are_not_served(url: str, tmp_path: Path) -> None:
    assert ask(url, "/proj.git/info/refs?service=git-receive-pack") == 200
    for path in ("config", "hooks/post-receive", "description", "objects/info/alternates", "HEAD/../config"):
        assert ask(url, f"/proj.git/{path}") == 404
        assert ask(url, f"/proj.git/{path}", "PUT", b"x") == 404
    zeros, some = "0" * 40, "1" * 40
    for ref in ("refs/heads/../../config", "refs/heads/x.lock", "../config", "HEAD", "refs/heads/-x y", "refs/a\x01"):
        line = f"{zeros} {some} {ref}\0report-status".encode()
        ask(url, "/proj.git/git-receive-pack", "POST", b"%04x%b0000" % (len(line) + 4, line))
    repository = tmp_path / "repos" / "proj.git"
    assert not [path for path in (repository / "refs").rglob("*") if path.is_file()]
    assert "report-status" not in (repository / "config").read_text()
    assert git("--git-dir", str(repository), "fsck", cwd=tmp_path) == ""
