"""Makes the reference pages from the code: `make docs`. A test fails when a page is not what this would write."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from docs import reference

from ramet.apps.cli.parameters import Command as VerbCommand
from ramet.commands.framework.command import Command, Spec
from ramet.commands.framework.table import COMMANDS, MODULES, Lazy
from ramet.core.errors import CODES

HERE = Path(__file__).parent
NOTE = "<!-- Made by docs/generate.py; do not edit. -->\n"


def spelled(spec: Spec) -> str:
    argument = "" if spec.takes == "none" else f"[={spec.metavar}]" if spec.takes == "optional" else f" {spec.metavar}"
    return ", ".join(f"`{name}{argument}`" for name in spec.names)


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def families() -> dict[str, list[Command]]:
    """The commands by the folder of their code, without those that are shown under another name."""
    found: dict[str, list[Command]] = {}
    for name, lazy in sorted(COMMANDS.items()):
        assert isinstance(lazy, Lazy)
        command: Command = lazy.load()
        if command.name == name:
            found.setdefault(MODULES[name].partition(".")[0], []).append(command)
    return dict(sorted(found.items()))


def commands_page() -> str:
    """All commands with their summaries; the options are on a page per family."""
    lines = ["# Commands\n", NOTE]
    lines.append(
        f"{len(COMMANDS)} commands, each written once for every mount. `NAME --help` and `man NAME` say the same as"
    )
    lines.append("these pages. *Refused* options exist in the original and cannot work here; they fail loudly.\n")
    for family, commands in families().items():
        lines += [f"## {FAMILIES[family]}\n", "| command | what it does |", "|---|---|"]
        for command in commands:
            names = ", ".join(f"`{name}`" for name in (command.name, *command.aliases))
            lines.append(f"| [{names}](commands/{family}.md#{command.name}) | {escaped(command.summary)} |")
        lines.append("")
    return "\n".join(lines)


FAMILIES = {
    "archives": "Archives", "binary": "Bytes and digests", "data": "Data: JSON, YAML, tables, databases",
    "diff": "Differences and patches", "files": "Files and directories", "math": "Arithmetic",
    "network": "The network", "patch": "Patches",
    "script": "For scripts", "search": "Search", "system": "System and processes", "text": "Text", "awk": "awk",
    "sed": "sed",
}  # fmt: skip
"""Headings of the families, by folder."""


def family_page(family: str) -> str:
    """The commands of one family with their options."""
    lines = [f"# {FAMILIES[family]}\n", NOTE, "[All commands](../commands.md)\n"]
    for command in families()[family]:
        lines.append(f"## {command.name}\n")
        lines.append(f"{command.summary} Usage: `{command.name} {command.usage}`\n")
        if command.details:
            lines.append(f"```text\n{textwrap.dedent(command.details).strip()}\n```\n")
        if command.aliases:
            lines.append(f"Also as: {', '.join(f'`{alias}`' for alias in command.aliases)}\n")
        specs = () if command.raw else command.table.specs
        if specs:
            lines += ["| option | | meaning |", "|---|---|---|"]
            for spec in specs:
                state = {"refuse": "refused", "ignore": "no effect"}.get(spec.store, "")
                lines.append(f"| {spelled(spec)} | {state} | {escaped(spec.help)} |")
            lines.append("")
    return "\n".join(lines)


def errors_page() -> str:
    lines = ["# Error codes\n", NOTE, "Refusals carry `{code, cause, remediation, context}`.\n"]
    lines += ["| code | meaning |", "|---|---|"]
    lines += [f"| `{code}` | {meaning} |" for code, meaning in sorted(CODES.items())]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    return " ".join((text or "").split())


def cli_page() -> str:
    """Every verb with its arguments and options, as the command line itself declares them."""
    from ramet.apps.cli.verb_table import VERBS

    lines = ["# The command line\n", NOTE, CLI_INTRO]
    for family, verbs in VERBS.items():
        lines.append(f"## {family}\n")
        for verb in verbs:
            if not verb.verbs:
                lines += verb_lines(verb.command(), "###")
                continue
            lines += [f"### ramet {verb.name}\n", verb.summary, ""]
            for inner in verb.verbs:
                lines += verb_lines(inner.command(f"ramet {verb.name}"), "####")
    return "\n".join(lines)


CLI_INTRO = """\
`ramet VERB --help` says the same as this page. The store is at `~/.ramet`, or where `--store` or `$RAMET_HOME` says.
`ramet -n NAMESPACE VERB` is about the workspaces of a namespace, as `AgentRun(namespace=...)` makes them.
`NAME@REV` names a revision (`head`, `head~2`, a number, a tag, an id), `NAME@REV:/path` a file in it.

