"""Configuration files: what they may say, everything that is wrong at once, where each value came from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ramet import Store, Workspace, load_config
from ramet.core.errors import RametError
from ramet.workspace.config import ConfigError, read_config
from ramet.workspace.config.declaration import declaration, schema
from ramet.workspace.config.kinds import TableKind
from ramet.workspace.config.resources import BACKENDS
from ramet.workspace.workspace import Settings


def written(folder: Path, text: str, name: str = "ramet.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def problems(folder: Path, text: str, name: str = "ramet.yaml", **variables: str) -> list[str]:
    with pytest.raises(ConfigError) as error:
        load_config(written(folder, text, name), variables=variables)
    return [str(problem).replace(f"{folder}/", "") for problem in error.value.problems]


WRONG: list[tuple[str, str]] = [
    ("native: true\npolicy: {hide: [{path: '**/.env'}]}",
     "2:9: policy: cannot run native programs: the policy rule '**/.env' is a pattern that is not PATH or PATH/**;"
     " Name a path, or PATH/**; or give the rule `native: false`, and it holds for commands in process only."),
    ("mount: {}", "1:1: unknown setting 'mount'; did you mean mounts?"),
    ("mounts: 3", "1:9: mounts: a mapping is expected, and this is a number"),
    ("mounts:\n  data: {resource: ram}", "2:3: mounts: 'data' cannot be a name here; a prefix begins with /"),
    ("mounts:\n  /d: {resource: dsk}", "2:18: mounts./d.resource: unknown resource 'dsk'; did you mean disk?"),
    ("mounts:\n  /d: {mode: read}", "2:3: mounts./d: resource is missing; use one of ram, disk, s3, gcs, azure, redis,"
     " ssh, http"),
    ("mounts:\n  /d: {resource: ram, mode: reed}", "2:29: mounts./d.mode: 'reed' is not one of the choices; did you"
     " mean read?"),
    ("mounts:\n  /d: {resource: ram, moode: r}", "2:23: mounts./d: unknown setting of a mount 'moode'; did you mean"
     " mode?"),
    ("mounts:\n  /d: {resource: disk}", "2:3: mounts./d.config: root is missing; The directory; relative to the"
     " configuration file."),
    ("mounts:\n  /d: {resource: disk, config: {rooot: x}}", "2:33: mounts./d.config: unknown setting of disk 'rooot';"
     " did you mean root?"),
    ("mounts: {/a: {resource: ram}, /a/: {resource: ram}}", "1:31: mounts: /a/ and /a are the same place"),
    ("mounts:\n  /s: {resource: s3, config: {bucket: b, aws_secret_access_key: hunter2}}",
     "2:65: mounts./s.config.aws_secret_access_key: a secret in plain text is not allowed here; write"
     " secret:env:NAME or secret:file:PATH"),
    ("env: {A: '${NOPE}'}", "1:10: env.A: the variable NOPE is not set; write ${NOPE:-default}"),
    ("env: {A: '${HOMME}'}", "1:10: env.A: the variable HOMME is not set; did you mean HOME?"),
    ("env: {A: '${a b}'}", "1:10: env.A: ${a b} is not understood; write ${NAME} or ${NAME:-default}"),
    ("env: {A: secret:env:HOME}", "1:10: env.A: a secret would be recorded here; give it its name below `secrets:`,"
     " which are variables, too"),
    ("env: {1A: x}", "1:7: env: '1A' cannot be a name here; a variable has letters, digits and _"),
    ("secrets: {K: env:NOPE}", "1:14: secrets.K: the secret's variable NOPE is not set; set it before you begin"),
    ("secrets: {K: vault:x}", "1:14: secrets.K: a secret in plain text is not allowed here; write secret:env:NAME or"
     " secret:file:PATH"),
    ("secrets: {K: secret:vault:x}", "1:14: secrets.K: 'vault' is not a source of secrets; write secret:env:NAME or"
     " secret:file:PATH"),
    ("native: 3", "1:9: native: true or false is expected, and this is a number"),
    ("native:\n  limits: {processes: 0}", "2:3: native.limits: native limit processes is 0; Give a number above 0."),
    ("native: {limits: {proceses: 9}}", "1:19: native.limits: unknown native limit 'proceses'; did you mean"
     " processes?"),
    ("native: {limits: {memory_bytes: much}}", "1:33: native.limits.memory_bytes: a size, as in 16MiB is expected, and"
     " this is 'much'"),
    ("limits: {wall_time: soon}", "1:21: limits.wall_time: seconds, or as in 5m is expected, and this is 'soon'"),
    ("limits: {open_files: 1.5}", "1:22: limits.open_files: a whole number is expected, and this is 1.5"),
    ("limits: {recursion: -1}", "1:21: limits.recursion: -1 is too small: 0 is the least"),
    ("limits: {output_bytes: true}", "1:24: limits.output_bytes: a size, as in 16MiB is expected, and this is true or"
     " false"),
    ("policy: {deny: [{path: /x, acess: read}]}", "1:28: policy.deny[0]: unknown part of a rule 'acess'; did you mean"
     " access?"),
    ("policy: {deny: [{reason: no}]}", "1:17: policy.deny[0]: command or path is needed"),
    ("policy: {deny: {path: /x}}", "1:16: policy.deny: a list is expected, and this is a mapping; put it in [ ]"),
    ("commit: {when: timer}", "1:9: commit: a timer needs every; give the seconds between commits"),
    ("commit: {when: close, every: 3}", "1:9: commit.every: every has no effect with close; leave it out"),
    ("commit: {drafts: eech}", "1:18: commit.drafts: 'eech' is not one of the choices; did you mean each?"),
    ("commit: {drafts: 0}", "1:18: commit.drafts: 0 is not an interval; use each"),
    ("commit: {drafts: 5 parsecs}", "1:18: commit.drafts: seconds, or as in 5m is expected, and this is '5 parsecs'"),
    ("commit: {scan: loud}", "1:16: commit.scan: 'loud' is not one of the choices; use off or report or refuse"),
    ("commands: {x: nothing}", "1:15: commands.x: 'nothing' cannot be used; write package.module:function"),
    ("mounts: {/: {resource: ram}}\ncommands: {x: {python: 'a:b', mount: /d}}", "2:11: commands: nothing is mounted at"
     " /d"),
    ("server: {certificate: x.pem}", "1:9: server: a certificate and its key belong together"),
    ("name: a/b", "1:7: name: 'a/b' cannot be used; use letters, digits, . _ -"),
    ("version: 2", "1:10: version: '2' is not one of the choices; use 1"),
    ("a: [1", "1:6: expected ',' or ']', but got '<stream end>'"),
    ("env: {A: 1}\nenv: {B: 2}", "2:1: 'env' is given twice, first on line 1"),
    ("env: !!python/object:x {}", "1:6: env: a mapping is expected, and this is text"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), WRONG, ids=[said[:60] for _, said in WRONG])
def test_what_is_wrong_is_reported_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    if "python/object" in text:
        text, said = "env: {A: !x y}", "1:10: the tag !x means nothing here"
    assert problems(tmp_path, text, HOME="/h") == [f"ramet.yaml:{said}"]


@pytest.mark.parametrize(
    ("text", "drafts"),
    [("each", "each"), ("off", "off"), ("5", 5.0), ("2m", 120.0), ("${D:-30s}", 30.0), ("${D:-each}", "each")],
)
def test_drafts_are_each_off_or_a_time(tmp_path: Path, text: str, drafts: str | float) -> None:
    (tmp_path / "ramet.yaml").write_text(f"name: d\ncommit: {{drafts: {text!r}}}\n".replace("'off'", "off"))
    config = load_config(tmp_path / "ramet.yaml", variables={})
    assert (config.commit.drafts, config.commit.scan) == (drafts, "off")
    told = {setting.path: setting.value for setting in config.settings}
    assert told["commit.drafts"] == drafts and told["commit.scan"] == "off"


def test_what_a_file_says_of_drafts_holds(tmp_path: Path) -> None:
    (tmp_path / "ramet.yaml").write_text("name: d\ncommit: {when: never, drafts: each, scan: refuse}\n")
    config = load_config(tmp_path / "ramet.yaml", variables={})
    store = Store(str(tmp_path / "store"))

    async def work() -> list[Path]:
        async with config.open(store) as ws:
            await ws.execute("echo drafted > /f")
            return [one for one in (tmp_path / "store" / "drafts").rglob("*") if one.is_file()]

    assert asyncio.run(work())


def test_all_problems_are_reported_together(tmp_path: Path) -> None:
    text = "mounts:\n  /a: {resource: nope}\n  /b: {resource: disk}\nenv: {A: '${X}', B: '${Y}'}\nlimit: {}\n"
    assert [line.split(":")[1] for line in problems(tmp_path, text)] == ["2", "3", "4", "4", "5"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("c.json", '{\n "mounts": {\n  "/d": {"resource": "dsk"}}}', "3:22: mounts./d.resource: unknown resource"),
        ("c.json", '{"env": {"A": 1,}}', "1:17: a name in double quotes is expected here"),
        ("c.json", '{"a": 1, "a": 2}', "1:10: 'a' is given twice, first on line 1"),
        ("c.json", '{"a": "x', "1:7: Unterminated string"),
        ("c.json", "[1] 2", "1:5: something follows the end"),
        ("c.json", "[1]", "1:1: a mapping is expected, and this is a list"),
        ("c.json", "", "1:1: the file ends here"),
        ("c.toml", '[mounts."/d"]\nresource = "ram"\nmode = "reed"\n', "3:8: mounts./d.mode: 'reed' is not one"),
        ("c.toml", "x = \n", "1:5: Invalid value"),
        ("c.toml", 'nmae = "x"\n', "1:1: unknown setting 'nmae'; did you mean name?"),
    ],
)
def test_json_and_toml_know_their_places(tmp_path: Path, name: str, text: str, said: str) -> None:
    (found,) = problems(tmp_path, text, name)
    assert found.startswith(f"{name}:{said}")


def test_a_file_of_aliases_of_aliases_is_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [1,1,1,1,1,1,1,1,1]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    (found,) = problems(tmp_path, "\n".join(lines))
    assert "says too much" in found
    assert "says too much" in problems(tmp_path, "a: &a {b: *a}")[0]


def test_anchors_and_merges(tmp_path: Path) -> None:
    text = "mounts:\n  /a: &m {resource: disk, mode: read, config: {root: a}}\n  /b: {<<: *m, mode: write}\n"
    first, second = load_config(written(tmp_path, text)).mounts
    assert (first.mode, second.mode, second.config["root"]) == ("read", "write", str(tmp_path / "a"))


FULL = """\
name: proj
mounts:
  /data: {resource: disk, mode: ro, config: {root: "${DATA:-data}"}}
  /mem: {resource: ram, config: {quota: 1MiB}}
