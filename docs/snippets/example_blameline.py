import asyncio

from ramet import BlameLine, Store


async def main() -> None:
    store = Store("memory:")
    store.create("app")
    async with store.open("app") as ws:
        await ws.execute("echo 'def f(): ...' > /app.py", agent_id="writer")
    line: BlameLine = store["app"].blame("/app.py")[0]
    assert line.writer is not None
    print(line.revision.name, line.writer.agent_id, line.writer.command)


asyncio.run(main())
