"""Makes the reference pages from the code: `make docs`. A test fails when a page is not what this would write."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

from ramet.commands.declare import Command, Spec
from ramet.commands.table import COMMANDS, Lazy
from ramet.core.errors import CODES

HERE = Path(__file__).parent
NOTE = "<!-- Made by docs/generate.py; do not edit. -->\n"


def spelled(spec: Spec) -> str:
    argument = "" if spec.takes == "none" else f"[={spec.metavar}]" if spec.takes == "optional" else f" {spec.metavar}"
    return ", ".join(f"`{name}{argument}`" for name in spec.names)


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def commands_page() -> str:
    lines = ["# Commands\n", NOTE]
    lines.append(
        f"{len(COMMANDS)} commands, each written once for every mount. `NAME --help` and `man NAME` say the same as"
    )
    lines.append("this page. *refused* options exist in the original and cannot work here; they fail loudly.\n")
    for name, lazy in sorted(COMMANDS.items()):
        assert isinstance(lazy, Lazy)
        command: Command = lazy.load()
        if command.name != name:
            continue  # shown under the name it is an alias of
        lines.append(f"## {name}\n")
        lines.append(f"{command.summary} Usage: `{name} {command.usage}`\n")
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


PAGES = {"commands.md": commands_page, "errors.md": errors_page}


SCHEMA = HERE.parent / "src" / "ramet" / "workspace" / "config" / "schema.json"


def schema_text() -> str:
    from ramet.workspace.config.declaration import schema

    return json.dumps(schema(), indent=1) + "\n"


def main() -> None:
    for name, make in PAGES.items():
        (HERE / name).write_text(make())
        print(f"docs/{name}")
    SCHEMA.write_text(schema_text())
    print(SCHEMA.relative_to(HERE.parent))


if __name__ == "__main__":
    main()
