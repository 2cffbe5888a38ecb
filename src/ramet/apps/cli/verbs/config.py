"""Verbs for configuration files: check, show, use, schema, init."""

from __future__ import annotations

import asyncio
import errno
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from ramet.apps.cli.addresses import name_only
from ramet.apps.cli.options import AsJson, Where, WholeName, known_names
from ramet.apps.cli.output import say, show
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.parser import nearest
from ramet.apps.cli.stores import HOME, local_store
from ramet.core.errors import RametError, reason

if TYPE_CHECKING:
    from ramet.workspace.config import Config

File = Annotated[str | None, Argument(help="YAML, TOML or JSON. Default: ramet.yaml, .toml or .json here.")]
HINTS: Final = {
    errno.EACCES: "check its credentials and their permissions",
    errno.EPERM: "check its credentials and their permissions",
    errno.ENOENT: "check its path or name",
    errno.ENOTDIR: "check its path or name",
    errno.EIO: "check that it runs and that you can reach it from here",
}
"""Remediations for a mount that does not work, by errno."""
CONNECT: Final = 15.0
"""Seconds that `check --connect` waits for one mount."""

EXAMPLE: Final = """\
# yaml-language-server: $schema={schema}
# `ramet config check` checks this file, `ramet shell --config {name}` opens a shell with it.
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
    connect: Annotated[bool, Option("--connect", help="Also connect to every mount and list it.")] = False,
    as_json: AsJson = False,
) -> int:
    """List every error of a configuration file, with line and column. Status 1 if there is one."""
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
    place: Annotated[
        str | None,
        Argument(help="Workspace, or a file. Default: ramet.yaml, .toml or .json here.", complete=known_names),
    ] = None,
    store: Where = HOME,
    resolved: Annotated[
        bool, Option("--resolved", help="Fill in variables and defaults, and show where each value came from.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the configuration of a workspace or a file, value by value; secrets are never shown."""
    from ramet.workspace.config import SUFFIXES, ConfigError, read_config
    from ramet.workspace.config.attachment import attached

    if place is None or place.endswith(SUFFIXES) or Path(place).is_file():
        config, problems = read_config(config_file(place))
    else:
        found, name = local_store(store), name_only(place)
        if name not in found:
            raise RametError("not_found", f"{name!r} is neither a file nor a workspace", _likely(name))
        kept = attached(found, name)
        if kept is None:
            show([], (), as_json, empty=f"{name} has no configuration; `ramet config use {name} FILE` gives it one")
            return
        if kept.outdated:
            print(f"ramet: {kept.file} has changed since; `ramet config use` takes it over", file=sys.stderr)
        config, problems = kept.read()
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


def _likely(word: str) -> str:
    """The hint after a word that is neither a verb of `config` nor a name."""
    verbs = ("check", "show", "use", "schema", "init")
    return nearest(word, list(verbs)) or f"use one of {', '.join(verbs)}, or see `ramet ls`"


def use(
    name: WholeName,
    file: Annotated[str | None, Argument(help="Configuration file that it keeps from now on.")] = None,
    forget: Annotated[bool, Option("--forget", help="Forget the configuration that it has.")] = False,
    store: Where = HOME,
    as_json: AsJson = False,
) -> None:
    """Give a workspace a configuration file: it is opened with its mounts, policy and network from now on.
    The store keeps the text; secrets in it stay references.
    """
    from ramet.workspace.config.attachment import attach, detach

    where = name_only(name)
    if forget == (file is not None):
        raise RametError(
            "invalid_argument", "missing argument FILE", f"write ramet config use {where} FILE or --forget"
        )
    if file is None:
        detach(local_store(store), where)
    else:
        attach(local_store(store), where, file)
    say({"workspace": where, "file": file}, where, as_json)


def schema(
    path: Annotated[bool, Option("--path", help="Print the path of the schema, for an editor's settings.")] = False,
) -> None:
    """Print the JSON schema of configuration files, for editors."""
    from ramet.workspace import config

    place = Path(config.__file__).with_name("schema.json")
    print(place if path else place.read_text(), end="\n" if path else "")


def init(
    file: Annotated[str, Argument(help="File to write; it must not exist.")] = "ramet.yaml",
    name: Annotated[str | None, Option(help="Name of the workspace. Default: the directory's name.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a starter configuration file."""
    from ramet.workspace import config

    if Path(file).suffix not in (".yaml", ".yml"):
        raise RametError("invalid_argument", f"cannot write {file}: not a YAML file", "use a name in .yaml")
    workspace = name or "".join(c if c.isalnum() else "-" for c in Path(file).absolute().parent.name).strip("-")
    where = Path(config.__file__).with_name("schema.json").as_uri()
    try:
        with open(file, "x", encoding="utf-8") as made:
            made.write(EXAMPLE.format(schema=where, name=file, workspace=workspace or "demo"))
    except FileExistsError:
        raise RametError("already_exists", f"cannot write {file}: file exists", "see `ramet config check`") from None
    say({"file": file}, file, as_json)


def config_file(file: str | None) -> str:
    """Return the given file, or the one in the current directory."""
    from ramet.workspace.config import NAMES

    if file is not None:
        return file
    for name in NAMES:
        if Path(name).is_file():
            return name
    raise RametError("not_found", "no ramet.yaml, .toml or .json here", "name a file, or run `ramet config init`")


async def check_mounts(config: Config) -> list[dict[str, Any]]:
    """Connect to each mount and list its root; return one row each."""
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
