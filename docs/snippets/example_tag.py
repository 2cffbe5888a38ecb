import asyncio

from ramet import Store


async def main() -> None:
    store = Store("memory:")
    store.create("app")
    async with store.open("app") as ws:
        await ws.execute("echo 1 > /n")
    tag = store["app"].tag("v1", "head")  # keeps the revision, whatever else is collected
    assert tag.name == "v1" and store.find("app@v1").name == "app-1"


asyncio.run(main())
