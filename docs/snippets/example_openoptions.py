import asyncio

from ramet import CommitPolicy, OpenOptions, Store


async def main() -> None:
    store = Store("memory:")
    store.create("app")
    options = OpenOptions(wait=10, commit=CommitPolicy("command"), withhold=["*.log"], drafts="each")
    async with store.open_with("app", options) as ws:
        await ws.execute("echo x > /kept; echo y > /debug.log")
    assert "debug.log" not in dict(store["app"].ls("/"))


asyncio.run(main())
