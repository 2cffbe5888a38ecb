import asyncio

from ramet import Record, Workspace


async def main() -> None:
    async with Workspace() as ws:
        await ws.execute("echo x > /f; ls /missing", agent_id="ann", meta={"run": "r1", "tokens": 120})
        record: Record = list(ws.history)[-1]
        print(record.command, record.agent_id, record.exit_code, record.duration, record.meta)


asyncio.run(main())
