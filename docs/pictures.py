"""Make the pictures of the README from a workspace that this script fills: `make pictures`.

- `docs/pictures/terminal.svg`: commands and their output, typed by CSS animation; a still picture where motion is off.
- `docs/pictures/{agents,blame,review}.png`: the console in headless Chromium.
"""

from __future__ import annotations

import asyncio
import base64
import html
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
sys.path.insert(0, str(ROOT))

from tests.apps.ui.browser import Browser  # noqa: E402

from ramet import Store  # noqa: E402
from ramet.apps.cli.verbs.ui import request_link  # noqa: E402

STEPS = (
    "ramet exec shop --agent coder 'sed -i s/price/cost/ /src/cart.py'",
    "ramet exec shop --agent cleaner 'rm -r /src/tests'",
    "ramet log shop -n 3",
    "ramet blame shop:/src/cart.py",
    "ramet undo shop --agent cleaner",
    "ramet agents shop",
)
"""What is typed into the terminal of the picture."""
SIGHT = {"agents": ".timeline", "blame": ".side [aria-current]", "review": ".change .diff"}
"""What is there when a view of the console is."""
WIDTH, LINE, LETTER, TOP = 1060, 20, 8.43, 56
CART = "def total(items):\\n    return sum(i.price for i in items)\\n"
WORK = (
    ("planner", f"mkdir -p /src/tests; printf '{CART}' > /src/cart.py", {"tokens": 1210, "cost_usd": 0.0041}),
    ("planner", "echo '# Shop' > /README.md; echo '- a cart' >> /README.md", {"tokens": 640, "cost_usd": 0.0019}),
    ("tester", "echo 'assert total([]) == 0' > /src/tests/test_cart.py", {"tokens": 880, "cost_usd": 0.0027}),
    ("tester", "grep -rn total /src | wc -l; test -e /src/tests/test_tax.py", {"tokens": 310, "cost_usd": 0.0009}),
)


async def fill(store: Store) -> None:
    store.create("shop")
    async with store.open("shop", commit="command") as ws:
        for turn, (agent, command, meta) in enumerate(WORK):
            await ws.execute(command, agent_id=agent, meta={**meta, "run": f"run-{turn // 2 + 1}"})


async def propose(store: Store) -> None:
    store["shop"].fork("head", "attempt")
    async with store.open("attempt", commit="command") as ws:
        await ws.execute(
            "sed -i 's/return sum(.*/return round(sum(i.cost for i in items), 2)/' /src/cart.py", agent_id="coder"
        )
        await ws.execute("echo 'assert total([]) == 0.0' >> /src/tests/test_cart.py", agent_id="tester")


def run(command: str, home: str) -> list[str]:
    env = {**os.environ, "RAMET_HOME": home, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", command], env=env, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).rstrip("\n").split("\n") if done.stdout or done.stderr else []


def terminal(home: str) -> str:
    """Draw the steps as an SVG in which a line appears after the other."""
    rows: list[tuple[str, str]] = []
    for step in STEPS:
        rows.append(("typed", f"$ {step}"))
        rows += [("said", line[: int((WIDTH - 48) / LETTER)]) for line in run(step, home)]
    drawn, at = [], 0.3
    for number, (kind, text) in enumerate(rows):
        at += 0.9 if kind == "typed" else 0.06
        drawn.append(
            f'<text class="{kind}" x="24" y="{TOP + number * LINE}" style="animation-delay:{at:.2f}s" '
            f'xml:space="preserve">{html.escape(text)}</text>'
        )
    height = TOP + len(rows) * LINE + 8
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" \
aria-label="ramet exec, log, blame, undo and agents in a terminal">
<style>
  rect {{ fill: #10181b }} circle {{ fill: #3b4a4f }}
  text {{ font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #c9d4d1 }}
  .typed {{ fill: #7fd6a3; font-weight: 600 }}
  @media (prefers-reduced-motion: no-preference) {{
    text {{ opacity: 0; animation: shown 0.05s linear forwards }}
    @keyframes shown {{ to {{ opacity: 1 }} }}
  }}
</style>
<rect width="{WIDTH}" height="{height}" rx="10"/>
<circle cx="24" cy="22" r="6"/><circle cx="44" cy="22" r="6"/><circle cx="64" cy="22" r="6"/>
{chr(10).join(drawn)}
</svg>
"""


def console(home: str) -> None:
    """Take pictures of the console that `ramet serve --ui` shows."""
    views = {"agents": "#/agents/shop", "blame": "#/ws/shop/src/cart.py?blame", "review": "#/review/shop?other=attempt"}
    words = [sys.executable, "-m", "ramet.apps.cli", "serve", "--store", home, "--port", "0", "--ui"]
    with (
        subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
    ):
        assert server.stderr is not None
        url = next(word.strip(",") for word in server.stderr.readline().split() if word.startswith("http"))
        while not (Path(home) / "server-token").exists():
            time.sleep(0.05)
        token = (Path(home) / "server-token").read_text().strip()
        browser = Browser(Path(folder))
        try:
            browser.send(
                "Emulation.setDeviceMetricsOverride", width=1180, height=720, deviceScaleFactor=1, mobile=False
            )
            browser.send("Emulation.setScrollbarsHidden", hidden=True)
            browser.send("Page.navigate", url=request_link(url, token, ""))
            browser.sees("shop")
            for name, place in views.items():
                browser.go(place)
                browser.until(f"document.querySelector('{SIGHT[name]}') !== null")
                browser.until("!document.body.innerText.includes('Loading')")
                data = browser.send("Page.captureScreenshot", format="png")["data"]
                (PICTURES / f"{name}.png").write_bytes(base64.b64decode(data))
        finally:
            browser.close()
            server.terminate()


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        store = Store(home)
        asyncio.run(fill(store))
        (PICTURES / "terminal.svg").write_text(terminal(home))
        asyncio.run(propose(store))
        console(home)


if __name__ == "__main__":
    main()