Tables for people; JSON with `--json` or `RAMET_OUTPUT=json` (else `text`). A pipe gets the same text without colour.
Errors are one line of cause and one of what to do, or with `--json` `{"error": {"code", "cause", "remediation",
"context"}}`.

| status | means |
|---|---|
| 0 | done |
| 1 | an error |
| 2 | the command line is wrong |
| 3 | something was not found |
| 4 | busy, in conflict, or there already |
| 124 | the time was up |

`exec` passes the command's own status through. `ramet --install-completion` teaches bash, zsh or fish to complete.
"""


def verb_lines(command: VerbCommand, level: str) -> list[str]:
    from ramet.apps.cli.verb_table import SHOWN

    lines = [f"{level} {command.path}\n", command.help, ""]
    arguments, options = command.arguments, command.listed_options
    lines += ["```text", command.usage, "```\n"]
    shown = SHOWN.get(command.path.removeprefix("ramet "), ())
    if shown:
        lines += ["```text", *shown, "```\n"]
    if arguments or options:
        lines += ["| | |", "|---|---|"]
        for argument in arguments:
            lines.append(f"| `{argument.label}` | {escaped(argument.help)} |")
        for option in options:
            default = None if option.required else option.default
            shown_default = "" if default in (None, "", False) else f" Default: `{default}`."
            variable = f" Variable: `${option.envvar}`." if option.envvar else ""
            lines.append(f"| `{escaped(option.spelling)}` | {escaped(option.help)}{shown_default}{variable} |")
        lines.append("")
    return lines


def http_page() -> str:
    """Every route and every type, from the OpenAPI document that the server serves."""
    from ramet.apps.server.openapi import document

    found = document()
    lines = [
        "# HTTP reference\n",
        NOTE,
        "The same as `/openapi.json`; [the HTTP server](http.md) tells how to use it.\n",
    ]
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            if method == "head":
                continue
            lines.append(f"## {method.upper()} {path}\n")
            lines.append(operation["summary"] + "\n")
            rows = [
                f"| `{p['name']}` | {p['in']} | {schema_says(p['schema'])}{', needed' if p['required'] else ''} |"
                for p in operation["parameters"]
                if p["in"] in ("query", "header") and p["name"] != "Idempotency-Key"
            ]
            if rows:
                lines += ["| parameter | in | |", "|---|---|---|", *rows, ""]
            if "requestBody" in operation:
                lines.append(f"Body: {content_says(operation['requestBody']['content'])}\n")
            answers = [
                f"{status}: {content_says(answer['content'])}"
                for status, answer in operation["responses"].items()
                if status != "default" and "content" in answer
            ]
            lines.append(f"Answer: {'; '.join(answers)}\n")
    lines.append("## Types\n")
    for name, schema in sorted(found["components"]["schemas"].items()):
        lines.append(f"### {name}\n")
        if schema.get("description"):
            lines.append(plain(schema["description"]) + "\n")
        if schema.get("properties"):
            lines += ["| field | |", "|---|---|"]
            needed = schema.get("required", [])
            for field, kind in schema["properties"].items():
                lines.append(f"| `{field}` | {schema_says(kind)}{', needed' if field in needed else ''} |")
            lines.append("")
    return "\n".join(lines)


def surfaces_page() -> str:
    """What each verb is called on every surface, from the table that a test holds to the code."""
    from ramet.apps.server.routes import ROUTES
    from ramet.apps.surfaces import ELSEWHERE, LOCAL, NOT_AFAR, OPTIONS, TABLE

    known = {f"{route.method} {route.path}": route for route in ROUTES}
    lines = ["# One engine, many surfaces\n", NOTE, SURFACES_INTRO]
    lines += ["| verb | library | HTTP | Python client | TypeScript | MCP |", "|---|---|---|---|---|---|"]
    for row in TABLE:
        routes = "<br>".join(f"`{route}`{' (administrator)' if known[route].admin else ''}" for route in row.routes)
        mcp = f"`{row.mcp}`" if row.mcp else ""
        lines.append(f"| `{row.verb}` | `{row.library}` | {routes} | `{row.python}` | `{row.typescript}` | {mcp} |")
    lines += ["", "## Verbs of one machine\n", "| verb | why it has no route |", "|---|---|"]
    lines += [f"| `{verb}` | {why} |" for verb, why in LOCAL.items()]
    lines += ["", "## Routes without a verb\n", "| route | what stands for it |", "|---|---|"]
    lines += [f"| `{route}` | {what} |" for route, what in ELSEWHERE.items()]
    lines += ["", "## What the Python client has not\n", "| call | why |", "|---|---|"]
    lines += [f"| `{place}` | {why} |" for place, why in NOT_AFAR.items()]
    for place, (names, why) in OPTIONS.items():
        lines.append(f"| `{place}`: {', '.join(f'`{name}`' for name in names.split())} | {why} |")
    return "\n".join(lines) + "\n"


SURFACES_INTRO = """\
What one surface can do, all can: the command line, the library, the HTTP API and its clients. `ramet --store URL VERB`
asks a server (`http://...`, `https://...`, `unix:/PATH`) in the place of a store; the token is `$RAMET_TOKEN`. Routes
for the administrator need the server's own token where principals have tokens as well.
"""


def content_says(content: dict[str, Any]) -> str:
    return " or ".join(f"{schema_says(kind['schema'])} (`{media}`)" for media, kind in content.items())


def schema_says(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(schema_says(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {schema_says(schema.get('items', {}))}"
    return {"null": "nothing", "object": "mapping"}.get(kind, str(kind))


def config_page() -> str:
    """Every setting of a configuration file, from its declaration."""
    from ramet.workspace.config.declaration import MOUNT, QUOTA, declaration
    from ramet.workspace.config.resources import BACKENDS

    lines = ["# Settings of a configuration file\n", NOTE, "[Configuration files](config.md) tells how to use them.\n"]
    for name, field in declaration().fields.items():
        lines += [f"## {name}\n", f"{field.help} ({field.kind.says})\n"]
        if name == "mounts":
            row = "| `resource` | one of the resources below, or `package.module:Class` | What is mounted. |"
            config = "| `config` | a mapping | The settings of the resource. |"
            lines += ["| setting of a mount | is | |", "|---|---|---|", row, config, *field_rows(MOUNT), ""]
        lines += tables(field.kind)
        if name == "policy":
            lines += ["| part of a rule | is | |", "|---|---|---|", *field_rows(QUOTA), ""]
    lines.append("## Resources\n")
    for name, backend in BACKENDS.items():
        extra = f" Needs `pip install 'ramet[{backend.extra}]'`." if backend.extra else ""
        lines += [f"### {name}\n", f"{backend.says[0].upper()}{backend.says[1:]}.{extra}\n"]
        lines += ["| setting | is | |", "|---|---|---|", *field_rows(backend.fields()), ""]
    return "\n".join(lines)


def tables(kind: Any) -> list[str]:
    """The table of a kind, or of what it holds many of."""
    fields = getattr(kind, "fields", None)
    if fields is not None:
        lines = ["| setting | is | |", "|---|---|---|", *field_rows(fields), ""]
        for name, field in fields.items():
            if hasattr(field.kind, "make"):  # of a dataclass
                lines += [f"| setting of {name} | is | |", "|---|---|---|", *field_rows(field.kind.make().fields), ""]
        return lines
    inner = getattr(kind, "inner", None) or getattr(kind, "table", None)
    return tables(inner) if inner is not None else []


def field_rows(fields: Any) -> list[str]:
    rows = []
    for name, field in fields.items():
        said = escaped(field.kind.says)
        default = "" if field.default in (None, "", ()) else f" Default: `{field.default}`."
        needed = " **Needed.**" if field.required else ""
        rows.append(f"| `{name}` | {said} | {escaped(field.help)}{default}{needed} |")
    return rows


SITE = (
    ("Start", ("index.md", "quickstart.md", "tutorial.md", "cookbook.md", "troubleshooting.md", "comparison.md",
               "tenets.md", "glossary.md")),
    ("How to", ("config.md", "store.md", "ui.md", "http.md", "typescript.md", "mcp.md", "agents.md", "openai-agents.md",
                "agent-run.md", "shell.md", "native.md", "network.md", "backends.md", "writing-a-backend.md",
                "writing-a-service.md")),
    ("Reference", ("cli.md", "python.md", "config-reference.md", "http-reference.md", "surfaces.md", "commands.md",
                   "errors.md", "format.md", "store-promises.md", "architecture.md", "native-internals.md",
                   "concurrency.md")),
    ("Python by subject", (*(f"python/{key}.md" for key in reference.GROUPS), "python/backends.md")),
    ("Commands by family", tuple(f"commands/{family}.md" for family in families())),
)  # fmt: skip
"""The pages of the site by section; `zensical.toml` has the same, which a test checks."""


def llms_page() -> str:
    """An index for models: each page with its first sentence."""
    lines = [
        "# Ramet\n",
        "> Workspaces for AI agents: every backend as one file tree, a real shell over it, every state saved,"
        " versioned, forked and carried elsewhere. A Python library, a command line, an HTTP and an MCP server.\n",
    ]
    for section, names in SITE:
        lines.append(f"## {section}\n")
        for name in names:
            text = (HERE / name).read_text() if name not in PAGES or (HERE / name).exists() else PAGES[name]()
            lines.append(f"- [{title_of(text)}]({name}): {summary_of(text)}")
        lines.append("")
    lines += ["## Optional\n", "- [Skill](../skills/ramet/SKILL.md): how to work in a workspace, for agents.", ""]
    return "\n".join(lines)


def title_of(text: str) -> str:
    return next(line[2:].strip() for line in text.split("\n") if line.startswith("# "))


def summary_of(text: str) -> str:
    """The first sentence of the first paragraph, without links."""
    paragraph: list[str] = []
    for line in text.split("\n"):
        if line and not line.startswith(("#", "<!--", "|", "```", "-", "---")):
            paragraph.append(line)
        elif paragraph:
            break
    words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(paragraph))
    found = re.match(r".*?[.:](?= |$)", words)
    return (found[0] if found else words).rstrip(":.") + "."


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands_page, "python.md": partial(reference.index_page, NOTE),
    **{f"python/{key}.md": partial(reference.group_page, key, NOTE) for key in reference.GROUPS},
    "python/backends.md": partial(reference.backends_page, NOTE),
    **{f"commands/{family}.md": partial(family_page, family) for family in families()},
     "errors.md": errors_page, "cli.md": cli_page, "http-reference.md": http_page,
    "surfaces.md": surfaces_page,
    "config-reference.md": config_page, "llms.txt": llms_page,
}  # fmt: skip


SCHEMA = HERE.parent / "src" / "ramet" / "workspace" / "config" / "schema.json"


def schema_text() -> str:
    from ramet.workspace.config.declaration import schema

    return json.dumps(schema(), indent=1) + "\n"


def nav_text() -> str:
    """The navigation of the site, as `zensical.toml` has it."""
    rows = [f'  {{ "{section}" = [{", ".join(json.dumps(page) for page in pages)}] }},\n' for section, pages in SITE]
    return f"nav = [\n{''.join(rows)}]\n"


def main() -> None:
    for name, make in PAGES.items():
        (HERE / name).parent.mkdir(exist_ok=True)
        (HERE / name).write_text(make())
        print(f"docs/{name}")
    site = HERE.parent / "zensical.toml"
    site.write_text(re.sub(r"nav = \[\n.*?\n\]\n", nav_text(), site.read_text(), flags=re.DOTALL))
    SCHEMA.write_text(schema_text())
    print(SCHEMA.relative_to(HERE.parent))


if __name__ == "__main__":
    main()
