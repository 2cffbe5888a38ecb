import asyncio

from ramet import Revision, Store


async def main() -> None:
    store = Store("memory:")
    store.create("app")
    async with store.open("app") as ws:
        await ws.execute("echo 1 > /n")
        revision: Revision = await ws.commit("first")
    assert (revision.name, revision.message) == ("app-1", "first")
    assert store.find("app@head").id == revision.id


asyncio.run(main())
