"""A store that has everything the console shows: agents, a proposal with a conflict, comments, requests, odd names."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ramet import Store

SHOP = '''\
class Shop:
    """A shop that sells apples."""

    def __init__(self, stock: int) -> None:
        self.stock = stock

    def sell(self, number: int) -> bool:
        if number > self.stock:
            return False
        self.stock -= number  # what is left
        return True


shop = Shop(stock=100)
'''
README = "# Shop\n\nSells **apples**, [in Python](../src/shop.py).\n\n- [x] one\n\n| a | b |\n|---|---|\n| 1 | `2` |\n"
LONG = "a-name-that-is-far-too-long-for-any-column-of-any-table-and-still-goes-on-and-on.txt"
WRITE_DOCS = f"""\
printf '%b' '{README.encode("unicode_escape").decode()}' > /docs/README.md
printf 'name,price\\napple,1\\n' > /docs/prices.csv
echo x > '/docs/{LONG}'; head -c 500 /dev/zero > /docs/zeros"""
ENDLESS = "A message that is far too long for one line of any list, as whoever wrote it had to say all at once. " * 2
SCRIPTS: tuple[tuple[str, dict[str, str | int | float | bool], str, str], ...] = (
    ("ann", {"run": "r1", "tokens": 1200}, "Begin the shop",
     "mkdir -p /src /docs; cat > /src/shop.py; seq 1 400 > /src/numbers"),
    ("bob", {"run": "r1", "tokens": 800}, "Write docs", WRITE_DOCS),
    ("carol", {"run": "r2"}, "", "ls /nothing; false"),
    ("carol", {"run": "r3"}, ENDLESS, "sed -i '200s/.*/new/' /src/numbers; rm /docs/zeros; printf '\\033[1mred'"),
    ("carol", {"run": "r3"}, "", "curl -s http://refused.example/path?secret=1; curl -s http://127.0.0.1:1/"),
)  # fmt: skip
PROPOSAL = "sed -i 's/stock=100/stock=1000/; s/what is left/rest/' /src/shop.py; echo 'export const a = 1' > /src/a.ts"


def build(place: Path) -> Store:
    """`shop`, its fork `attempt`, which proposes something that conflicts, and `empty`."""
    store = Store(str(place))
    for name in ("shop", "empty"):
        store.create(name)

    async def work(name: str, agent: str, meta: dict[str, str | int | float | bool], message: str, script: str) -> None:
        async with store.open(name, network={"allow": ["GET http://127.0.0.1:1"]}) as ws:
            await ws.execute(script, stdin=SHOP.encode(), agent_id=agent, meta=meta)
            if message:
                await ws.commit(message, author="Ada Lovelace")

    async def begin() -> None:
        for agent, meta, message, script in SCRIPTS:
            await work("shop", agent, meta, message, script)

    async def propose() -> None:
        await work("attempt", "dave", {"run": "r9"}, "Sell in bulk", PROPOSAL)
        await work("shop", "ann", {}, "Less stock", "sed -i 's/stock=100/stock=50/' /src/shop.py")

    asyncio.run(begin())
    store["shop"].fork("head", "attempt")
    asyncio.run(propose())
    store["attempt"].note("Why so many?", path="/src/shop.py", line=14, author="ann")
    store["attempt"].note("Fine otherwise.", author="bob")
    store["attempt"].note("And this one?", path="/src/numbers", line=7, author="bob")
    store["shop"].tag("v1", "shop-2", message="first release")
    return store
