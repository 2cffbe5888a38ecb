"""`Policy`: allow, deny, ask, hide or limit every command and file operation of a session.

Deny is EACCES with a reason for the model, ask calls back, hide is ENOENT, limit counts calls or bytes. The first
matching rule decides, otherwise the default. Limits count in addition. Patterns are shell patterns; `**` crosses
directories.
"""

from __future__ import annotations

import asyncio
import enum
import errno
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from ramet.core.errors import RametError, fail
from ramet.native.confinement import Point, Reach
from ramet.workspace.record.recorder import ACTOR


class Verdict(enum.Enum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"
    HIDE = "hide"


@dataclass(frozen=True)
class Request:
    """A pending operation: a command with its words, or a file verb with its path."""

    kind: Literal["command", "file", "network"]
    name: str  # the command's name, the verb, or the HTTP method
    subject: str  # the whole command line, the path, or the URL without its query
    session_id: str
    agent_id: str


READS = frozenset({"stat", "scan", "read", "open-read"})


@dataclass(frozen=True)
class Rule:
    """One rule. `command` and `path` are patterns; `access` narrows a path rule to `read` or `write`."""

    verdict: Verdict
    command: str | None = None
    path: str | None = None
    access: str | None = None
    session: str | None = None
    agent: str | None = None
    reason: str = ""
    native: bool = True
    """Whether native programs must be held to a path rule: where that is impossible, they do not start."""

    def concerns(self, session_id: str, agent_id: str) -> bool:
        """Whether it is about a session and an agent."""
        if self.session is not None and not _match(self.session, session_id):
            return False
        return self.agent is None or _match(self.agent, agent_id)

    def matches(self, request: Request) -> bool:
        if not self.concerns(request.session_id, request.agent_id):
            return False
        if request.kind == "command":
            if self.command is None:
                return False
            subject = request.subject if " " in self.command else request.name
            return _match(self.command, subject, words=True)
        if self.path is None:
            return False
        if self.access is not None and (self.access == "read") != (request.name in READS):
            return False
        return _match(self.path, request.subject)


@dataclass
class Quota:
    """Limit on the calls or bytes of operations that a rule matches, per workspace."""

    rule: Rule
    count: int | None = None
    bytes: int | None = None
    used: int = 0
    moved: int = 0


ASKS: Final = {"command": "run", "network": "reach", "file": "use"}
"""The verb of each kind of question, as a person reads it."""
Allowed = bool | Literal["host"]
"""An answer: True allows the operation, "host" also later requests of the session to the same host."""
Answer = Callable[[Request], Awaitable[Allowed]]


class Question(NamedTuple):
    """A pending question of an `ask` rule. `answer` is the future that the operation waits for."""

    number: int
    request: Request
    asked_at: float
    principal: str
    """Who ran the operation; empty where that is not known."""
    answer: asyncio.Future[Allowed]


@dataclass
class Policy:
    """Rules, and the callback that answers `ask`. Without one, `ask` denies."""

    rules: tuple[Rule, ...] = ()
    default: Verdict = Verdict.ALLOW
    """The verdict when no rule matches."""
    quotas: tuple[Quota, ...] = ()
    answer: Answer | None = None
    pending: dict[int, Question] = field(default_factory=dict)
    """Pending questions by number, answered by `decide`."""
    interactive: bool = False
    """Whether `ask` waits for `decide(number, allowed)` when there is no `answer`."""
    patience: float | None = None
    """Seconds after which a question without an answer is denied; None waits as long as the command may run."""
    watch: Callable[[Literal["asked", "answered"], Question], None] | None = None
    """Called when a question is asked, and when it is answered or given up."""
    _next: int = 1

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Policy:
        """`{"deny": [{"command": "rm"}, {"path": "/keys/**"}], "ask": [...], "allow": [...], "default": "deny"}`.

        `hide` takes paths; `limit` takes rules with `count` or `bytes`. What is hidden is looked at first, then
        denials, then questions, then permissions.
        """
        unknown = set(plain) - {"allow", "ask", "deny", "hide", "limit", "default"}
        if unknown:
            raise RametError("invalid_config", f"policy has unknown parts {sorted(unknown)}", "see Policy.from_dict")
        rules: list[Rule] = []
        for verdict in (Verdict.HIDE, Verdict.DENY, Verdict.ASK, Verdict.ALLOW):
            rules.extend(_rule(verdict, row) for row in plain.get(verdict.value, ()))
        quotas: list[Quota] = []
        for row in plain.get("limit", ()):
            rest = {key: value for key, value in row.items() if key not in ("count", "bytes")}
            if len(rest) == len(row):
                raise _misunderstood(row)
            quotas.append(Quota(_rule(Verdict.ALLOW, rest), row.get("count"), row.get("bytes")))
        return cls(tuple(rules), Verdict(plain.get("default", "allow")), tuple(quotas))

    def verdict(self, request: Request) -> tuple[Verdict, Rule | None]:
        for rule in self.rules:
            if rule.matches(request):
                return rule.verdict, rule
        return self.default, None

    @property
    def watches_files(self) -> bool:
        rules = [*self.rules, *(quota.rule for quota in self.quotas)]
        return self.default is not Verdict.ALLOW or any(rule.path is not None for rule in rules)

    @property
    def hides(self) -> bool:
        return any(rule.verdict is Verdict.HIDE for rule in self.rules)

    @property
    def watches_commands(self) -> bool:
        rules = [*self.rules, *(quota.rule for quota in self.quotas)]
        return self.default is not Verdict.ALLOW or any(rule.command is not None for rule in rules)

    async def check(self, request: Request) -> None:
        """Return when the operation is allowed; EACCES with the reason otherwise."""
        verdict, rule = self.verdict(request)
        if verdict is Verdict.HIDE:
            raise fail(errno.ENOENT, request.subject)
        self._count(request)
        if verdict is Verdict.ALLOW:
            return
        why = "the policy of this workspace does not allow it"
        if verdict is Verdict.ASK:
            if await self.ask(request):
                return
            why = "it takes a permission that was not given"
        why = (rule.reason if rule is not None else "") or why
        raise fail(errno.EACCES, request.subject, f"Permission denied: {why}")

    def narrows(self, request: Request, top: str) -> bool:
        """Return whether a path below `top` may be treated more strictly than the request for all of it.

        For requests that reach everything below `top` at once, such as a database query.
        """
        below = top.rstrip("/") + "/"
        for rule in self.rules:
            if rule.path is not None and rule.verdict is not Verdict.ALLOW:
                head = re.split(r"[*?]", rule.path, maxsplit=1)[0]
                near = head.startswith(below) or below.startswith(head)
                if near and replace(rule, path="**").matches(request):
                    return True
        anything = replace(request, subject=below + "\ue000/\ue000/\ue000")  # a path that only a catch-all rule matches
        return self.default is not Verdict.ALLOW and self.verdict(anything)[0] is not Verdict.ALLOW

    def binds(self, request: Request) -> bool:
        """Whether a rule is about something below the path of a request: moving that path would undo the rule."""
        below = request.subject.rstrip("/") + "/"
        for rule in self.rules:
            if rule.path is None or rule.verdict is Verdict.ALLOW or rule.path.startswith("**"):
                continue
            head = re.split(r"[*?]", rule.path, maxsplit=1)[0]
            near = head.startswith(below) or (_place_of(rule.path) is None and below.startswith(head))
            if near and rule.concerns(request.session_id, request.agent_id) and not rule.matches(request):
                return True
        return False

    # ------------------------------------------------------------------------------------------ native programs

    def check_programs(self, served: Sequence[str] = ()) -> None:
        """Raise RametError for a path rule that mounts cannot hold; in `served` mounts every operation is checked."""
        for rule in (*self._rules_of_programs(served), *(quota.rule for quota in self.quotas)):
            if rule.path is None or not rule.native or _served(rule.path, served):
                continue
            limited = any(quota.rule is rule for quota in self.quotas)
            if not limited and _place_of(rule.path) is not None:
                continue
            what = "a limit on paths" if limited else "a pattern that is not PATH or PATH/**"
            raise RametError(
                "native_unavailable", f"cannot run native programs: the policy rule {rule.path!r} is {what}",
                "Name a path, or PATH/**; or give the rule `native: false`, and it holds for commands in process only.",
            )  # fmt: skip

    def covered_files(self) -> list[str]:
        """Return the paths of rules that are about one path: mounts lie on them while programs run."""
        places = [_place_of(rule.path) for rule in self._rules_of_programs(()) if rule.path is not None]
        return [place[0] for place in places if place is not None and not place[1]]

    def points(
        self, session_id: str | None, agent_id: str, mounted: Iterable[str], served: Sequence[str] = ()
    ) -> tuple[Point, ...]:
        """Return what programs of a session may do where, parents first; empty when they may do everything.

        `mounted` are the mounts of the kernel. `served` ones check every operation themselves. A question counts
        as a denial: a program cannot wait for its answer. Without a session, every rule counts.
        """
        rules = self._rules_of_programs(served)
        if session_id is not None:
            rules = [rule for rule in rules if rule.concerns(session_id, agent_id)]
        if not rules and self.default is Verdict.ALLOW:
            return ()
        self.check_programs(served)
        places = [(_place_of(rule.path or ""), rule) for rule in rules]
        named: dict[str, bool] = {}
        exact: dict[str, bool] = {}
        for place, rule in places:
            if place is not None and place[0].startswith("/"):
                path, deep = place
                named[path] = named.get(path, False) or deep
                exact[path] = exact.get(path, True) and not deep and rule.verdict is Verdict.ALLOW

        def verdict(path: str, *, read: bool) -> Verdict:
            for place, rule in places:
                if place is None or (rule.access is not None and (rule.access == "read") != read):
                    continue
                if path == place[0] or (place[1] and _is_below(path, place[0])):
                    return rule.verdict
            return self.default

        def reach(path: str) -> Reach:
            if any(path == top or _is_below(path, top) for top in served):
                return Reach.WRITE
            found = verdict(path, read=True)
            if found is not Verdict.ALLOW:
                return Reach.HIDDEN if found is Verdict.HIDE else Reach.DENIED
            return Reach.WRITE if verdict(path, read=False) is Verdict.ALLOW else Reach.READ

        kernel = (path for path in mounted if not any(_is_below(path, top) for top in served))
        wanted = {"/", *kernel, *served, *named}
        if all(reach(path) is Reach.WRITE for path in wanted):
            return ()
        for path in [*wanted]:
            wanted.update(_above(path))
        return tuple(
            Point(
                path, reach(path), makes=named.get(path, False), only_file=exact.get(path, False), served=path in served
            )
            for path in sorted(wanted, key=lambda path: (path.count("/") if path != "/" else 0, path))
        )

    def _rules_of_programs(self, served: Sequence[str]) -> list[Rule]:
        """The path rules that are left to mounts, without permissions that change nothing."""
        rules = [
            rule for rule in self.rules if rule.path is not None and rule.native and not _served(rule.path, served)
        ]
        while rules and self.default is Verdict.ALLOW and rules[-1].verdict is Verdict.ALLOW:
            rules.pop()
        return rules

    def hidden(self, request: Request) -> bool:
        return self.verdict(request)[0] is Verdict.HIDE

    def _count(self, request: Request) -> None:
        for quota in self.quotas:
            if quota.rule.matches(request):
                quota.used += 1
                spent = quota.count is not None and quota.used > quota.count
                if spent or (quota.bytes is not None and quota.moved >= quota.bytes):
                    why = quota.rule.reason or f"its limit is used up ({quota.count or quota.bytes})"
                    raise fail(errno.EACCES, request.subject, f"Permission denied: {why}")

    def moved(self, request: Request, size: int) -> None:
        """Count bytes against limits."""
        for quota in self.quotas:
            if quota.bytes is not None and quota.rule.matches(request):
                quota.moved += size

    async def ask(self, request: Request) -> Allowed:
        """Ask about an operation: the callback, or who calls `decide`; False when nothing answers in time."""
        if self.answer is not None:
            return await self.answer(request)
        if not self.interactive:
            return False
        number, self._next = self._next, self._next + 1
        future: asyncio.Future[Allowed] = asyncio.get_running_loop().create_future()
        question = self.pending[number] = Question(number, request, time.time(), ACTOR.get().principal, future)
        if self.watch is not None:
            self.watch("asked", question)
        try:
            return await asyncio.wait_for(future, self.patience)
        except TimeoutError:
            return False
        finally:
            self.pending.pop(number, None)
            if self.watch is not None:
                self.watch("answered", question)

    def decide(self, number: int, allowed: Allowed) -> None:
        """Answer a pending question, as `answer` does."""
        question = self.pending.get(number)
        if question is None:
            raise RametError("not_found", f"no question {number} is pending", "It may have been answered; list them.")
        if allowed == "host" and question.request.kind != "network":
            raise RametError("invalid_argument", f"question {number} is about no host", "Answer true or false.")
        del self.pending[number]
        if not question.answer.done():  # its command may have been cancelled
            question.answer.set_result(allowed)


def _rule(verdict: Verdict, row: Mapping[str, Any]) -> Rule:
    if not isinstance(row, Mapping):
        raise _misunderstood(row)
    unknown = set(row) - {"command", "path", "access", "session", "agent", "reason", "native"}
    if unknown or not ({"command", "path"} & set(row)) or (verdict is Verdict.HIDE and "path" not in row):
        raise _misunderstood(row)
    return Rule(verdict, **row)


def _misunderstood(row: object) -> RametError:
    remedy = (
        "a rule has command or path, and optionally access, session, agent, reason, native; a limit also count or bytes"
    )
    return RametError(
        "invalid_config", f"policy rule {dict(row) if isinstance(row, Mapping) else row!r} is not understood", remedy
    )


def _place_of(pattern: str) -> tuple[str, bool] | None:
    """Return the path of a pattern, and whether all below it is meant; None for patterns that no mount can hold."""
    deep = pattern == "**" or pattern.endswith("/**")
    path = pattern.removesuffix("**").rstrip("/") or "/" if deep else pattern
    if re.search(r"[*?]", path):
        return None
    return path, deep


def _served(pattern: str, served: Sequence[str]) -> bool:
    head = re.split(r"[*?]", pattern, maxsplit=1)[0]
    return any(head == top or _is_below(head, top) for top in served)


def _is_below(path: str, top: str) -> bool:
    return path.startswith(top.rstrip("/") + "/") and path != "/"


def _above(path: str) -> list[str]:
    """The directories above a path, without the root."""
    parts = path.split("/")[1:-1]
    return ["/" + "/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _match(pattern: str, text: str, words: bool = False) -> bool:
    return _compile(pattern, words).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _compile(pattern: str, words: bool) -> re.Pattern[str]:
    """Compile a pattern. Only `*`, `**`, `?` are special, so it cannot backtrack badly."""
    parts: list[str] = []
    for piece in re.split(r"(\*\*/|\*\*|\*|\?)", pattern):
        if piece == "**/":
            parts.append("(?:.*/)?")
        elif piece == "**" or (piece == "*" and words):
            parts.append(".*")
        elif piece == "*":
            parts.append("[^/]*")
        elif piece == "?":
            parts.append(".")
        else:
            parts.append(re.escape(piece))
    text = "".join(parts)
    if text.endswith("/.*"):
        text = text[:-3] + "(?:/.*)?"  # `/secrets/**` covers the directory itself
    return re.compile(text, re.DOTALL)
