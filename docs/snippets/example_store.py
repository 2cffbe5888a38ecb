import asyncio

from ramet import Store


async def main() -> None:
    store = Store("state")  # or "s3://bucket/prefix"; `Store()` is the one of the command line
    store.create("app")
    async with store.open("app", commit="command") as ws:  # each command becomes a revision
        await ws.execute("echo 1 > /version", agent_id="ann")
        await ws.execute("echo 2 > /version", agent_id="bob")
    app = store["app"]
    assert [line.writer.agent_id for line in app.blame("/version") if line.writer] == ["bob"]
    assert [one.path for one in app.diff("head~1", "head")] == ["/version"]
    app.fork("head~1", "before")
    assert b"".join(store["before"].show("/version")) == b"1\n"
    app.undo(agent="bob")
    assert b"".join(app.show("/version")) == b"1\n"


asyncio.run(main())
