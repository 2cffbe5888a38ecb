"""The table of verbs: name, function and one-line summary. A verb is imported when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import Final, NamedTuple

from ramet.apps.cli.parameters import Command

PACKAGE: Final = "ramet.apps.cli.verbs"


class Verb(NamedTuple):
    """A verb: its name, `module.function` in `verbs`, how its help begins; or a name that has verbs of its own."""

    name: str
    function: str
    summary: str
    verbs: tuple[Verb, ...] = ()
    imports_late: bool = False
    """Whether the function itself calls `entry.loaded`, after imports that it makes only when it runs."""

    def command(self, path: str = "ramet") -> Command:
        """Import the function and read its parameters."""
        module, _, name = self.function.rpartition(".")
        return Command(f"{path} {self.name}", getattr(import_module(f"{PACKAGE}.{module}"), name))

    def help(self) -> str:
        """The whole help text, as opposed to the summary."""
        return self.summary if self.verbs else self.command().help


VERBS: Final[dict[str, tuple[Verb, ...]]] = {
    "Workspaces": (
        Verb("create", "workspaces.create", "Create an empty workspace."),
        Verb("ls", "workspaces.list_workspaces", "List the workspaces of the store."),
        Verb("exec", "exec.execute", "Run a command in a workspace and commit what it changed.", imports_late=True),
        Verb("shell", "shell.shell", "Work in a workspace by hand."),
        Verb("ui", "ui.ui", "Look at workspaces in a browser"),
        Verb("fork", "workspaces.fork", "Begin a workspace with a revision of another one; nothing is copied."),
        Verb("revert", "workspaces.revert", "Make the content of a past revision the newest one, whole or by path."),
        Verb("merge", "workspaces.merge", "Bring another workspace into this one."),
        Verb("tag", "workspaces.tag", "Name a revision so that NAME@TAG finds it and it is kept"),
        Verb("mount", "mounts.mount", "Add a mount to a workspace"),
        Verb("umount", "mounts.umount", "Take a mount out of a workspace."),
        Verb("rm", "workspaces.rm", "Remove a workspace."),
    ),
    "History": (
        Verb("log", "history.log", "Show the revisions of a workspace, newest first."),
        Verb("diff", "history.diff", "Show what changed from one revision to another"),
        Verb("show", "history.show_file", "Print a file of a revision."),
        Verb("blame", "history.blame", "Show for each line of a file the revision, session and command that wrote it."),
        Verb("history", "inspect.history", "Show the commands that ran in a workspace, the newest last."),
        Verb("sessions", "inspect.sessions", "Show the sessions of a workspace."),
        Verb("jobs", "inspect.jobs", "Show the background jobs of a workspace that have ended"),
        Verb("mounts", "inspect.mounts", "Show what a revision has mounted where."),
        Verb("bisect", "history.bisect", "Find the first revision in which a command fails."),
    ),
    "In and out": (
        Verb("bind", "bind.bind", "Bind a real directory to a workspace while a program runs in it"),
        Verb("checkout", "transfer.checkout", "Write a revision to a real directory."),
        Verb("snapshot", "transfer.snapshot", "Write a workspace to a snapshot tar."),
        Verb("export", "transfer.export", "Write a revision as a snapshot tar (or with --tar a plain one)"),
        Verb("import", "transfer.import_archive", "Make a revision of a snapshot tar or of any other tar."),
        Verb("push", "push.push", "Push a revision as one commit of a git branch."),
    ),
    "For programs": (
        Verb("serve", "serve.serve", "Serve the workspaces of the store over HTTP until interrupted"),
        Verb("events", "events.events_of", "Print what happens to the workspaces as CloudEvents, or deliver it"),
        Verb("rendezvous", "serve.rendezvous", "Receive the branches that sandboxes push, over HTTP behind a token."),
        Verb("mcp", "serve.mcp", "Serve a workspace to a model over MCP"),
    ),
    "Care": (
        Verb("verify", "maintenance.verify", "Read everything in the store, check every digest and reference"),
        Verb("repair", "maintenance.repair", "Bring back what can be had from other copies and report what is lost."),
        Verb("gc", "maintenance.gc", "Collect what has expired and what nobody refers to."),
        Verb("cost", "maintenance.cost", "Show what each workspace costs"),
        Verb("retention", "maintenance.retention", "Show or say how long revisions are kept"),
        Verb("hold", "maintenance.hold", "Keep everything of a workspace from being removed until the hold is lifted"),
        Verb("pin", "maintenance.pin", "Keep a revision from expiring"),
        Verb("grant", "maintenance.grant", "Let a principal read or write a workspace."),
        Verb("grants", "maintenance.grants", "Show who may read and who may write a workspace"),
        Verb(
            "keys", "", "Make, show, rotate and destroy the keys of an encrypted store.",
            (
                Verb("new", "keys.new", "Make a key in a new file."),
                Verb("init", "keys.init", "Begin an encrypted store with the key that RAMET_KEY names"),
                Verb("show", "keys.show_keys", "List the keyrings"),
                Verb("rotate", "keys.rotate", "Let another key open the store, and the one in RAMET_KEY nothing any"),
                Verb("shred", "keys.shred", "Remove a workspace and destroy its keys"),
            ),
        ),
        Verb(
            "config", "", "Check, show and begin files that describe workspaces.",
            (
                Verb("check", "config.check", "Say everything that is wrong with a file, with line and column."),
                Verb("show", "config.show_config", "Print what a file says, value by value"),
                Verb("schema", "config.schema", "Print the JSON schema of such files, for editors."),
                Verb("init", "config.init", "Write a file to begin with."),
            ),
        ),
        Verb("doctor", "doctor.doctor", "Look whether everything that Ramet needs is here and works."),
        Verb("demo", "demo.demo", "Show the whole idea in a few seconds, in a temporary directory."),
        Verb("version", "version.version", "Print the version."),
    ),
}  # fmt: skip


SHOWN: Final[dict[str, tuple[str, ...]]] = {
    "create": ("ramet create demo",),
    "ls": ("ramet ls", "ramet ls --json"),
    "exec": (
        "ramet exec demo 'echo hello > /greeting; ls -l /'",
        "ramet exec demo --timeout 10 --cwd /src 'make-something' -m 'first build'",
        "ramet exec demo@2 'cat /greeting'",
        "ramet exec --config ramet.yaml 'grep -r ERROR /logs'",
        "ramet exec demo --json 'sort /names' | jq -r .stdout",
    ),
    "shell": ("ramet shell -c demo", "ramet shell --config ramet.yaml"),
    "ui": ("ramet ui", "ramet ui demo --no-browser", "ramet ui --url https://ramet.example --token-file ./token"),
    "fork": ("ramet fork demo demo-2", "ramet fork demo@1 from-the-start"),
    "revert": ("ramet revert demo@1", "ramet revert demo@1 /greeting"),
    "merge": ("ramet merge demo demo-2",),
    "tag": ("ramet tag demo@2 good -m 'it worked'", "ramet tag demo"),
    "mount": ("ramet mount demo /data ./data --mode read", "ramet mount demo /scratch"),
    "umount": ("ramet umount demo /data",),
    "bind": ("ramet bind demo ./work -- make test", "ramet bind demo ./work"),
    "log": ("ramet log demo", "ramet log demo --graph"),
    "diff": ("ramet diff demo", "ramet diff demo@3"),
    "show": ("ramet show demo@1:/greeting",),
    "blame": ("ramet blame demo:/greeting",),
    "history": ("ramet history demo", "ramet history demo --session worker -n 5 --json"),
    "bisect": ("ramet bisect demo good head -- test -e /file",),
    "checkout": ("ramet checkout demo@2 ./out", "ramet checkout demo ./out --replace"),
    "snapshot": ("ramet snapshot demo demo.tar --compress gz",),
    "export": ("ramet export demo ./repo --git", "ramet export demo@2 - --tar | tar t"),
    "import": ("ramet import copy demo.tar",),
    "push": (
        "ramet push demo https://example.org/repo.git --branch attempt/demo --token env:GIT_TOKEN",
        "ramet push demo",
    ),
    "serve": ("ramet serve --socket /run/ramet.sock", "ramet serve --config ramet.yaml"),
    "mcp": ("ramet mcp demo", "ramet mcp demo --tools bash,read"),
    "events": ("ramet events --follow",),
    "rendezvous": ("ramet rendezvous ./repositories",),
    "config": ("ramet config init", "ramet config check", "ramet config show --resolved"),
    "verify": ("ramet verify",),
    "gc": ("ramet gc --dry-run", "ramet gc --grace 7d"),
    "cost": ("ramet cost",),
    "retention": ("ramet retention --keep-last 50 --keep-within 30d", "ramet retention demo --keep-last none"),
    "hold": ("ramet hold demo 'case 42'", "ramet hold demo --lift"),
    "pin": ("ramet pin demo@3 --for 7d --why review",),
    "grant": ("ramet grant demo ada readwrite", "ramet grant demo bob --revoke"),
    "doctor": ("ramet doctor --full",),
}
"""Lines to learn from: the help of a verb and the reference page show them."""


ALSO: Final = {
    "load": "import",
    "list": "ls",
    "run": "exec",
    "remove": "rm",
    "delete": "rm",
    "cat": "show",
    "unmount": "umount",
}
"""Other names that people try."""


def find(name: str) -> Verb | None:
    """The verb of this name or alias."""
    name = ALSO.get(name, name)
    return next((verb for verbs in VERBS.values() for verb in verbs if verb.name == name), None)


def leaves() -> list[tuple[str, Verb]]:
    """Every verb that can be called, with the path of the names before it: (`ramet keys`, new)."""
    every = [verb for verbs in VERBS.values() for verb in verbs]
    return [(f"ramet {verb.name}" if verb.verbs else "ramet", one) for verb in every for one in verb.verbs or (verb,)]


def near(name: str) -> list[str]:
    """Verbs that may have been meant: the nearest one, and another only when that is as near."""
    from difflib import SequenceMatcher

    known = [verb.name for verbs in VERBS.values() for verb in verbs]
    likeness = {verb: SequenceMatcher(None, name, verb).ratio() for verb in known}
    best = max(likeness.values())
    return [verb for verb in known if likeness[verb] >= max(0.6, best - 0.05)][:2]
