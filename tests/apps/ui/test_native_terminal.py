"""The terminal of a native workspace in a browser: a prompt with completion, and a real terminal for its programs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.apps.ui.browser import PROGRAM, Browser, serving
from tests.workspace.native.conftest import missing

from ramet import Store
from ramet.apps.cli.verbs.ui import request_link

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed"),
    pytest.mark.skipif(bool(missing()), reason=f"no native programs here: {missing()}"),
]

ROWS = ".xterm-rows"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    place = tmp_path_factory.mktemp("terminal")
    Store(str(place)).create("nat", native=True)
    with serving(place, "--native") as found:
        browser = Browser(tmp_path_factory.mktemp("browser"))
        try:
            browser.send("Page.navigate", url=request_link(*found, "term/nat"))
            browser.sees("nat:~$", ROWS)
            yield browser
            assert browser.complaints == []
        finally:
            browser.close()


@pytest.fixture(autouse=True)
def focused(page: Browser) -> None:
    """The keys go to the terminal, whatever ran before."""
    page.until("document.querySelector('.xterm textarea') !== null")
    page.run("document.querySelector('.xterm textarea').focus()")


def enter(page: Browser, text: str) -> None:
    page.send("Input.insertText", text=text)
    page.press("Enter", 13)


def test_programs_have_a_terminal_of_their_own(page: Browser) -> None:
    page.until("document.activeElement.closest('.xterm') !== null")
    enter(page, "mkdir -p /src; cd /src; python3 -qi -c 'import sys; print(sys.stdin.isatty(), 6 * 7)'")
    page.sees("True 42", ROWS)
    page.sees(">>>", ROWS)
    enter(page, "'x' * 3 + 'y'")
    page.sees("'xxxy'\n>>>", ROWS)  # before its prompt, Python does not see the key
    page.press("d", 68, modifiers=2)
    page.sees("nat:/src$", ROWS)


def test_a_name_is_completed(page: Browser) -> None:
    enter(page, "echo told > a-long-name; echo 'ma'de")
    page.sees("made", ROWS)
    page.until("document.querySelector('.console .danger').disabled")
    page.send("Input.insertText", text="cat a-l")
    page.press("Tab", 9)
    page.sees("cat a-long-name", ROWS)
    page.press("Enter", 13)
    page.sees("\ntold\n", ROWS)
    page.until("document.querySelector('.console .danger').disabled")


def test_output_types_nothing(page: Browser) -> None:
    enter(page, "printf '\\033[c\\033[6n\\033[>c\\033P$qm\\033\\\\\\033]10;?\\007'; echo 'as'ked")
    page.sees("asked", ROWS)
    page.until("document.querySelector('.console .danger').disabled")
    enter(page, "echo 'answer'ed")
    page.sees("answered", ROWS)
    told = page.run(f"document.querySelector('{ROWS}').innerText")
    assert "$ echo 'answer'ed" in told and "1;2c" not in told, told


def test_ctrl_c_ends_a_program_and_f6_leaves(page: Browser) -> None:
    enter(page, "sleep 1000")
    page.until("document.querySelector('.console .danger').disabled === false")
    page.press("c", 67, modifiers=2)
    page.until("document.querySelector('.console .danger').disabled")
    page.sees("130$", ROWS)
    page.press("F6", 117)
    page.until("document.activeElement.type === 'checkbox'")
