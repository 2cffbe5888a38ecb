"""The console for everyone: names, contrast, order, focus and motion of every view, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.apps.ui.browser import PROGRAM, Browser, serving
from tests.apps.ui.shop import LONG, build

from ramet.apps.cli.verbs.ui import request_link

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")

AXE = Path(__file__).parents[3] / ".venv-emulators" / "axe" / "package" / "axe.min.js"
VIEWS = {
    "workspaces": ("#/", "3 workspaces"),
    "history": ("#/ws/shop", "Begin the shop"),
    "history with forks": ("#/ws/shop?forks", "Sell in bulk"),
    "an empty workspace": ("#/ws/empty", "No revisions yet"),
    "revision": ("#/ws/attempt@attempt-2", "Comments"),
    "files": ("#/ws/shop/docs", "README.md"),
    "source": ("#/ws/shop/src/shop.py", "sells apples"),
    "blame": ("#/ws/shop/src/shop.py?blame", "mkdir -p /src"),
    "document": ("#/ws/shop/docs/README.md", "apples"),
    "table": ("#/ws/shop/docs/prices.csv", "1 row"),
    "a long name": (f"#/ws/shop/docs/{LONG}", "2 B"),
    "bytes": ("#/ws/shop@2/docs/zeros", "00000000"),
    "agents": ("#/agents/shop", "Timeline"),
    "a run": ("#/agents/shop?run=r3", "pauses"),
    "commands": ("#/cmds/shop", "6 records"),
    "a record": ("#/cmds/shop?network=refused", "1 match"),
    "compare": ("#/diff/shop@head?against=1", "modified"),
    "proposals": ("#/review/shop", "Sell in bulk"),
    "nothing to review": ("#/review/empty", "Nothing to compare"),
    "review": ("#/review/shop?other=attempt", "Fine otherwise"),
    "ports": ("#/ports/shop", "Nothing listens"),
    "a conflict": ("#/review/shop?other=attempt", "Fine otherwise"),
    "terminal": ("#/term/shop", "session"),
    "terminal on the past": ("#/term/shop@1", "its own copy"),
    "an error": ("#/ws/nothing", "no workspace"),
}
CONTRAST = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a)];
  const light = (rgb) => {
    const linear = (one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = rgb.map((one) => linear(one / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const faded = (element) => {
    let all = 1;
    for (let at = element; at; at = at.parentElement) all *= Number(getComputedStyle(at).opacity);
    return all;
  };
  const bad = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    if (element.closest("noscript, option, .unseen, :disabled, [aria-disabled], dialog ~ *")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    if (!range.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const below = ground(element);
    const [r, g, b, a] = rgba(style.color);
    const ink = over([r, g, b, a * faded(element)], below);
    const [one, other] = [light(ink), light(below)].sort((x, y) => y - x);
    const ratio = (one + 0.05) / (other + 0.05);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    const what = `${ratio.toFixed(2)} ${node.data.trim().slice(0, 30)}`;
    if (ratio < least) bad.set(`${element.tagName}.${element.className}`, what);
  }
  return [...bad].map((pair) => pair.join(": "));
})()"""


LEVELS = """[...document.querySelectorAll("h1, h2, h3, h4, h5, h6")]
  .filter((one) => one.checkVisibility() && !one.closest(".document")).map((one) => Number(one.tagName[1]))"""
SCROLLED = (
    ".scroll, .tabs, .code, .sheet, .diff, pre, svg, .document table, .unseen, #crumbs, .xterm, .listing,"
    " .step, .records"
)
WIDE = f"""[...document.querySelectorAll("main *, header *")]
  .filter((one) => one.checkVisibility() && !one.closest("{SCROLLED}") && one.getBoundingClientRect().right > 391)
  .map((one) => `${{one.tagName}}.${{one.className}}`)"""
