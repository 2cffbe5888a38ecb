"""Verbs for configuration files: check, show, init."""

from __future__ import annotations

import asyncio
import errno
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from ramet.apps.cli.options import AsJson
from ramet.apps.cli.output import show
from ramet.apps.cli.parameters import Argument, Option
from ramet.core.errors import RametError, reason

if TYPE_CHECKING:
    from ramet.workspace.config import Config

File = Annotated[str | None, Argument(help="YAML, TOML or JSON. Default: ramet.yaml, .toml or .json here.")]
HINTS: Final = {
    errno.EACCES: "look at its credentials, and at what they allow",
    errno.EPERM: "look at its credentials, and at what they allow",
    errno.ENOENT: "look at its path or its name",
    errno.ENOTDIR: "look at its path or its name",
    errno.EIO: "does it run, and can it be reached from here?",
}
"""What to do about a mount that cannot be used."""
CONNECT: Final = 15.0
"""Seconds that `check --connect` gives one mount."""

EXAMPLE: Final = """\
# yaml-language-server: $schema={schema}
# `ramet config check` checks this file, `ramet shell --config {name}` begins to work with it.
version: 1
name: {workspace}

mounts:
  /data: {{resource: disk, mode: read, config: {{root: ./data}}}}
  # /s3:
  #   resource: s3
  #   mode: read
  #   config:
  #     bucket: ${{BUCKET:-my-bucket}}
  #     aws_access_key_id: secret:env:AWS_ACCESS_KEY_ID
  #     aws_secret_access_key: secret:file:~/.aws/secret

env:
  LANG: C.UTF-8

# secrets:                      # variables whose values are never recorded
#   API_KEY: env:API_KEY

limits:
  wall_time: 5m

policy:
  deny:
    - {{path: "/data/**", access: write, reason: the data is shared}}
"""


def check(
    file: File = None,
    connect: Annotated[bool, Option("--connect", help="Also reach every mount and look into it.")] = False,
    as_json: AsJson = False,
) -> int:
    """Say everything that is wrong with a file, with line and column. Status 1 when something is."""
    from ramet.workspace.config import load_config

    config = load_config(config_file(file))
    rows = asyncio.run(check_mounts(config)) if connect else []
    if as_json or rows:
        show(rows, ("mount", "resource", "state", "detail"), as_json)
    if not rows and not as_json:
        count = len(config.mounts)
        print(f"{config.file}: {count} mount{'' if count == 1 else 's'}, no problem")
    return int(any(row["state"] != "ok" for row in rows))


def show_config(
    file: File = None,
    resolved: Annotated[
        bool, Option("--resolved", help="With variables filled in and with defaults, and where each came from.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print what a file says, value by value; secrets are never shown."""
    from ramet.workspace.config import ConfigError, read_config

    config, problems = read_config(config_file(file))
    if config is None:
        raise ConfigError(problems)
    rows: list[dict[str, Any]] = []
    for setting in config.settings:
        if resolved:
            rows.append({"setting": setting.path, "value": setting.value, "from": setting.origin})
        elif setting.place is not None:
            where = f"{config.file}:{setting.place.line}"
            rows.append({"setting": setting.path, "value": setting.written, "from": where})
    show(rows, ("setting", "value", "from"), as_json)


def schema(
    path: Annotated[bool, Option("--path", help="Print where the schema is, for an editor's settings.")] = False,
) -> None:
    """Print the JSON schema of such files, for editors."""
    from ramet.workspace import config

    place = Path(config.__file__).with_name("schema.json")
    print(place if path else place.read_text(), end="\n" if path else "")


def init(
    file: Annotated[str, Argument(help="File to write; it must not exist.")] = "ramet.yaml",
    name: Annotated[str | None, Option(help="Name of the workspace. Default: that of the directory.")] = None,
) -> None:
    """Write a file to begin with."""
    from ramet.workspace import config

    if Path(file).suffix not in (".yaml", ".yml"):
        raise RametError("invalid_argument", f"{file} is not a YAML file", "name it with .yaml")
    workspace = name or "".join(c if c.isalnum() else "-" for c in Path(file).absolute().parent.name).strip("-")
    where = Path(config.__file__).with_name("schema.json").as_uri()
    try:
        with open(file, "x", encoding="utf-8") as made:
            made.write(EXAMPLE.format(schema=where, name=file, workspace=workspace or "demo"))
    except FileExistsError:
        raise RametError("already_exists", f"{file} exists already", "check it with `ramet config check`") from None
    print(file)


def config_file(file: str | None) -> str:
    """The file that was given, or the one that is here."""
    from ramet.workspace.config import NAMES

    if file is not None:
        return file
    for name in NAMES:
        if Path(name).is_file():
            return name
    raise RametError("not_found", "there is no ramet.yaml, .toml or .json here", "give a file, or `ramet config init`")


async def check_mounts(config: Config) -> list[dict[str, Any]]:
    """Each mount, made and looked into."""
    from ramet.core.paths import ROOT

    rows: list[dict[str, Any]] = []
    for mount in config.mounts:
        row = {"mount": mount.prefix, "resource": mount.resource, "state": "ok", "detail": ""}
        try:
            resource = mount.make().resource
            try:
                async with asyncio.timeout(CONNECT):
                    async for name, _ in resource.scan(ROOT):
                        row["detail"] = f"has {name}"
                        break
                    else:
                        row["detail"] = "empty"
            finally:
                await resource.close()
        except TimeoutError:
            row.update(state="bad", detail=f"no answer in {CONNECT:g} s")
        except RametError as error:
            row.update(state="bad", detail=f"{error.cause}: {error.remediation}")
        except OSError as error:
            told = reason(error)
            hint = "" if "; check" in told else HINTS.get(error.errno or 0)
            row.update(state="bad", detail=f"{told}; {hint}" if hint else told)
        except ValueError as error:
            row.update(state="bad", detail=str(error))
        print(f"{row['mount']}: {row['state']}", file=sys.stderr) if sys.stderr.isatty() else None
        rows.append(row)
    return rows
