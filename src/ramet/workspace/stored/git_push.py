"""Push revisions to a git remote, one branch per attempt, from a durable outbox.

- A push is recorded in the store just before the head moves to its revision, and deleted when it succeeded: a failure
  is reported and retried, a crash loses nothing. A push whose revision never became a head is ignored.
- The token reaches git only through a private file in a temporary home directory. It is never on a command line, and is
  removed from git's output.
- Equal content gives an equal commit. Its parent is the last push of that branch; for a new branch, the push of the
  revision that the attempt is based on, so that `git merge` of two attempts finds their common ancestor.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlsplit, urlunsplit

from ramet.core.errors import RametError
from ramet.core.paths import parse
from ramet.core.resource import REDACTED
from ramet.store.checkout.whole_tree import mounts_without_content
from ramet.store.model.graph import newest_first
from ramet.store.model.ids import RevisionId
from ramet.store.model.revisions import Revision
from ramet.store.repository import Repository
from ramet.store.verbs.git_export import GitExport, single_commit
from ramet.workspace.stored.export import feed_git

SPACE: Final = "pushes"
"""Key prefix of pending pushes."""
DEFAULT_BRANCH: Final = "attempt/{{.name}}"
Secrets = Mapping[str, Mapping[str, str]]
"""Secrets by name and key."""


@dataclass(frozen=True)
class GitSettings:
    """Paths to push, remotes by name, and the secret for them (by name and key only)."""

    paths: tuple[str, ...] = ()
    remotes: Mapping[str, str] = field(default_factory=dict)
    credentials_username: str = "x-access-token"
    credentials_secret: tuple[str, str] | None = None


@dataclass(frozen=True)
class Push:
    """A pending push. It contains no secrets."""

    workspace: str
    revision: str
    remote: str
    branch: str
    paths: tuple[str, ...]
    username: str
    secret: tuple[str, str] | None

    @property
    def key(self) -> str:
        return f"{SPACE}/{self.workspace}/{self.revision}-{re.sub('[^A-Za-z0-9._-]', '_', self.branch)}"


@dataclass(frozen=True)
class Pushed:
    """A finished push. `left_out` names mounts without content and paths that git cannot store; `withheld`, credentials
    that the revision does not have."""

    branch: str
    remote: str
    commit: str
    left_out: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()


def plan_push(output: Mapping[str, Any], settings: GitSettings, workspace: str, revision: Revision, name: str) -> Push:
    """Plan the push of a `{git: ...}` output for a revision."""
    url, branch = push_target(output, settings, name)
    return Push(
        workspace, revision.id.hex(), url, branch, tuple(str(parse(path)) for path in settings.paths),
        settings.credentials_username, settings.credentials_secret,
    )  # fmt: skip


def push_target(output: Mapping[str, Any], settings: GitSettings, name: str) -> tuple[str, str]:
    """Return the URL and the branch of a git output; raises `invalid_output` or `invalid_git_credentials`."""
    remote, template = output.get("remote"), output.get("branch", DEFAULT_BRANCH)
    if not isinstance(remote, str) or not isinstance(template, str) or set(output) - {"remote", "branch"}:
        raise RametError(
            "invalid_output", "a git output needs a remote and may have a branch", 'give {"remote": "..."}'
        )
    url = settings.remotes.get(remote, remote)
    branch = re.sub(r"\{\{\s*\.name\s*\}\}", name, template)
    bad = re.search(r"[\s~^:?*\[\\\x00-\x1f\x7f]|\.\.|@\{|//|^[-/.]|[/.]$|\.lock$|\{\{", branch)
    if bad or not branch:
        raise RametError("invalid_output", f"{branch!r} cannot name a branch", "use letters, digits, dashes, slashes")
    parts = urlsplit(url)
    if url.startswith("-") or (parts.hostname or "").startswith("-") or _NO_REMOTE.search(url):
        raise RametError("invalid_output", f"{url!r} cannot be a remote", "use a path or a URL of http, https or ssh")
    if parts.username or parts.password:
        raise RametError(
            "invalid_git_credentials", "a remote's URL must not carry credentials", "name a secret instead"
        )
    if settings.credentials_secret is not None and parts.scheme not in ("http", "https"):
        raise RametError(
            "invalid_git_credentials", "credentials need an http or https remote", "use such a remote, or none"
        )
    return url, branch


_NO_REMOTE: Final = re.compile(r"^[A-Za-z0-9+.-]+::|^\s|\s$|[\x00-\x1f\x7f]")
"""Helpers that run programs (`ext::`), and characters that no remote has; git takes a leading dash for an option."""


def record_push(repository: Repository, push: Push) -> None:
    """Record a push, before its revision is the head."""
    repository.objects.put(push.key, json.dumps(asdict(push), sort_keys=True).encode())


def pending_pushes(repository: Repository, workspace: str | None = None) -> list[Push]:
    """List pushes that are not done."""
    found: list[Push] = []
    for key in repository.objects.list(f"{SPACE}/" + ("" if workspace is None else f"{workspace}/")):
        plain = json.loads(repository.objects.get(key))
        secret = plain["secret"]
        if not repository.committed(plain["workspace"], RevisionId(bytes.fromhex(plain["revision"]))):
            continue
        found.append(Push(**{**plain, "paths": tuple(plain["paths"]), "secret": tuple(secret) if secret else None}))
    return found


def run_push(repository: Repository, push: Push, secrets: Secrets) -> Pushed:
    """Push, and delete the record. On failure the record stays, and the error omits the token."""
    git = shutil.which("git")
    if git is None:
        raise RametError("unsupported", "git is not installed", "install it; the push is kept and can be tried again")
    token = _token(push, secrets)
    repository.check_access(push.workspace)
    revision = repository.read_revision(RevisionId(bytes.fromhex(push.revision)), expired=True)
    with tempfile.TemporaryDirectory(prefix="ramet-push-") as home:
        env = {
            "PATH": os.environ.get("PATH", ""), "HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C",
            "GIT_CONFIG_GLOBAL": f"{home}/.gitconfig", "GIT_TEMPLATE_DIR": "", "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
        }  # fmt: skip
        _configure(home, push, token)
        work = f"{home}/work.git"
        _run(env, token, git, "init", "--quiet", "--bare", work)
        parent = _last_push(env, token, git, work, push) or _origin(repository, revision, env, git, work, push)
        alone = len(push.paths) == 1
        roots = {path: "" if alone or path == "/" else f"/{path.rpartition('/')[2]}" for path in push.paths}
        done = GitExport(push.branch)
        feed_git(env, git, work, single_commit(repository, revision, roots, push.branch, parent, done))
        commit = _run(env, token, git, "-C", work, "rev-parse", f"refs/heads/{push.branch}")
        if parent is None or not _same_tree(env, git, work, parent, commit):
            _run(env, token, git, "-C", work, "push", "--quiet", push.remote, f"refs/heads/{push.branch}")
        else:
            commit = parent  # nothing changed since the last push
    repository.objects.put(_done_key(push.revision, push.remote), f"{push.branch}\n{commit}".encode())
    repository.objects.delete(push.key)
    return Pushed(push.branch, push.remote, commit, _left_out(push, revision, done), _below(push, revision.withheld))


def _left_out(push: Push, revision: Revision, done: GitExport) -> tuple[str, ...]:
    remote = _below(push, mounts_without_content(revision))
    return (*remote, *(text.removeprefix(f"{revision.name}:") for text in done.left_out))


def _below(push: Push, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that this push covers."""
    return tuple(path for path in paths if any(f"{path}/".startswith(f"{top.rstrip('/')}/") for top in push.paths))


