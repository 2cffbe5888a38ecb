import asyncio

from ramet import CommitPolicy, Store


async def main() -> None:
    store = Store("memory:")
    store.create("app")
    async with store.open("app", commit=CommitPolicy("command", 2)) as ws:  # a revision after every second command
        for number in range(4):
            await ws.execute(f"echo {number} > /n")
    assert len(store["app"].log()) == 2


asyncio.run(main())
