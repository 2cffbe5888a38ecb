"""Documentation is code: every Python block of the README and of docs/ runs, so does every
`$ ramet` line, with the output that is shown; every relative link leads somewhere."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs import generate

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("**/*.md"), *(ROOT / "skills").glob("**/*.md")]
)
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)[^)]*\)")


def blocks(language: str) -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for number, (kind, text) in enumerate(FENCE.findall(page.read_text())):
            if kind == language:
                found.append((f"{page.relative_to(ROOT)}#{number}", text))
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """`ramet serve` for the blocks that talk to one: they find it in `RAMET_URL` and `RAMET_TOKEN`."""
    folder = tmp_path_factory.mktemp("server")
    place, token = folder / "s", folder / "token"
    words = [sys.executable, "-m", "ramet.apps.cli", "serve", "--store", str(folder / "store")]
    process = subprocess.Popen([*words, "--socket", str(place), "--token-file", str(token)], stderr=subprocess.DEVNULL)
    try:
        for _ in range(4_000):
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(str(place)) == 0:
                    break
            time.sleep(0.05)
        yield {"RAMET_URL": f"unix:{place}", "RAMET_TOKEN": token.read_text().strip()}
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(("where", "code"), blocks("python"), ids=lambda value: value if "#" in value[:60] else "")
def test_python_blocks_run(where: str, code: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    given = request.getfixturevalue("server") if "RAMET_URL" in code else {}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, **given}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{where}:\n{done.stderr}"


VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "TIME"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b\d+\.\d+\b"), "SECONDS"),
    (re.compile(r"[ ─]{2,}"), "  "),
)
"""What differs from run to run, and how wide it makes a column."""


def steady(text: str) -> str:
    for pattern, word in VARYING:
        text = pattern.sub(word, text)
    return text


CONSOLE = sorted(page for page in PAGES if "```console" in page.read_text())
TITLED = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```', re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", CONSOLE, ids=lambda page: page.name)
def test_console_blocks_show_what_happens(page: Path, tmp_path: Path) -> None:
    """`$ ramet ...` of a page, one after the other in one directory; `...` stands for any lines."""
    text = page.read_text()
    for name, content in TITLED.findall(text):
        (tmp_path / name).write_text(content)
    env = {name: value for name, value in os.environ.items() if not name.startswith("RAMET_")}
    env |= {"RAMET_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "LOGNAME": "you"}
    for block in (content for kind, content in FENCE.findall(text) if kind == "console"):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, expected = step.partition("\n")
            words = shlex.split(line)
            assert words[0] == "ramet", line
            done = subprocess.run(
                [sys.executable, "-m", "ramet.apps.cli", *words[1:]], cwd=tmp_path, env=env, text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            )  # fmt: skip
            pattern = re.escape(steady(expected)).replace(re.escape("...\n"), "(?:.*\n)*")
            assert re.fullmatch(pattern, steady(done.stdout)), f"{line}\n{done.stdout}"


FILES = [*blocks("yaml"), ("examples/ramet.yaml", (ROOT / "examples" / "ramet.yaml").read_text())]


@pytest.mark.parametrize(("where", "text"), FILES, ids=lambda value: value if "\n" not in value else "")
def test_configurations_are_what_the_schema_allows(where: str, text: str) -> None:
    import yaml  # type: ignore[import-untyped]
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

    from ramet.workspace.config.declaration import schema

    problems = list(Draft202012Validator(schema()).iter_errors(yaml.safe_load(text)))
    assert bool(problems) == ("REGOIN" in text), problems


@pytest.mark.parametrize("name", generate.PAGES)
def test_reference_pages_are_up_to_date(name: str) -> None:
    assert (ROOT / "docs" / name).read_text() == generate.PAGES[name](), "run `make docs`"


def test_every_page_is_on_the_site() -> None:
    nav = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    site = [(section, tuple(pages)) for row in nav for section, pages in row.items()]
    assert tuple(site) == generate.SITE
    listed = {page for _, pages in site for page in pages}
    assert listed == {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").glob("**/*.md")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    dead = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert dead == []
