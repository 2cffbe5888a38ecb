"""What the SDK gives its models, on its local backend and on ours: patches, shell, images, skills, memory, `cwd`."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents.sandbox")

from agents import RunConfig, Runner
from agents.sandbox import Manifest, SandboxAgent, SandboxRunConfig
from agents.sandbox.capabilities import Filesystem, Memory, Shell, Skill, Skills
from agents.sandbox.capabilities.skills import LocalDirLazySkillSource
from agents.sandbox.capabilities.tools.view_image import ViewImageArgs, ViewImageTool
from agents.sandbox.config import MemoryReadConfig
from agents.sandbox.entries import Dir, File, LocalDir
from agents.sandbox.errors import (
    ApplyPatchDecodeError,
    ApplyPatchDiffError,
    ApplyPatchFileNotFoundError,
    ApplyPatchPathError,
    InvalidManifestPathError,
)
from tests.agents.openai_local import CLIENTS, Box, in_box

# The SDK's local backend leaves files and processes for the collector, which may come during any later test.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+a84QAAAAASUVORK5CYII=")
MANIFEST = Manifest(
    entries={
        "a.txt": File(content=b"one\ntwo\nthree\n"),
        "d": Dir(children={"b": File(content=b"b\n")}),
    }
)

PATCHES: dict[str, tuple[list[dict[str, object]], str, bytes]] = {
    "an update": (
        [{"type": "update_file", "path": "a.txt", "diff": "@@\n one\n-two\n+2\n three\n"}],
        "cat a.txt", b"one\n2\nthree\n"),
    "a new file": ([{"type": "create_file", "path": "n/x", "diff": "+hi\n+ho\n"}], "cat n/x", b"hi\nho"),
    "a file that goes": ([{"type": "delete_file", "path": "d/b"}], "ls d", b""),
    "several": (
        [{"type": "create_file", "path": "x", "diff": "+x\n"},
         {"type": "update_file", "path": "d/b", "diff": "@@\n-b\n+c\n"}, {"type": "delete_file", "path": "a.txt"}],
        "cat x d/b; ls", b"xc\nd\nx\n"),
}  # fmt: skip
REFUSED: dict[str, tuple[dict[str, object], Any]] = {
    "of nothing": ({"type": "update_file", "path": "no", "diff": "@@\n-x\n+y\n"}, ApplyPatchFileNotFoundError),
    "that does not fit": ({"type": "update_file", "path": "a.txt", "diff": "@@\n-x\n+y\n"}, ApplyPatchDiffError),
    "above": ({"type": "create_file", "path": "../x", "diff": "+x\n"}, (ApplyPatchPathError, InvalidManifestPathError)),
    "elsewhere": (
        {"type": "create_file", "path": "/etc/x", "diff": "+x\n"}, (ApplyPatchPathError, InvalidManifestPathError)),
    "without a path": ({"type": "create_file", "path": "", "diff": "+x\n"}, ApplyPatchPathError),
    "of bytes": ({"type": "update_file", "path": "bytes", "diff": "@@\n-x\n+y\n"}, ApplyPatchDecodeError),
    "that deletes nothing": ({"type": "delete_file", "path": "no"}, ApplyPatchFileNotFoundError),
}  # fmt: skip


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", PATCHES)
def test_patches(client: Any, name: str) -> None:
    operations, command, expected = PATCHES[name]

    async def use(box: Box) -> None:
        assert isinstance(await box.session.apply_patch(operations), str)
        assert await box.out(command) == expected

    in_box(client, use, manifest=MANIFEST)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", REFUSED)
def test_refused_patches(client: Any, name: str) -> None:
    operation, error = REFUSED[name]

    async def use(box: Box) -> None:
        await box.put("bytes", b"\xff\xfe\0")
        before = await box.tree()
        with pytest.raises(error):
            await box.session.apply_patch(operation)
        assert await box.tree() == before

    in_box(client, use, manifest=MANIFEST)


def tools_of(capability: Any, session: Any) -> dict[str, Any]:
    capability.bind(session)
    return {tool.name: tool for tool in capability.tools()}


async def call(tool: Any, **arguments: Any) -> str:
    return str(await tool.on_invoke_tool(None, json.dumps(arguments)))


@pytest.mark.parametrize("client", CLIENTS)
def test_the_shell_tools(client: Any) -> None:
    async def use(box: Box) -> None:
        tools = tools_of(Shell(), box.session)
        run = tools["exec_command"]
        said = await call(run, cmd="cat a.txt; exit 3")
        assert "Process exited with code 3" in said and "two" in said
        assert "b" in (await call(run, cmd="ls", workdir="d")).split("Output:")[1]
        started = await call(run, cmd="read x; echo got-$x", tty=True, yield_time_ms=300)
        number = int(started.split("session ID ")[1].split()[0])
        assert "got-7" in await call(tools["write_stdin"], session_id=number, chars="7\n", yield_time_ms=3000)
        assert "not found" in (await call(tools["write_stdin"], session_id=number, chars="")).lower()
        assert "one" in await call(run, cmd="cat a.txt", shell="bash", login=False)

    in_box(client, use, manifest=MANIFEST)


@pytest.mark.parametrize("client", CLIENTS)
def test_the_file_tools(client: Any) -> None:
    async def use(box: Box) -> None:
        assert {"apply_patch", "view_image"} <= set(tools_of(Filesystem(), box.session))

        async def view(path: str) -> Any:
            return await ViewImageTool(session=box.session).run(ViewImageArgs(path=path))

        await box.put("p.png", PNG)
        shown = await view("p.png")
        assert shown.image_url == "data:image/png;base64," + base64.b64encode(PNG).decode()
        for path in ("a.txt", "nope.png", "d"):
            assert isinstance(await view(path), str)
        await box.out("head -c 11000000 /dev/zero > large.png")
        assert "10MB" in await view("large.png")

    in_box(client, use, manifest=MANIFEST)


@pytest.mark.parametrize("client", CLIENTS)
def test_skills(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "skills/lazy/scripts").mkdir(parents=True)
    (tmp_path / "skills/lazy/SKILL.md").write_text("---\nname: lazy\ndescription: later\n---\nbody\n")
    (tmp_path / "skills/lazy/scripts/run.sh").write_text("echo lazily\n")
    eager = Skills(
        skills=[
            Skill(
                name="sum", description="adds", content="# sum", scripts={"run.sh": File(content=b"echo $(($1 + $2))")}
            )
        ]
    )
    lazy = Skills(lazy_from=LocalDirLazySkillSource(source=LocalDir(src=Path("skills"))), skills_path="later")

    async def use(box: Box) -> None:
        assert await box.out("cat .agents/sum/SKILL.md") == b"# sum"
        assert await box.out("sh .agents/sum/scripts/run.sh 2 3") == b"5\n"
        lazy.bind(box.session)
        assert "lazy" in (await lazy.instructions(box.session.state.manifest) or "")
        assert (await lazy.load_skill("lazy"))["status"] in ("loaded", "ok")
        assert await box.out("sh later/lazy/scripts/run.sh") == b"lazily\n"
        assert (await lazy.load_skill("lazy"))["status"] == "already_loaded"

    in_box(client, use, manifest=lazy.process_manifest(eager.process_manifest(MANIFEST.model_copy(deep=True))))


@pytest.mark.parametrize("client", CLIENTS)
def test_memory(client: Any) -> None:
    async def use(box: Box) -> None:
        memory = Memory(read=MemoryReadConfig(live_update=False), generate=None)
        memory.bind(box.session)
        assert await memory.instructions(box.session.state.manifest) is None
        await box.put("memories/memory_summary.md", b"the user likes tea")
        assert "likes tea" in (await memory.instructions(box.session.state.manifest) or "")

    in_box(client, use, manifest=MANIFEST)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_run_in_a_directory(client: Any) -> None:
    testing = pytest.importorskip("agents.testing", reason="the SDK has no scripted model yet")
    try:
        config = SandboxRunConfig(cwd="tasks/one")
    except TypeError:
        pytest.skip("the SDK has no cwd yet")

    async def use(box: Box) -> None:
        await box.put("tasks/one/seed", b"from here")
        steps = [
            [testing.function_call("exec_command", {"cmd": "cat seed > made; pwd"}, call_id="1")],
            [testing.assistant_message("done", item_id="m")],
        ]
        agent = SandboxAgent(name="a", model=testing.ScriptedModel(steps), capabilities=[Shell()])
        config.session = box.session
        result = await Runner.run(agent, "go", run_config=RunConfig(sandbox=config))
        assert result.final_output == "done"
        assert await box.get("tasks/one/made") == b"from here"

    in_box(client, use, manifest=MANIFEST)