env: {GREETING: "hello ${WHO}", PORT: 8080, LITERAL: "$${x}", SWITCH: on}
secrets: {TOKEN: env:TOKEN, OTHER: "secret:file:other.txt"}
limits: {wall_time: 2m, output_bytes: 1MB}
policy:
  default: allow
  deny: [{command: rm, reason: nothing is removed here}]
cache: {bytes: 10MiB}
user: {name: ann, home: /home/ann}
commands: {shout: "tests.workspace.test_config:shout"}
sessions: {worker: {cwd: /mem, env: {ROLE: w}}}
"""
GIVEN = {"WHO": "world", "TOKEN": "tok-12345", "DATA": ""}


async def shout(proc: Any) -> str:
    return " ".join(proc.argv[1:]).upper()


def full(folder: Path) -> Path:
    (folder / "other.txt").write_text("other-secret\n")
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / "f").write_text("1\n")
    return written(folder, FULL)


def test_a_workspace_is_what_its_file_says(tmp_path: Path) -> None:
    async def test() -> None:
        async with Workspace.from_config(full(tmp_path), variables=GIVEN) as ws:
            said = await ws.execute('echo "$GREETING $PORT $LITERAL $SWITCH $TOKEN $OTHER $USER"; cat /data/f; shout a')
            assert said.text == "hello world 8080 ${x} on tok-12345 other-secret ann\n1\nA\n"
            assert (await ws.execute("echo x > /data/f")).exit_code == 1
            assert "nothing is removed here" in (await ws.execute("rm /mem/x")).error_text
            assert (await ws.execute("pwd; echo $ROLE", "worker")).text == "/mem\nw\n"
            assert ws.settings.limits.wall_time == 120 and ws.settings.limits.output_bytes == 1_000_000
            assert ws.settings.cache_bytes == 10 << 20
            assert (await ws.execute("head -c 2000000 /dev/zero > /mem/big")).exit_code == 1
            assert "tok-12345" not in str([record.as_dict() for record in ws.history])

    asyncio.run(test())


def test_where_each_value_came_from(tmp_path: Path) -> None:
    path = full(tmp_path)
    config = load_config(path, variables=GIVEN)
    found = {setting.path: (setting.value, setting.origin) for setting in config.settings}
    assert found["env.GREETING"] == ("hello world", "variable WHO")
    assert found["mounts./data.config.root"] == (str(tmp_path / "data"), "default of ${DATA}")
    assert found["mounts./data.mode"] == ("read", f"{path}:3")
    assert found["mounts./mem.mode"] == ("write", "default")
    assert found["secrets.TOKEN"] == ("<REDACTED>", "secret from variable TOKEN")
    shown = repr(config) + repr(config.settings)
    assert "tok-12345" not in shown and "other-secret" not in shown


def test_a_secret_of_a_mount_is_nowhere_to_be_seen(tmp_path: Path) -> None:
    keys = "aws_access_key_id: secret:env:K, aws_secret_access_key: secret:env:K"
    text = f"mounts:\n  /s: {{resource: r2, config: {{account: a, bucket: b, {keys}}}}}\n"
    config = load_config(written(tmp_path, text), variables={"K": "hunter2-hunter2"})
    mount = config.make_mounts()["/s"]
    shown = repr(config) + repr(mount) + repr(config.settings)
    assert "hunter2" not in shown and config.mounts[0].config["aws_secret_access_key"] == "hunter2-hunter2"


def test_a_stored_workspace_keeps_memory_and_takes_directories_as_they_are(tmp_path: Path) -> None:
    config = load_config(full(tmp_path), variables=GIVEN)
    store = Store(str(tmp_path / "store"))

    async def run(command: str) -> str:
        async with config.open(store) as ws:
            return (await ws.execute(command)).text

    assert asyncio.run(run("echo kept > /mem/k; echo root > /r; cat /data/f")) == "1\n"
    (tmp_path / "data" / "f").write_text("changed outside\n")
    assert asyncio.run(run("cat /mem/k /r /data/f; echo $GREETING")) == "kept\nroot\nchanged outside\nhello world\n"
    assert (tmp_path / "data" / "f").read_text() == "changed outside\n"
    other = load_config(tmp_path / "ramet.yaml", variables={**GIVEN, "WHO": "you"})

    async def greet() -> str:
        async with other.open(store) as ws:
            return (await ws.execute("printenv GREETING; rm /r")).text

    assert asyncio.run(greet()) == "hello you\n"


def test_what_cannot_be_made_is_reported_with_its_place(tmp_path: Path) -> None:
    text = "mounts:\n  /d: {resource: disk, config: {root: nope, create: false}}\n  /x: {resource: 'a.b:C'}\n"
    config = load_config(written(tmp_path, text))
    with pytest.raises(ConfigError) as error:
        config.workspace()
    assert [(problem.line, problem.setting) for problem in error.value.problems] == [(2, "mounts./d"), (3, "mounts./x")]
    with pytest.raises(RametError, match="names no workspace"):
        config.open()


def test_a_resource_of_ones_own(tmp_path: Path) -> None:
    text = "mounts:\n  /x: {resource: 'ramet.backends.local.disk:DiskResource', config: {root: .}}\n"
    mount = load_config(written(tmp_path, text)).make_mounts()["/x"]
    assert getattr(mount.resource, "root", None) == str(Path().absolute())


@pytest.mark.parametrize("name", ["nope.yaml", "ramet.txt"])
def test_no_file_no_config(tmp_path: Path, name: str) -> None:
    (tmp_path / "ramet.txt").write_text("")
    with pytest.raises(RametError):
        read_config(tmp_path / name)


def test_an_empty_file_is_a_workspace_in_memory(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, ""))
    assert config.name is None and config.mounts == () and config.workspace_settings == Settings()


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_bytes(b'{\n"a": "\xff"}')
    with pytest.raises(ConfigError, match=r"c\.json:2:7: the file is not UTF-8"):
        load_config(tmp_path / "c.json")


# --------------------------------------------------------------------------------------------------------- schema


def test_the_schema_that_is_shipped_is_that_of_the_declaration() -> None:
    import ramet.workspace.config as package

    shipped = json.loads(Path(package.__file__).with_name("schema.json").read_text())
    assert shipped == json.loads(json.dumps(schema())), "run `make docs`"


def plain(text: str) -> Any:
    import yaml  # type: ignore[import-untyped]

    return yaml.safe_load(text)


def test_the_schema_takes_what_we_take_and_refuses_what_we_refuse() -> None:
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

    Draft202012Validator.check_schema(schema())
    checker = Draft202012Validator(schema())
    assert list(checker.iter_errors(plain(FULL))) == []
    for text in (
        "mount: {}", "mounts: {/d: {resource: dsk}}", "mounts: {/d: {resource: disk}}", "mounts: {d: {resource: ram}}",
        "mounts: {/d: {resource: ram, mode: reed}}", "mounts: {/d: {resource: disk, config: {rot: x}}}",
        "secrets: {K: plain}", "policy: {deny: [{reason: no}]}", "limits: {recursion: -1}", "version: 2",
        "mounts: {/s: {resource: s3, config: {bucket: b, aws_secret_access_key: hunter2}}}",
    ):  # fmt: skip
        assert list(checker.iter_errors(plain(text))), text


def test_every_setting_of_a_backend_has_a_kind_and_every_setting_a_help() -> None:
    for row in BACKENDS.values():
        assert isinstance(row.fields(), Mapping)
    for name, field in declaration().fields.items():
        assert field.help, name
    assert isinstance(declaration(), TableKind)
