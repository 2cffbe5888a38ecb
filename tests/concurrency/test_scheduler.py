import asyncio

from ramet.concurrency import scheduler as turns
from ramet.concurrency.scheduler import Line, give_way


async def _slices(line: Line, count: int, seen: list[Line]) -> None:
    for _ in range(count):
        await give_way(line)
        seen.append(line)


def test_executions_are_served_in_turn_however_many_tasks_they_have() -> None:
    async def run() -> list[Line]:
        many, one, seen = Line(), Line(), list[Line]()
        crowd = [asyncio.create_task(_slices(many, 10, seen)) for _ in range(100)]
        await asyncio.sleep(0)
        await _slices(one, 10, seen)
        served = list(seen)
        await asyncio.gather(*crowd)
        assert len(seen) == 1010
        return [line for line in served if line is many]

    assert len(asyncio.run(run())) < 300  # and not a thousand


def test_who_is_given_up_while_waiting_keeps_no_turn() -> None:
    async def run() -> None:
        line, seen = Line(), list[Line]()
        working = [asyncio.create_task(_slices(line, 5, seen)) for _ in range(20)]
        await asyncio.sleep(0)
        for _ in range(20):
            waiting = give_way(line)
            waiting.send(None)
            waiting.close()
        cancelled = [asyncio.create_task(give_way(line)) for _ in range(20)]
        await asyncio.sleep(0)
        for task in cancelled:
            task.cancel()
        await asyncio.wait_for(asyncio.gather(*working), 10)
        await _slices(line, 5, seen)
        assert len(seen) == 105
        assert not turns._loops[asyncio.get_running_loop()].ready

    asyncio.run(run())
