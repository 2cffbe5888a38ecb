import asyncio

from ramet import DiskResource, MountMode, RAMResource, Workspace


async def main() -> None:
    logs = (DiskResource("logs", create=True), MountMode.READ)
    async with Workspace({"/": RAMResource(), "/logs": logs}, env={"LEVEL": "ERROR"}) as ws:
        result = await ws.execute('grep -c "$LEVEL" /logs/* 2>/dev/null || echo none', timeout=10)
        print(result.text, result.exit_code)
        async for piece in ws.execute("seq 3"):  # output while it runs
            print(piece)
        async with ws.speculate(2) as tries:  # two attempts, one is kept
            await tries[0].execute("echo short > /summary")
            await tries[1].execute("echo longer > /summary")
            tries.keep(tries[1])
        assert (await ws.execute("cat /summary")).text == "longer\n"


asyncio.run(main())
