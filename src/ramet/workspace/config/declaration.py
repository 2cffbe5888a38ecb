"""Declaration of all settings, the source of checks, JSON schema and reference page."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from ramet.core.limits import Limits
from ramet.core.proc import User
from ramet.layers.retry import Patience
from ramet.native.options import NativeLimits
from ramet.network.network import NetworkLimits
from ramet.workspace.config.kinds import (
    INVALID,
    ChoiceKind,
    Field,
    FlagKind,
    LazyKind,
    ListKind,
    MapKind,
    NumberKind,
    TableKind,
    TextKind,
    join_setting,
    mapping_of,
)
from ramet.workspace.config.nodes import Node
from ramet.workspace.config.problems import ConfigReader, suggestion
from ramet.workspace.config.resources import BACKENDS, fields_of
from ramet.workspace.stored.commit_policy import WHEN

VARIABLE: Final = r"[A-Za-z_][A-Za-z0-9_]*"
REFERENCE: Final = r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*"
OWN_RESOURCE: Final = re.compile(REFERENCE)
MODES: Final = ChoiceKind(("read", "write"), (("r", "read"), ("ro", "read"), ("w", "write"), ("rw", "write")))
ENV: Final = MapKind(TextKind(recorded=True), VARIABLE, "a variable has letters, digits and _")

MOUNT: Final = {
    "mode": Field(MODES, "What the workspace may do with it.", "write"),
    "cache": Field(FlagKind(), "Keep what was read from a remote mount.", True),
    "patience": Field(
        LazyKind(lambda: TableKind(fields_of(Patience))), "How long to go on when a remote mount does not answer."
    ),
    "pin": Field(ChoiceKind(("config", "versions")), "What a revision records of a mount whose bytes live elsewhere."),
}


@dataclass(frozen=True)
class MountKind:
    """A mount: its resource, the `config` of that, and its options."""

    says = "a mount"

    def schema(self) -> dict[str, Any]:
        found = TableKind(MOUNT).schema()
        known = {"enum": list(BACKENDS)}
        own = {"type": "string", "pattern": f"^{REFERENCE}$"}
        found["properties"] = {
            "resource": {"description": "What is mounted, or package.module:Class.", "anyOf": [known, own]},
            "config": {"type": "object", "description": "The settings of the resource."},
            **found["properties"],
        }
        found["required"] = ["resource"]
        found["allOf"] = [
            {
                "if": {"properties": {"resource": {"const": name}}},
                "then": {"properties": {"config": {"$ref": f"#/$defs/{name}"}}, **_needs_config(name)},
            }
            for name in BACKENDS
        ]
        return found

    def read(self, node: Node, setting: str, reading: ConfigReader) -> Any:
        given = mapping_of(node, setting, reading)
        if given is None:
            return INVALID
        rest = {name: item for name, item in given.items() if name not in ("resource", "config")}
        unknown = [name for name in rest if name not in MOUNT]
        for name in unknown:
            reading.unknown(rest.pop(name), setting, name, [*MOUNT, "resource", "config"], "setting of a mount")
        resource = given.get("resource")
        if resource is None:
            reading.wrong(node.key or node.place, setting, "resource is missing", f"use one of {_some()}")
            return INVALID
        kind = TextKind().read(resource, join_setting(setting, "resource"), reading)
        made = {"resource": kind, "config": self._config(kind, node, given, setting, reading)}
        return {**made, **TableKind(MOUNT).read(Node(rest, node.place, key=node.key), setting, reading)}

    def _config(self, kind: Any, node: Node, given: dict[str, Node], setting: str, reading: ConfigReader) -> Any:
        config = given.get("config", Node({}, node.place, key=node.key))
        place = join_setting(setting, "config")
        if kind in BACKENDS:
            return TableKind(BACKENDS[kind].fields(), f"setting of {kind}").read(config, place, reading)
        if isinstance(kind, str) and OWN_RESOURCE.fullmatch(kind):
            return MapKind(TextKind()).read(config, place, reading)
        if kind is not INVALID:
            hint = suggestion(kind, BACKENDS) or f"use one of {_some()}, or package.module:Class"
            reading.wrong(
                given["resource"].place, join_setting(setting, "resource"), f"unknown resource {kind!r}", hint
            )
        return INVALID


def _needs_config(name: str) -> dict[str, Any]:
    needed = any(field.required for field in BACKENDS[name].fields().values())
    return {"required": ["config"]} if needed else {}


def _some() -> str:
    return ", ".join(list(BACKENDS)[:8])


RULE: Final = {
    "command": Field(TextKind(), "A pattern for a command's name, or for its whole line when it has a space."),
    "path": Field(TextKind(), "A pattern for a path; ** crosses directories."),
    "access": Field(ChoiceKind(("read", "write")), "Narrows a rule about a path."),
    "session": Field(TextKind(), "Only in sessions whose id matches."),
    "agent": Field(TextKind(), "Only for agents whose id matches."),
    "reason": Field(TextKind(), "What the model is told."),
    "native": Field(FlagKind(), "Whether native programs must be held to a rule about a path.", True),
}
QUOTA: Final = {
    **RULE,
    "count": Field(NumberKind(whole=True), "How often it may happen."),
    "bytes": Field(NumberKind("size", whole=True), "How many bytes it may move."),
}
RULES: Final = ListKind(TableKind(RULE, "part of a rule", ("command", "path")))
POLICY: Final = {
    "default": Field(ChoiceKind(("allow", "ask", "deny")), "For what no rule matches.", "allow"),
    "hide": Field(ListKind(TableKind(RULE, "part of a rule", ("path",))), "Paths that do not exist for commands."),
    "deny": Field(RULES, "What is refused."),
    "ask": Field(RULES, "What a person is asked about; refused without an answer."),
    "allow": Field(RULES, "What is allowed where the default is not."),
    "limit": Field(ListKind(TableKind(QUOTA, "part of a limit", ("count", "bytes"))), "How often, or how many bytes."),
}


NETWORK_RULE: Final = {
    "host": Field(TextKind(), "A host, *.suffix, address or network.", required=True),
    "port": Field(NumberKind(whole=True, least=1), "Only this port."),
    "scheme": Field(ChoiceKind(("http", "https")), "Only this protocol."),
    "methods": Field(ListKind(TextKind()), "Only these methods."),
    "path": Field(TextKind(pattern="/.*", pattern_says="a path begins with /"), "Only paths at or below this one."),
    "private": Field(FlagKind(), "The host may have a private address.", False),
    "session": Field(TextKind(), "Only in sessions whose id matches."),
    "agent": Field(TextKind(), "Only for agents whose id matches."),
    "reason": Field(TextKind(), "What the model is told."),
}


@dataclass(frozen=True)
class NetworkRuleKind:
    """A rule of the network: a line such as `GET https://api.example.org/v1/`, or its parts."""

    says = "a host, *.suffix, host:port, address, network or URL, or a mapping"
    table = TableKind(NETWORK_RULE, "part of a rule")

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, self.table.schema()]}

    def read(self, node: Node, setting: str, reading: ConfigReader) -> Any:
        if not isinstance(node.value, dict):
            return TextKind().read(node, setting, reading)
        found = self.table.read(node, setting, reading)
        return found if found is INVALID else {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class CredentialKind:
    """A secret that is added to requests for one host, or a list of them."""

    says = "a mapping, or a list of them"
    table = TableKind({
        "header": Field(TextKind(), "The header that carries it."),
        "prefix": Field(TextKind(), "What stands before it in the header, such as `Bearer `."),
        "basic": Field(TextKind(), "The user of basic authentication; the secret is the password."),
        "query": Field(TextKind(), "The parameter of the query that carries it."),
        "from": Field(TextKind(pattern="(env|file):.+", pattern_says="write env:NAME or file:PATH"),
                      "Where it is, outside: env:NAME or file:PATH.", required=True),
        "env": Field(TextKind(), "The variable that holds its placeholder inside; that of env:NAME by default."),
        "name": Field(TextKind(), "What the placeholder is called: ramet-secret:NAME; the host by default."),
    }, "part of a credential")  # fmt: skip

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.table.schema(), ListKind(self.table).schema()]}

    def read(self, node: Node, setting: str, reading: ConfigReader) -> Any:
        kind = ListKind(self.table) if isinstance(node.value, list) else self.table
        found = kind.read(node, setting, reading)
        if found is INVALID:
            return INVALID
        rows = found if isinstance(found, list | tuple) else [found]
        return [{name: value for name, value in row.items() if value is not None} for row in rows if row is not INVALID]


@dataclass(frozen=True)
class InterceptKind:
    """Which hosts are intercepted."""

    says = "true, false, or a list of hosts"
    hosts = ListKind(TextKind())

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [*FlagKind().schema()["anyOf"], self.hosts.schema()]}

    def read(self, node: Node, setting: str, reading: ConfigReader) -> Any:
        return (self.hosts if isinstance(node.value, list) else FlagKind()).read(node, setting, reading)


NETWORK: Final = {
    "allow": Field(ListKind(NetworkRuleKind()), "What may be reached."),
    "ask": Field(ListKind(NetworkRuleKind()), "What a person is asked about; refused without an answer."),
    "deny": Field(ListKind(NetworkRuleKind()), "What is refused, whatever else allows it."),
    "default": Field(ChoiceKind(("deny", "ask", "allow")), "For what no rule matches.", "deny"),
    "limits": Field(LazyKind(lambda: TableKind(fields_of(NetworkLimits))), "Bounds of requests."),
    "credentials": Field(MapKind(CredentialKind(), ".+", "a host"), "Secrets by host, added outside."),
    "intercept": Field(InterceptKind(), "Hosts whose HTTPS is read when native programs speak to them; true for all."),
    "authorities": Field(TextKind(path=True), "A file of certificates (PEM) that are trusted besides the machine's."),
}


@dataclass(frozen=True)
class NativeKind:
    """Whether real programs run, or within which bounds."""

    says = "true, false, or a mapping"
    table = TableKind({
        "limits": Field(LazyKind(lambda: TableKind(fields_of(NativeLimits), "native limit")), "Bounds of one box."),
        "directory": Field(TextKind(path=True), "Where the trees of boxes live; by default in /var/tmp."),
        "image": Field(TextKind(path=True), "Where programs come from: a root directory, an OCI layout, or a tar."),
    })  # fmt: skip

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [*FlagKind().schema()["anyOf"], self.table.schema()]}

    def read(self, node: Node, setting: str, reading: ConfigReader) -> Any:
        if not isinstance(node.value, dict):
            return FlagKind().read(node, setting, reading)
        return self.table.read(node, setting, reading)


@dataclass(frozen=True)
class CommandKind:
    """A user command: `package.module:function`, optionally for one mount or suffix."""

    says = "`package.module:function`, or a mapping"
    table = TableKind({
        "python": Field(TextKind(pattern=REFERENCE, pattern_says="write package.module:function"),
                        "The function; it gets a Proc.", required=True),
        "mount": Field(TextKind(pattern="/.*", pattern_says="a prefix begins with /"), "Only for files of this mount."),
        "suffix": Field(TextKind(), "Only for files whose names end so."),
    })  # fmt: skip

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [{"type": "string", "pattern": f"^{REFERENCE}$"}, self.table.schema()]}

    def read(self, node: Node, setting: str, reading: ConfigReader) -> Any:
        if isinstance(node.value, str):
            found = self.table.fields["python"].kind.read(node, setting, reading)
            return INVALID if found is INVALID else {"python": found, "mount": None, "suffix": None}
        return self.table.read(node, setting, reading)


@dataclass(frozen=True)
class DraftsKind:
    """When uncommitted changes are made durable."""

    says = "`each`, `off`, or seconds"
    words = ChoiceKind(("each", "off"))
    seconds = NumberKind("time")

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [{"const": False}, *self.words.schema()["anyOf"], *self.seconds.schema()["anyOf"]]}

    def read(self, node: Node, setting: str, reading: ConfigReader) -> Any:
        if node.value is False:  # YAML 1.1 reads `off` as false
            node = replace(node, value="off")
        text = reading.text(node, setting) if isinstance(node.value, str) else None
        if isinstance(node.value, str) and text is None:
            return INVALID
        if text is not None and not text.text[:1].isdigit():
            return self.words.read(node, setting, reading)
        found = self.seconds.read(node, setting, reading)
        if found == 0:
            reading.wrong(node.place, setting, "0 is not an interval", "use each")
            return INVALID
        return found


SERVER: Final = {
    "host": Field(TextKind(), "Address to listen on.", "127.0.0.1"),
    "port": Field(NumberKind(whole=True), "Port to listen on.", 8750),
    "socket": Field(TextKind(path=True), "Unix socket to listen on instead."),
    "token_file": Field(TextKind(path=True), "File with the token; made when missing."),
    "certificate": Field(TextKind(path=True), "TLS certificate (PEM)."),
    "key": Field(TextKind(path=True), "TLS key (PEM)."),
    "allow_hosts": Field(ListKind(TextKind()), "More values of the Host header to answer."),
    "durable": Field(ChoiceKind(("answer", "timer", "close")), "When a change is committed.", "answer"),
    "every": Field(NumberKind("time"), "Seconds between commits with timer.", 5.0),
    "idle": Field(NumberKind("time"), "Seconds after which an unused workspace is closed.", 600.0),
    "concurrency": Field(NumberKind(whole=True, least=1), "Requests of one client at the same time.", 64),
    "rate": Field(NumberKind(), "Requests per second of one client; 0 does not count.", 0.0),
    "rendezvous": Field(TextKind(path=True), "Directory of repositories to serve below /git."),
}


@cache
def declaration() -> TableKind:
    """Return the declaration of all settings."""
    name = TextKind(pattern=r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", pattern_says="use letters, digits, . _ -")
    return TableKind({
        "version": Field(ChoiceKind(("1",)), "Of this format."),
        "name": Field(name, "Workspace of the store; without it the workspace lives in memory."),
        "store": Field(TextKind(path=True), "Directory or URL of the store."),
        "mounts": Field(MapKind(MountKind(), "/.*", "a prefix begins with /"), "What is mounted where."),
        "env": Field(ENV, "Variables of every session."),
        "secrets": Field(
            MapKind(TextKind(secret=True, reference=True), VARIABLE, "a variable has letters, digits and _"),
            "Variables whose values are never recorded: env:NAME or file:PATH.",
        ),
        "limits": Field(TableKind(fields_of(Limits)), "Bounds of one execution."),
        "native": Field(NativeKind(), "Run real programs too, in a box on this machine.", False),
        "network": Field(TableKind(NETWORK), "Which hosts commands and programs may reach; without it none."),
        "policy": Field(TableKind(POLICY), "What is allowed, refused, asked about, hidden and counted."),
        "cache": Field(TableKind({
            "bytes": Field(NumberKind("size", whole=True), "What is kept of remote mounts.", 256 << 20),
            "directory": Field(TextKind(path=True), "Where processes share it; memory when not given."),
            "url": Field(TextKind(), "A Redis where machines share it, instead of a directory."),
            "drain_bytes": Field(NumberKind("size", whole=True), "Read on after a reader stopped early.", 8 << 20),
        }), "What is kept of what was read from remote mounts."),
        "user": Field(TableKind(fields_of(User)), "Who the commands run as."),
        "commands": Field(MapKind(CommandKind(), r"[^/\s]+", "a command has no / and no space"), "Own commands."),
        "sessions": Field(MapKind(TableKind({
            "cwd": Field(TextKind(pattern="/.*", pattern_says="write an absolute path"), "Where it begins.", "/"),
            "env": Field(ENV, "Variables of this session."),
        })), "Sessions that are there from the start."),
        "commit": Field(TableKind({
            "when": Field(ChoiceKind(WHEN), "When revisions are made by themselves.", "close"),
            "every": Field(NumberKind("time"), "Seconds of a timer, or a number of commands."),
            "withhold": Field(ListKind(TextKind()), "More files that no revision may have."),
            "drafts": Field(DraftsKind(), "What survives a kill before the next revision: each call, or every so many "
                            "seconds.", "off"),
            "scan": Field(ChoiceKind(("off", "report", "refuse")), "What is done about secrets in new content.", "off"),
        }), "When a stored workspace is committed, and what is left out."),
        "server": Field(TableKind(SERVER), "How `ramet serve --config` serves."),
    })  # fmt: skip


def schema() -> dict[str, Any]:
    """Return the JSON schema of a configuration file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A Ramet workspace",
        "description": "Mounts, policy, limits and secrets of a workspace; `ramet config check` checks it.",
        **declaration().schema(),
        "$defs": {name: TableKind(row.fields()).schema() for name, row in BACKENDS.items()},
    }
