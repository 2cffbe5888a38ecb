"""The table of verbs: name, function and one-line summary. A verb is imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Final, NamedTuple

from ramet.apps.cli.parameters import Command

PACKAGE: Final = "ramet.apps.cli.verbs"


class Verb(NamedTuple):
    """A verb: its name, `module.function` in `verbs`, and the start of its help; or a group with inner verbs."""

    name: str
    function: str
    summary: str
    verbs: tuple[Verb, ...] = ()
    fallback: str = ""
    """The inner verb that a first word belongs to which is the name of none."""
    imports_late: bool = False
    """Whether the function calls `entry.resume_gc` itself, after imports that it makes when it runs."""

    def command(self, path: str = "ramet") -> Command:
        """Import the function and read its parameters."""
        module, _, name = self.function.rpartition(".")
        return Command(f"{path} {self.name}", getattr(import_module(f"{PACKAGE}.{module}"), name))

    def help(self) -> str:
        """The full help text; `summary` is its beginning."""
        return self.summary if self.verbs else self.command().help


VERBS: Final[dict[str, tuple[Verb, ...]]] = {
    "Workspaces": (
        Verb("create", "workspaces.create", "Create an empty workspace."),
        Verb("ls", "workspaces.list_workspaces", "List the workspaces of the store, or a directory of a revision."),
        Verb("exec", "exec.execute", "Run a command in a workspace and commit what it changed.", imports_late=True),
        Verb("shell", "shell.shell", "Open an interactive shell in a workspace."),
        Verb("ui", "ui.ui", "Open workspaces in a browser"),
        Verb("port", "port.port", "List what listens in a workspace, or forward a port of this machine to it."),
        Verb("commit", "workspaces.commit", "Make a revision of what changed outside"),
        Verb("cp", "cp.copy", "Copy a file or directory into a workspace, out of one, or between two."),
        Verb("fork", "workspaces.fork", "Create a workspace from a revision of another one; no data is copied."),
        Verb("revert", "workspaces.revert", "Restore a past revision as a new one, all of it or some paths."),
        Verb("merge", "workspaces.merge", "Merge another workspace into this one."),
        Verb("undo", "workspaces.undo", "Undo the last change, or what one agent or run changed."),
        Verb("tag", "workspaces.tag", "Tag a revision: NAME@TAG names it, and gc keeps it"),
        Verb("note", "workspaces.note", "Add a note to a revision, or to a file or a line of it."),
        Verb("mount", "mounts.mount", "Add a mount to a workspace"),
        Verb("umount", "mounts.umount", "Remove a mount from a workspace."),
        Verb("rename", "workspaces.rename", "Rename a workspace, with its history, tags and grants."),
        Verb("rm", "workspaces.rm", "Remove a workspace."),
        Verb("restore", "workspaces.restore", "Restore a removed workspace with its tags and grants."),
    ),
    "History": (
        Verb("log", "history.log", "Show the revisions of a workspace, newest first"),
        Verb("diff", "history.diff", "Show what changed from one revision to another"),
        Verb("show", "history.show_file", "Print a file of a revision, or a revision."),
        Verb("blame", "history.blame", "Show for each line of a file the revision, agent and command that wrote it."),
        Verb("history", "inspect.history", "Show the commands and other changes of a workspace, the newest last."),
        Verb("agents", "inspect.agents", "Show what each agent did and what it cost"),
        Verb("sessions", "inspect.sessions", "Show the sessions of a workspace."),
        Verb("jobs", "inspect.jobs", "Show the background jobs of a workspace that have ended"),
        Verb("questions", "inspect.questions", "List what waits for a permission on a server, or answer it."),
        Verb("mounts", "inspect.mounts", "Show the mounts of a revision."),
        Verb("bisect", "history.bisect", "Find the first revision in which a command fails."),
    ),
    "In and out": (
        Verb("bind", "bind.bind", "Bind a real directory to a workspace while a program runs in it"),
        Verb("turn", "turns.turn", "Make a revision of a bound directory while its program runs."),
        Verb("rewind", "turns.rewind", "Make a bound directory what it was at a turn"),
        Verb("try", "trial.try_program", "Run a program over the current directory, and see what it changed"),
        Verb("checkout", "transfer.checkout", "Write a revision to a directory on disk."),
        Verb("snapshot", "transfer.snapshot", "Write a workspace to a snapshot tar."),
        Verb("export", "transfer.export", "Write a revision as a snapshot tar (or with --tar a plain one)"),
        Verb("import", "transfer.import_archive", "Import a snapshot tar, or any other tar, as a revision."),
        Verb("push", "push.push", "Push a revision to a git branch as one commit."),
    ),
    "For programs": (
        Verb("serve", "serve.serve", "Serve the workspaces of the store over HTTP until interrupted"),
        Verb("events", "events.events_of", "Print the changes of all workspaces as CloudEvents, or deliver them"),
        Verb("rendezvous", "serve.rendezvous", "Receive branches that sandboxes push, over HTTP with a token."),
        Verb("mcp", "serve.mcp", "Serve a workspace to a model over MCP"),
    ),
    "Care": (
        Verb("verify", "maintenance.verify", "Check every digest and reference in the store"),
        Verb("repair", "maintenance.repair", "Restore damaged data from other copies and report what is lost."),
        Verb("gc", "maintenance.gc", "Delete expired revisions and unreferenced data."),
        Verb("cost", "maintenance.cost", "Show what each workspace costs"),
        Verb("retention", "maintenance.retention", "Show or set how long revisions are kept"),
        Verb("hold", "maintenance.hold", "Protect a workspace from removal until you lift the hold"),
        Verb("pin", "maintenance.pin", "Keep a revision from expiring"),
        Verb("grant", "maintenance.grant", "Allow a principal to read or write a workspace."),
        Verb("grants", "maintenance.grants", "Show who may read or write a workspace"),
        Verb(
            "keys", "", "Create, show, rotate and destroy the keys of an encrypted store.",
            (
                Verb("new", "keys.new", "Create a key in a new file."),
                Verb("init", "keys.init", "Create an encrypted store with the key that RAMET_KEY names"),
                Verb("show", "keys.show_keys", "List the keyrings"),
                Verb("rotate", "keys.rotate", "Replace the key in RAMET_KEY with another one"),
                Verb("shred", "keys.shred", "Remove a workspace and destroy its keys"),
            ),
        ),
        Verb(
            "config", "", "Check, show and create configuration files, of workspaces too.",
            (
                Verb("check", "config.check", "List every error of a configuration file, with line and column."),
                Verb("show", "config.show_config", "Print the configuration of a workspace or a file"),
                Verb("use", "config.use", "Give a workspace a configuration file"),
                Verb("schema", "config.schema", "Print the JSON schema of configuration files, for editors."),
                Verb("init", "config.init", "Write a starter configuration file."),
            ),
            fallback="show",
        ),
        Verb("doctor", "doctor.doctor", "Check that everything Ramet needs is installed and works."),
        Verb("demo", "demo.demo", "Show what Ramet does in a few seconds, in a temporary directory."),
        Verb("version", "version.version", "Print the version."),
    ),
}  # fmt: skip


SHOWN: Final[dict[str, tuple[str, ...]]] = {
    "create": ("ramet create demo", "ramet create demo --config ramet.yaml"),
    "ls": ("ramet ls", "ramet ls demo", "ramet ls demo@1:/src"),
    "exec": (
        "ramet exec demo 'echo hello > /greeting; ls -l /'",
        "ramet exec demo --timeout 10 --cwd /src 'make-something' -m 'first build'",
        "ramet exec demo@2 'cat /greeting'",
        "ramet exec --config ramet.yaml 'grep -r ERROR /logs'",
        "ramet exec demo --json 'sort /names' | jq -r .stdout",
    ),
    "shell": ("ramet shell -c demo", "ramet shell --config ramet.yaml"),
    "ui": ("ramet ui", "ramet ui demo --no-browser", "ramet ui --url https://ramet.example --token-file ./token"),
    "commit": ("ramet commit demo -m 'before lunch'", "ramet commit --config ramet.yaml demo"),
    "cp": ("ramet cp ./src demo:/", "ramet cp demo@2:/greeting ./greeting", "ramet cp demo:/src other:/src"),
    "fork": ("ramet fork demo demo-2", "ramet fork demo@1 from-the-start"),
    "revert": ("ramet revert demo@1", "ramet revert demo@1 /greeting"),
    "merge": ("ramet merge demo other", "ramet merge demo other --take /f=theirs --edit"),
    "rename": ("ramet rename demo notes",),
    "note": ("ramet note demo@2 'why so?'", "ramet note demo@2:/src/app.py 'an off-by-one' --line 12"),
    "tag": ("ramet tag demo@2 good -m 'it worked'", "ramet tag demo"),
    "mount": ("ramet mount demo /data ./data --mode read", "ramet mount demo /scratch"),
    "umount": ("ramet umount demo /data",),
    "port": ("ramet port demo", "ramet port demo 8000 --wait 60", "ramet port demo 8000 --local 9000"),
    "bind": (
        "ramet bind demo ./work -- make test",
        "ramet bind demo ./work --env API_KEY --allow-host api.example.org -- my-agent",
        "ramet bind demo ./work --turn-on-idle 2s --unconfined",
    ),
    "turn": ("ramet turn demo -m 'tests pass'", "ramet turn"),
    "rewind": ("ramet rewind demo", "ramet rewind demo@3"),
    "try": (
        "ramet try -- make release",
        "ramet try --yes -- ./format.sh",
        "ramet try --read ~/data --keep migrated -- ./migrate",
    ),
    "log": ("ramet log demo", "ramet log demo --graph"),
    "diff": ("ramet diff demo", "ramet diff demo@3 head --stat", "ramet diff demo other -- /src"),
    "show": ("ramet show demo@1:/greeting", "ramet show demo@1"),
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
    "config": ("ramet config init", "ramet config check", "ramet config demo", "ramet config use demo ramet.yaml"),
    "verify": ("ramet verify",),
    "gc": ("ramet gc --dry-run", "ramet gc --grace 7d"),
    "cost": ("ramet cost",),
    "retention": ("ramet retention --keep-last 50 --keep-within 30d", "ramet retention demo --keep-last none"),
    "hold": ("ramet hold demo 'case 42'", "ramet hold demo --lift"),
    "pin": ("ramet pin demo@3 --for 7d --why review",),
    "grant": ("ramet grant demo ada readwrite", "ramet grant demo bob --revoke"),
    "doctor": ("ramet doctor --full",),
}
"""Examples, shown in a verb's help and on the reference page."""


ALSO: Final = {
    "load": "import",
    "list": "ls",
    "run": "exec",
    "remove": "rm",
    "delete": "rm",
    "cat": "show",
    "unmount": "umount",
    "mv": "rename",
}
"""Aliases: other names that users try."""


def find(name: str) -> Verb | None:
    """Find a verb by name or alias."""
    name = ALSO.get(name, name)
    return next((verb for verbs in VERBS.values() for verb in verbs if verb.name == name), None)


def leaves() -> list[tuple[str, Verb]]:
    """List every callable verb with its path: (`ramet keys`, new)."""
    every = [verb for verbs in VERBS.values() for verb in verbs]
    return [(f"ramet {verb.name}" if verb.verbs else "ramet", one) for verb in every for one in verb.verbs or (verb,)]


def near(name: str) -> list[str]:
    """List the verbs closest to a mistyped name: the best match, and a second one if it is as close."""
    from difflib import SequenceMatcher

    known = [verb.name for verbs in VERBS.values() for verb in verbs]
    likeness = {verb: SequenceMatcher(None, name, verb).ratio() for verb in known}
    best = max(likeness.values())
    return [verb for verb in known if likeness[verb] >= max(0.6, best - 0.05)][:2]
