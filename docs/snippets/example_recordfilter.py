import asyncio

from ramet import RecordFilter, Store


async def main() -> None:
    store = Store("memory:")
    store.create("app")
    async with store.open("app") as ws:
        await ws.execute("echo x > /f", agent_id="ann", meta={"run": "monday"})
        await ws.execute("cat /missing", agent_id="bob")
    failed = store["app"].history(where=RecordFilter(agent="bob", failed=True))
    assert [one.command for one in failed] == ["cat /missing"]


asyncio.run(main())