FOCUSED = """(() => {
  const one = document.activeElement;
  if (one === document.body) return null;
  const box = one.getBoundingClientRect();
  const inside = one.closest(".entry-line, .emulated"); // the whole line shows it
  const {outlineStyle, outlineWidth} = getComputedStyle(one.role === "treeitem" ? one.firstElementChild : one);
  return {
    what: one.outerHTML.slice(0, 120), seen: box.width > 0 && box.height > 0,
    ring: (outlineStyle !== "none" && parseFloat(outlineWidth) >= 2)
      || Boolean(inside && getComputedStyle(inside).boxShadow !== "none"),
    at: [...document.querySelectorAll("*")].indexOf(one),
  };
})()"""
MOVING = """[...document.querySelectorAll("*")]
  .flatMap((one) => [null, "::before", "::after"].map((part) => getComputedStyle(one, part)))
  .filter((style) => parseFloat(style.transitionDuration) > 0 || style.animationName !== "none").length"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    place = tmp_path_factory.mktemp("access") / "store"
    build(place)
    with serving(place) as found:
        browser = Browser(tmp_path_factory.mktemp("browser"))
        try:
            browser.send("Page.navigate", url=request_link(*found, ""))
            browser.sees("Workspaces")
            yield browser
        finally:
            browser.close()


def show(page: Browser, view: str) -> None:
    where, told = VIEWS[view]
    page.go("#/nowhere")
    page.sees("no such page")
    page.go(where)
    page.sees(told)
    if view == "a record":
        page.run("document.querySelector('.command').open = true")
        page.sees("refused.example", ".requests")
    if view == "a conflict":
        page.click("Approve and merge")
        page.click("Merge", "dialog button[type=submit]")
        page.sees("stock=1000", ".sides")
        page.until("!document.querySelector('dialog')")
    page.until("!document.querySelector('.waiting')")


def colors(page: Browser, scheme: str) -> None:
    page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])


@pytest.mark.parametrize("view", VIEWS)
def test_everything_has_a_name_and_an_order(view: str, page: Browser) -> None:
    show(page, view)
    nodes = page.send("Accessibility.getFullAXTree")["nodes"]
    acted = {"button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "tab", "menuitem", "option"}
    acted |= {"treeitem", "DisclosureTriangle", "spinbutton", "img", "image", "region", "navigation", "tree", "dialog"}
    unnamed = [
        node
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in acted and not node.get("name", {}).get("value", "").strip()
    ]
    assert unnamed == []
    roles = [node["role"]["value"] for node in nodes if not node["ignored"]]
    assert roles.count("main") == 1 and roles.count("banner") == 1 and "navigation" in roles
    assert page.run("document.documentElement.lang") == "en" and page.run("document.title") != ""
    levels: list[int] = page.run(LEVELS)
    assert levels[:1] == [1] and levels.count(1) == 1, levels
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels
    ids: list[str] = page.run("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_text_can_be_read(view: str, scheme: str, page: Browser) -> None:
    colors(page, scheme)
    try:
        show(page, view)
        assert page.run(CONTRAST) == []
    finally:
        colors(page, "light")


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: `make test` fetches it from npm")
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing(view: str, page: Browser) -> None:
    show(page, view)
    if not page.run("Boolean(window.axe)"):
        page.run(AXE.read_text() + "; null")
    options = {"rules": {"color-contrast": {"enabled": False}}, "resultTypes": ["violations"]}  # is measured above
    found = page.run(
        f"axe.run(document, {json.dumps(options)}).then(({{violations}}) => "
        "violations.map((one) => [one.id, one.nodes.map((node) => node.html.slice(0, 200)).slice(0, 3)]))"
    )
    assert found == []


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_is_wider_than_a_phone(view: str, page: Browser) -> None:
    page.send("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    try:
        show(page, view)
        assert page.run("document.documentElement.scrollWidth") <= 390
        assert page.run(WIDE) == []
    finally:
        page.send("Emulation.clearDeviceMetricsOverride")


def steps(page: Browser, most: int = 80) -> list[dict[str, Any]]:
    """What the Tab key reaches, one after the other, until it leaves the page or comes back."""
    found: list[dict[str, Any]] = []
    page.run("document.querySelector('.skip').focus()")
    for _ in range(most):
        page.press("Tab", 9)
        one = page.run(FOCUSED)
        if one is None or 'class="skip"' in one["what"]:
            break
        found.append(one)
    return found


@pytest.mark.parametrize(
    "view", ["workspaces", "history", "files", "commands", "agents", "review", "terminal", "compare"]
)
def test_the_focus_can_be_seen_and_follows_the_page(view: str, page: Browser) -> None:
    show(page, view)
    found = steps(page)
    assert len(found) > 5
    assert [one["what"] for one in found if not (one["ring"] and one["seen"])] == []
    places = [one["at"] for one in found]
    assert places == sorted(places)


def test_a_dialog_keeps_the_focus_and_gives_it_back(page: Browser) -> None:
    show(page, "history")
    for opener, leave in (("Fork", "Escape"), ("Merge", "Cancel"), ("Download", "Cancel")):
        button = f"[...document.querySelectorAll('main button')].find((one) => one.textContent === '{opener}')"
        page.run(f"{button}.focus()")
        page.press("Enter", 13)
        page.until("document.querySelector('dialog')?.contains(document.activeElement)")
        for _ in range(12):
            page.press("Tab", 9)
            held = "document.querySelector('dialog').contains(document.activeElement)"
            assert page.run(f"document.activeElement === document.body || {held}")
        if leave == "Escape":
            page.press("Escape", 27)
        else:
            page.click(leave, "dialog button")
        page.until("!document.querySelector('dialog')")
        assert page.run(f"document.activeElement === {button}"), opener
    page.press("k", 75, modifiers=2)
    page.until("document.activeElement?.getAttribute('role') === 'combobox'")
    page.press("Escape", 27)
    page.until("!document.querySelector('dialog')")
    assert page.run("document.activeElement.textContent") == "Download"


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    ("view", "opener"),
    [("workspaces", "New"), ("history", "Fork"), ("history", "Merge"), ("history", "Download"), ("revision", "Tag"),
     ("review", "Reject"), ("review", "Approve and merge"), ("a run", "Undo"), ("history", "?")],
)  # fmt: skip
def test_dialogs_fit(view: str, opener: str, width: int, page: Browser) -> None:
    page.send("Emulation.setDeviceMetricsOverride", width=width, height=500, deviceScaleFactor=1, mobile=width < 500)
    try:
        show(page, view)
        if opener == "?":
            page.press("?")
        else:
            page.click(opener, "main button")
        page.until("document.querySelector('dialog[open]') !== null")
        left, right, top, bottom, hidden = page.run(
            "((one) => [...['left', 'right', 'top', 'bottom'].map((side) => one.getBoundingClientRect()[side]),"
            "one.scrollWidth - one.clientWidth])(document.querySelector('dialog'))"
        )
        assert left >= 0 and right <= width and top >= 0 and bottom <= 500 and hidden <= 0
        page.press("Escape", 27)
        page.until("!document.querySelector('dialog')")
    finally:
        page.send("Emulation.clearDeviceMetricsOverride")


def test_nothing_moves_for_those_who_do_not_want_it(page: Browser) -> None:
    page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    try:
        show(page, "review")
        assert page.run(MOVING) == 0
    finally:
        colors(page, "light")