def _token(push: Push, secrets: Secrets) -> str | None:
    if push.secret is None:
        return None
    name, key = push.secret
    token = secrets.get(name, {}).get(key)
    if not token:
        raise RametError(
            "invalid_git_credentials", f"the secret {name!r} has no key {key!r}, or it is empty",
            "give it; the push is kept and can be tried again",
        )  # fmt: skip
    return token


def _configure(home: str, push: Push, token: str | None) -> None:
    settings = "[safe]\n\tdirectory = *\n[credential]\n\thelper =\n"
    if token is not None:
        parts = urlsplit(push.remote)
        place = f"{quote(push.username, safe='')}:{quote(token, safe='')}@{parts.netloc}"
        fd = os.open(f"{home}/.git-credentials", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(urlunsplit((parts.scheme, place, "", "", "")) + "\n")
        settings += f"\thelper = store --file={home}/.git-credentials\n"
    with open(f"{home}/.gitconfig", "w") as file:
        file.write(settings)


def _last_push(env: dict[str, str], token: str | None, git: str, work: str, push: Push) -> str | None:
    """Fetch the commit of the remote branch; None when the branch or the repository does not exist."""
    words = [git, "-C", work, "ls-remote", push.remote, f"refs/heads/{push.branch}"]
    listed = subprocess.run(words, env=env, capture_output=True, check=False)
    found = listed.stdout.split()
    if not found:
        return None
    _run(env, token, git, "-C", work, "fetch", "--quiet", push.remote, f"refs/heads/{push.branch}")
    return str(found[0].decode())


def _origin(
    repository: Repository, revision: Revision, env: dict[str, str], git: str, work: str, push: Push
) -> str | None:
    """Fetch the commit of the nearest ancestor that was pushed to the same remote."""
    for earlier in newest_first(repository.ancestors(revision).values()):
        try:
            branch, commit = repository.objects.get(_done_key(earlier.id.hex(), push.remote)).decode().split("\n")
        except KeyError:
            continue
        words = [git, "-C", work, "fetch", "--quiet", push.remote, f"refs/heads/{branch}"]
        subprocess.run(words, env=env, capture_output=True, check=False)
        there = [git, "-C", work, "cat-file", "-e", f"{commit}^{{commit}}"]
        if subprocess.run(there, env=env, capture_output=True, check=False).returncode == 0:
            return commit
    return None


def _done_key(revision: str, remote: str) -> str:
    return f"pushed/{revision}/{hashlib.sha256(remote.encode()).hexdigest()[:16]}"


def _same_tree(env: dict[str, str], git: str, work: str, one: str, other: str) -> bool:
    words = [git, "-C", work, "diff", "--quiet", one, other]
    return subprocess.run(words, env=env, capture_output=True, check=False).returncode == 0


def _run(env: dict[str, str], token: str | None, *words: str) -> str:
    done = subprocess.run(words, env=env, capture_output=True, check=False)
    if done.returncode:
        said = _scrub(done.stderr.decode("utf-8", "replace").strip(), token)
        if any(sign in said for sign in REFUSED):  # git without a terminal only says that it could not prompt
            asked = "the remote wants credentials" if token is None else "the remote refuses the credentials"
            remedy = "name a secret that opens it; the push is kept and can be tried again"
            raise RametError("invalid_git_credentials", asked, remedy, {"git": said})
        raise RametError(
            "unavailable", f"git {words[3] if words[1] == '-C' else words[1]} failed: {said}",
            "check that the remote is reachable; the push is kept and can be tried again",
        )  # fmt: skip
    return done.stdout.decode().strip()


REFUSED: Final = ("could not read Username", "could not read Password", "Authentication failed", "error: 403")
"""Messages of git about refused credentials."""


def _scrub(text: str, token: str | None) -> str:
    for form in () if token is None else (token, quote(token, safe="")):
        text = text.replace(form, REDACTED)
    return re.sub(r"//[^/@\s]+@", "//", text)[-500:]
