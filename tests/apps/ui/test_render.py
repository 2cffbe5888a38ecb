"""Colors and Markdown as data: they cover the text, hold no markup, and never take the server with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.apps.server.harness import TOKEN, run
from tests.apps.ui.test_ui import serving

from ramet.apps.server.problems import Refusal
from ramet.apps.ui.render import TAGS, colors, markdown
from ramet.apps.ui.renderer import CHARACTERS, Renderer

SOURCES = {
    "a.py": "def f(x):\n    '''a😀\n b'''\n    return 1  # é\n",
    "bad.py": "x = '\udcff'\n\n",
    "a.ts": "const a = `x${1}`;\r\nexport { a };",
    "a.html": "<p onclick='x()'><script>let a = 1;\n</script></p>",
    "a.css": "a { color: #fff }\n\n\n",
    "a.json": '{"a": [1, "é"]',
    "a.sh": 'for i in *; do echo "$i"; done\n',
    "a.php": "<?php echo 1; ?> <b>",
    "a.diff": "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n",
    "Makefile": "a: b\n\tcc $<\n",
}


@pytest.mark.parametrize("name", SOURCES)
def test_colors_cover_the_text_exactly(name: str) -> None:
    told = colors(name, SOURCES[name])
    lines = SOURCES[name].split("\n")
    assert len(told["lines"]) == len(lines)
    for line, shades in zip(lines, told["lines"], strict=True):
        assert sum(shades[1::2]) == len(line.encode("utf-16-le", "surrogatepass")) // 2
        assert all(len(shade) <= 1 for shade in shades[::2])


def test_a_language_is_told_by_the_name_or_the_first_line() -> None:
    assert colors("x", "#!/usr/bin/env python3\nimport a\n")["language"] == "Python"
    assert colors("x", "#!/bin/bash\nls\n")["language"] == "Bash"
    assert colors("x", "#!/opt/unheard-of\n")["language"] is None
    assert colors("notes.txt", "def f(): pass")["language"] is None
    assert colors("f.py", "def g(): pass")["lines"] == [["k", 3, "", 1, "f", 1, "", 4, "k", 4]]


def elements(tree: list[Any]) -> Iterator[list[Any]]:
    for node in tree:
        if isinstance(node, list):
            yield node
            yield from elements(node[2:])


def test_markdown_is_a_tree_of_known_elements() -> None:
    hostile = "# a\n<script>x</script>\n\n[b](javascript:x) ![c](d.png) <img onerror=x>\n\n> - [x] e\n\n"
    tree = markdown(hostile + "|f|g|\n|-:|-|\n|1|`2`|\n\n" + "```py\nx = 1\n```\n<!-- gone -->\n")["tree"]
    known = {*TAGS.values(), "pre", "a", "img", "check", "ol", "span", *(f"h{n}" for n in range(1, 7))}
    assert {node[0] for node in elements(tree)} <= known
    attributes = {"href", "src", "alt", "align", "done", "start", "text", "lines"}
    assert {name for node in elements(tree) for name in node[1]} <= attributes
    assert ["img", {"src": "d.png", "alt": "c"}] in list(elements(tree))
    assert ["check", {"done": True}] in list(elements(tree))
    assert ["code", {}, "<script>x</script>"] in tree
    assert not any(node[0] == "a" for node in elements(tree))
    assert tree[-1] == ["pre", {"text": "x = 1", "lines": [["", 4, "n", 1]]}]
    assert markdown("---\na: 1\n---\nb\n")["tree"][0] == ["pre", {"text": "a: 1", "lines": [["k", 1, "", 3]]}]


def test_nesting_without_end_ends() -> None:
    depth = 0
    (node,) = markdown(">" * 50_000 + " x")["tree"]
    while isinstance(node, list) and node[2:]:
        node, depth = node[2], depth + 1
    assert depth < 200


def test_a_text_that_takes_too_long_is_refused_and_the_next_is_not() -> None:
    async def test() -> None:
        renderer = Renderer(seconds=0.001)
        with pytest.raises(Refusal, match="within"):
            await renderer.ask("code", "a.py", "x = 1\n" * 20_000)
        renderer._seconds = 200.0
        assert (await renderer.ask("code", "a.py", "x"))["language"] == "Python"
        with pytest.raises(Refusal, match="characters"):
            await renderer.ask("code", "a.py", "x" * (CHARACTERS + 1))

    run(test)


def test_the_page_asks_with_its_token() -> None:
    async def test() -> None:
        async with serving() as (http, pages):
            pages._renderer._seconds = 200.0
            sent = {"name": "a.py", "text": "x = '\ufffd'"}
            assert (await http.post("/ui/render", json=sent)).status_code == 401
            http.headers["authorization"] = f"Bearer {TOKEN}"
            told = await http.post("/ui/render", json=sent)
            assert told.json() == {"language": "Python", "lines": [["", 4, "s", 3]]}
            for wrong in ({"text": 1}, {}, {"text": "", "kind": "x"}, {"text": "", "more": 1}):
                assert (await http.post("/ui/render", json=wrong)).status_code == 400
            assert (await http.post("/ui/render", content=b"{")).status_code == 400
            assert (await http.post("/ui/render", json={"text": "x" * (CHARACTERS + 1)})).status_code == 413
            assert (await http.get("/ui/render")).status_code == 405

    run(test)


def test_the_process_imports_nothing_from_where_it_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("open('taken', 'w')")
    monkeypatch.chdir(tmp_path)

    async def test() -> None:
        assert (await Renderer(200.0).ask("markdown", "", "x"))["tree"] == [["p", {}, "x"]]

    run(test)
    assert not (tmp_path / "taken").exists()
