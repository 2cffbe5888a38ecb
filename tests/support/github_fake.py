"""GitHub for the tests: a repository in memory behind the routes that its mounts use."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import tarfile
from typing import Any

from tests.support.descriptions import openapi
from tests.support.service_fake import SIGNED, Call, Fake, Reply

from ramet.backends.services.github.git_archive import blob_id

TOKEN = "ghp_hunter2hunter2"
WHEN = "2026-05-01T10:00:00Z"
Files = dict[str, tuple[str, bytes]]
"""Mode and content by path."""


class GitHubFake(Fake):
    def __init__(self) -> None:
        self.api = openapi("github")
        super().__init__(self.api, etags=True)
        self.blobs: dict[str, bytes] = {}
        self.trees: dict[str, Files] = {}
        self.commits: dict[str, tuple[str, str]] = {}
        """Tree and message by id."""
        self.head = ""
        self.parents: dict[str, str] = {}
        self.attributes: set[str] = set()
        """Paths that the tarball leaves out, as `export-ignore` does."""
        self.issues: dict[int, dict[str, Any]] = {}
        self.comments: dict[int, list[Any]] = {}
        self.releases: list[Any] = []
        self.runs: list[Any] = []
        self.jobs: dict[int, list[Any]] = {}
        self.logs: dict[int, bytes] = {}
        self.artifacts: dict[int, list[Any]] = {}
        self.truncated = False
        self.put({"README.md": b"# Hello\n", "src/main.py": b"print('hi')  # TODO\n", "src/data.bin": b"\0\xff\x01"})
        for method, pattern, handler in (
            ("GET", "", lambda call: Reply(200, self.sample("full-repository", default_branch="main"))),
            ("GET", "/commits", lambda call: self.paged(call, [self.commit(sha) for sha in reversed(self.commits)])),
            ("GET", "/commits/{sha}/check-runs", self._checks),
            ("GET", "/commits/{ref+}", self._commit),
            (
                "GET",
                "/branches",
                lambda call: self.paged(
                    call,
                    [
                        self.sample(
                            "short-branch",
                            name="main",
                            protected=False,
                            commit={"sha": self.head, "url": "https://x.org"},
                        )
                    ],
                ),
            ),
            ("GET", "/git/trees/{sha}", self._tree),
            ("GET", "/git/blobs/{sha}", self._blob),
            (
                "GET",
                "/tarball/{sha}",
                lambda call, sha: Reply(302, None, {"Location": f"{self.signed}/signed/{sha}.tgz"}),
            ),
            ("PUT", "/contents/{path+}", self._put),
            ("DELETE", "/contents/{path+}", self._delete),
            ("POST", "/git/blobs", self._new_blob),
            ("POST", "/git/trees", self._new_tree),
            ("POST", "/git/commits", self._new_commit),
            ("PATCH", "/git/refs/heads/{branch+}", self._move),
            (
                "GET",
                "/issues",
                lambda call: self.paged(call, [self.issue(n) for n in sorted(self.issues, reverse=True)]),
            ),
            ("POST", "/issues", self._new_issue),
            ("GET", "/issues/{number}", self._issue),
            ("PATCH", "/issues/{number}", self._edit),
            (
                "GET",
                "/issues/{number}/comments",
                lambda call, number: self.paged(call, self.comments.get(int(number), [])),
            ),
            ("POST", "/issues/{number}/comments", self._new_comment),
            ("GET", "/milestones", lambda call: self.paged(call, [self.sample("milestone", number=3, title="v1")])),
            (
                "GET",
                "/pulls",
                lambda call: self.paged(
                    call,
                    [self.pull(n, "pull-request-simple") for n in sorted(self.issues, reverse=True) if self.is_pull(n)],
                ),
            ),
            ("GET", "/pulls/{number}", self._pull),
            (
                "GET",
                "/pulls/{number}/files",
                lambda call, number: self.paged(call, [self.sample("diff-entry", filename="a.txt", status="added")]),
            ),
            ("GET", "/pulls/{number}/commits", lambda call, number: self.paged(call, [self.commit(self.head)])),
            (
                "GET",
                "/pulls/{number}/reviews",
                lambda call, number: self.paged(
                    call, [self.sample("pull-request-review", id=5, body="ok", state="APPROVED")]
                ),
            ),
            (
                "GET",
                "/pulls/{number}/comments",
                lambda call, number: self.paged(call, [self.sample("pull-request-review-comment", id=6, body="nit")]),
            ),
            ("GET", "/releases", lambda call: self.paged(call, self.releases)),
            ("GET", "/releases/{id}", self._release),
            (
                "GET",
                "/releases/assets/{id}",
                lambda call, id: Reply(302, None, {"Location": f"{self.signed}/signed/asset"}),
            ),
            (
                "GET",
                "/actions/workflows",
                lambda call: self._counted(call, "workflows", [self.sample("workflow", id=3)]),
            ),
            ("GET", "/actions/runs", lambda call: self._counted(call, "workflow_runs", self.runs)),
            (
                "GET",
                "/actions/runs/{id}",
                lambda call, id: self._found([one for one in self.runs if one["id"] == int(id)]),
            ),
            (
                "GET",
                "/actions/runs/{id}/jobs",
                lambda call, id: self._counted(call, "jobs", self.jobs.get(int(id), [])),
            ),
            (
                "GET",
                "/actions/runs/{id}/artifacts",
                lambda call, id: self._counted(call, "artifacts", self.artifacts.get(int(id), [])),
            ),
            (
                "GET",
                "/actions/jobs/{id}/logs",
                lambda call, id: (
                    Reply(302, None, {"Location": f"{self.signed}/signed/log/{id}"})
                    if int(id) in self.logs
                    else _missing()
                ),
            ),
            (
                "GET",
                "/actions/artifacts/{id}/zip",
                lambda call, id: (
                    Reply(302, None, {"Location": f"{self.signed}/signed/zip"})
                    if id != "9"
                    else Reply(410, {"message": "Artifact has expired"})
                ),
            ),
            ("POST", "/actions/runs/{id}/rerun-failed-jobs", lambda call, id: Reply(201, {})),
            (
                "GET",
                "/check-runs/{id}/annotations",
                lambda call, id: self.paged(
                    call, [self.sample("check-annotation", path="a.py", start_line=3, message=f"job {id}")]
                ),
            ),
        ):
            self.route(method, "/repos/octocat/hello" + pattern, handler)
        self.route("GET", "/search/issues", self._search)
        self.route("GET", "/signed/{sha}.tgz", self._tarball)
        self.route("GET", "/signed/asset", lambda call: Reply(200, b"asset"))
        self.route("GET", "/signed/log/{id}", lambda call, id: Reply(200, self.logs[int(id)]))
        self.route("GET", "/signed/zip", lambda call: Reply(200, b"PK\x05\x06" + bytes(18)))

    def _handle(self, call: Call) -> Reply:
        if call.host == SIGNED:
            assert "authorization" not in call.headers, "a signed link got the token"
        elif call.headers.get("authorization") != f"Bearer {TOKEN}":
            said = f"Bad credentials {call.headers.get('authorization', '')}"
            return Reply(401, {"message": said, "documentation_url": "https://x.org"})
        return super()._handle(call)

    def unknown(self, call: Call) -> Reply:
        return _missing()

    def sample(self, schema: str, /, **given: Any) -> Any:
        return given if self.api is None else self.api.sample(schema, **given)

    def user(self, login: str = "octocat") -> Any:
        return self.sample("simple-user", login=login)

    def _found(self, entries: list[Any]) -> Reply:
        return Reply(200, entries[0]) if entries else _missing()

    def _counted(self, call: Call, name: str, entries: list[Any]) -> Reply:
        page = self.paged(call, entries)
        page.body = {"total_count": len(entries), name: page.body}
        return page

    # --------------------------------------------------------------------------------------------------- git

    def put(self, files: dict[str, bytes | None], message: str = "change", modes: dict[str, str] | None = None) -> None:
        """Commit to the branch, as another user of the repository would."""
        tree = dict(self.trees[self.commits[self.head][0]]) if self.head else {}
        for path, content in files.items():
            tree.pop(path, None)
            if content is not None:
                tree[path] = ((modes or {}).get(path, "100644"), content)
        self.head = self._committed(self._stored(tree), message)

    def files(self) -> dict[str, bytes]:
        return {path: content for path, (_, content) in self.trees[self.commits[self.head][0]].items()}

    def _stored(self, tree: Files) -> str:
        for _, content in tree.values():
            self.blobs[blob_id(content)] = content
        sha = hashlib.sha1(repr(sorted(tree.items())).encode()).hexdigest()
        self.trees[sha] = tree
        return sha

    def _committed(self, tree: str, message: str) -> str:
        sha = hashlib.sha1(f"{tree}{message}{len(self.commits)}".encode()).hexdigest()
        self.commits[sha] = tree, message
        return sha

    def commit(self, sha: str) -> Any:
        return self.sample("commit", sha=sha)

    def _commit(self, call: Call, ref: str) -> Reply:
        if ref not in ("HEAD", "main", self.head):
            return Reply(422, {"message": f"No commit found for SHA: {ref}"}) if ref != "none" else _missing()
        if call.headers["accept"] == "application/vnd.github.sha":
            return Reply(200, self.head.encode())
        return Reply(200, self.commit(self.head))

    def _tree(self, call: Call, sha: str) -> Reply:
        files = self.trees[self.commits[sha][0] if sha in self.commits else sha]
        entries: dict[str, Any] = {}
        whole = "recursive" in call.query
        for path, (mode, content) in files.items():
            parts = path.split("/")
            for depth in range(1, len(parts) if whole else min(2, len(parts))):
                above = "/".join(parts[:depth])
                if above in entries:
                    continue
                below = self._stored({p[len(above) + 1 :]: f for p, f in files.items() if p.startswith(above + "/")})
                entries[above] = {"path": above, "mode": "040000", "type": "tree", "sha": below, "url": "https://x.org"}
            if whole or len(parts) == 1:
                entries[path] = {
                    "path": path, "mode": mode, "type": "blob", "sha": blob_id(content), "size": len(content),
                    "url": "https://x.org",
                }  # fmt: skip
        listed = list(entries.values())
        cut = self.truncated and whole
        return Reply(200, {"sha": sha, "url": "https://x.org", "tree": listed[:1] if cut else listed, "truncated": cut})

    def _blob(self, call: Call, sha: str) -> Reply:
        assert call.headers["accept"] == "application/vnd.github.raw+json"
        return Reply(200, self.blobs[sha]) if sha in self.blobs else _missing()

    def _tarball(self, call: Call, sha: str) -> Reply:
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w:gz", compresslevel=1) as tar:
            for path, (mode, content) in self.trees[self.commits[sha][0]].items():
                if mode != "120000" and path not in self.attributes:
                    info = tarfile.TarInfo(f"octocat-hello-{sha[:7]}/{path}")
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
        return Reply(200, made.getvalue())

    def _put(self, call: Call, path: str) -> Reply:
        old, given = self.files().get(path), call.json.get("sha")
        if old is not None and given is None:
            return Reply(422, {"message": 'Invalid request.\n\n"sha" wasn\'t supplied.'})
        if given is not None and (old is None or blob_id(old) != given):
            return Reply(409, {"message": f"{path} does not match {given}"})
        assert call.json["branch"] == "main"
        content = base64.b64decode(call.json["content"])
        self.put({path: content}, call.json["message"])
        return Reply(201 if old is None else 200, self._file_commit(path, content))

    def _file_commit(self, path: str, content: bytes | None) -> Any:
        made = None if content is None else {"path": path, "sha": blob_id(content), "size": len(content)}
        return {"content": made, "commit": {"sha": self.head}}

    def _delete(self, call: Call, path: str) -> Reply:
        old = self.files().get(path)
        if old is None or blob_id(old) != call.json["sha"]:
            return Reply(409, {"message": f"{path} does not match"})
        self.put({path: None}, call.json["message"])
        return Reply(200, self._file_commit(path, None))

    def _new_blob(self, call: Call) -> Reply:
        content = base64.b64decode(call.json["content"])
        self.blobs[blob_id(content)] = content
        return Reply(201, {"url": "https://x.org", "sha": blob_id(content)})

    def _new_tree(self, call: Call) -> Reply:
        tree = dict(self.trees[self.commits[call.json["base_tree"]][0]])
        for node in call.json["tree"]:
            if "content" in node:
                tree[node["path"]] = (node["mode"], node["content"].encode())
            elif node["sha"] is None:
                del tree[node["path"]]
            else:
                tree[node["path"]] = (node["mode"], self.blobs[node["sha"]])
        return Reply(201, self.sample("git-tree", sha=self._stored(tree), truncated=False, tree=[]))

    def _new_commit(self, call: Call) -> Reply:
        sha = self._committed(call.json["tree"], call.json["message"])
        self.parents[sha] = call.json["parents"][0]
        return Reply(201, self.sample("git-commit", sha=sha))

    def _move(self, call: Call, branch: str) -> Reply:
        sha = call.json["sha"]
        if self.parents[sha] != self.head and sha != self.head:
            return Reply(422, {"message": "Update is not a fast forward"})
        self.head = sha
        target = {"type": "commit", "sha": sha, "url": "https://x.org"}
        return Reply(200, self.sample("git-ref", ref=f"refs/heads/{branch}", object=target))

    # ------------------------------------------------------------------------------------------------ issues

    def add(self, title: str, body: str | None = "text", *, pull: bool = False, **given: Any) -> int:
        number = len(self.issues) + 1
        self.issues[number] = {
            "title": title, "body": body, "state": "open", "labels": [], "assignees": [], "milestone": None,
            "updated_at": WHEN, "pull": pull, **given,
        }  # fmt: skip
        return number

    def is_pull(self, number: int) -> bool:
        return bool(self.issues[number]["pull"])

    def _shared(self, number: int) -> dict[str, Any]:
        found = dict(self.issues[number])
        del found["pull"]
        found["labels"] = [self.sample("label", name=name) for name in found["labels"]]
        found["assignees"] = [self.user(login) for login in found["assignees"]]
        if found["milestone"]:
            found["milestone"] = self.sample("milestone", number=3, title="v1")
        url = f"https://github.com/octocat/hello/issues/{number}"
        return {**found, "number": number, "id": number, "created_at": WHEN, "html_url": url, "user": self.user()}

    def issue(self, number: int) -> Any:
        more = {"pull_request": dict.fromkeys(("diff_url", "html_url", "patch_url", "url"), "https://x.org")}
        return self.sample("issue", **self._shared(number), **(more if self.is_pull(number) else {}))

    def pull(self, number: int, schema: str = "pull-request") -> Any:
        if self.api is not None:
            made = self.api.sample(schema)
            base, head = {**made["base"], "ref": "main"}, {**made["head"], "sha": self.head, "label": "octocat:fix"}
        else:
            base, head = {"ref": "main"}, {"sha": self.head, "label": "octocat:fix", "ref": "fix"}
        own = {"base": base, "head": head, "draft": False, "merged_at": None}
        return self.sample(schema, **{**self._shared(number), **own})

    def _issue(self, call: Call, number: str) -> Reply:
        return Reply(200, self.issue(int(number))) if int(number) in self.issues else _missing()

    def _pull(self, call: Call, number: str) -> Reply:
        if int(number) not in self.issues or not self.is_pull(int(number)):
            return _missing()
        if call.headers["accept"] == "application/vnd.github.diff":
            return Reply(200, b"diff --git a/a.txt b/a.txt\n")
        return Reply(200, self.pull(int(number)))

    def _edit(self, call: Call, number: str) -> Reply:
        given = dict(call.json)
        if "milestone" in given and given["milestone"] is not None:
            given["milestone"] = "v1"
        self.issues[int(number)].update(given)
        return Reply(200, self.issue(int(number)))

    def _new_issue(self, call: Call) -> Reply:
        return Reply(201, self.issue(self.add(call.json["title"], call.json["body"])))

    def _new_comment(self, call: Call, number: str) -> Reply:
        made = self.sample(
            "issue-comment", id=len(self.comments) + 100, body=call.json["body"], user=self.user(),
            html_url=f"https://github.com/octocat/hello/issues/{number}#c",
        )  # fmt: skip
        self.comments.setdefault(int(number), []).append(made)
        return Reply(201, made)

    def _checks(self, call: Call, sha: str) -> Reply:
        return self._counted(call, "check_runs", [self.sample("check-run", id=7, name="test")])

    def _release(self, call: Call, id: str) -> Reply:
        return self._found([one for one in self.releases if one["id"] == int(id)])

    def add_release(self, tag: str) -> None:
        asset = self.sample("release-asset", id=77, name="app.tgz", size=5, updated_at=WHEN)
        self.releases.append(self.sample(
            "release", id=len(self.releases) + 50, tag_name=tag, name=tag, body="notes", draft=False, prerelease=False,
            author=self.user(), created_at=WHEN, published_at=WHEN, html_url="https://x.org", assets=[asset],
        ))  # fmt: skip

    def _search(self, call: Call) -> Reply:
        words = re.sub(r"\S+:\S+", "", call.query["q"]).split()
        found = [n for n in self.issues if all(word in self.issues[n]["title"] for word in words)]
        page = self.paged(call, [self.sample("issue-search-result-item", **self._shared(n), score=1) for n in found])
        page.body = {
            "total_count": len(found),
            "incomplete_results": False,
            "search_type": "lexical",
            "items": page.body,
        }
        return page


def _missing() -> Reply:
    return Reply(404, {"message": "Not Found", "documentation_url": "https://x.org"})
