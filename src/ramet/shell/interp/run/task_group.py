"""`Crew`: the tasks that run the shells of one execution, except those of its jobs, each of which has its own crew.

Rules that this file keeps:
- When an execution is cancelled, its whole crew stops at once: from then on none of its tasks makes a further step of a
  script, and none begins. Told one by the other from the top down, the last of thousands would go on meanwhile.
- They end a few at a time, so that thousands of them fill no turn of the event loop.
- Whoever is cancelled waits a moment for those that he started, and leaves the others to the crew. What comes next
  in the same session waits until they are gone.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from contextlib import suppress
from time import monotonic
from typing import Any, Final, TypeVar

T = TypeVar("T")

_AT_ONCE: Final = 4
"""Tasks that end in one turn of the event loop."""
_FEW: Final = 16
"""Tasks that are waited for in any case."""
_MOMENT: Final = 0.01
"""Seconds that an execution which was cancelled waits for a larger crew."""


def forget_end(task: asyncio.Task[Any]) -> None:
    """Nobody asks how a task ended: what it ended with knows its frames, and these the task."""
    with suppress(asyncio.CancelledError):
        task.exception()


class Crew:
    __slots__ = ("_patience", "_untold", "main", "stopped", "tasks")

    def __init__(self) -> None:
        self.main: asyncio.Task[Any] | None = None
        """The task that the others were started by, once it has waited for something."""
        self.tasks: dict[asyncio.Task[Any], bool] = {}
        """Those that run or are about to; whether one is nothing but a shell, which the crew ends itself."""
        self.stopped = False
        self._patience: float | None = None
        """When nobody waits any more for those that are left; None where they are few."""
        self._untold: list[asyncio.Task[Any]] = []

    def stop(self) -> None:
        if self.stopped:
            return
        self.stopped = True
        current = asyncio.current_task()
        self._untold = [task for task, whole in self.tasks.items() if whole and task is not current]
        self._untold.reverse()
        self._patience = monotonic() + _MOMENT if len(self._untold) > _FEW else None
        self._tell(asyncio.get_running_loop())

    def _tell(self, loop: asyncio.AbstractEventLoop) -> None:
        """Ends some of those that have stopped."""
        told = 0
        while self._untold and told < _AT_ONCE:
            told += self._untold.pop().cancel()
        if self._untold:
            loop.call_soon(self._tell, loop)

    def lead(self, work: Coroutine[Any, Any, T]) -> T | Awaitable[T]:
        """The result of the work that the execution consists of, or an awaitable for the rest of it.

        What cancels it stops the crew first.
        """
        try:
            waited_for = work.send(None)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        return self._led(work, waited_for)

    @types.coroutine
    def _led(self, work: Coroutine[Any, Any, Any], waited_for: Any) -> Generator[Any, Any, Any]:
        self.main = asyncio.current_task()
        failure: BaseException | None = None
        try:
            while True:
                try:
                    yield waited_for
                except GeneratorExit:
                    work.close()
                    raise
                except BaseException as error:
                    if isinstance(error, asyncio.CancelledError) and self.main is not None and self.main.cancelling():
                        self.stop()  # what was waited for may also have failed, or have been cancelled by itself
                    failure = error
                try:
                    waited_for = work.send(None) if failure is None else work.throw(failure)
                except StopIteration as stop:
                    return stop.value
                failure = None
        finally:
            failure = None  # it knows this frame

    @types.coroutine
    def steps(self, work: Coroutine[Any, Any, T], whole: bool = False) -> Generator[Any, Any, T]:
        """The result of the work of one of its tasks, which is made no further step of once the crew has stopped.

        Where it is the `whole` work of its task, the crew ends it; else whoever started the task does.
        """
        if self.stopped:
            work.close()
            raise asyncio.CancelledError
        task: Any = asyncio.current_task()
        joins = whole or (task is not self.main and task not in self.tasks)
        if joins:
            self.tasks[task] = whole
        failure: BaseException | None = None
        ends = False
        try:
            while True:
                try:
                    waited_for = work.send(None) if failure is None else work.throw(failure)
                except StopIteration as stop:
                    return stop.value  # type: ignore[no-any-return]
                failure = None
                try:
                    yield waited_for
                except GeneratorExit:
                    work.close()
                    raise
                except BaseException as error:
                    failure = error
                    ends = ends or isinstance(error, asyncio.CancelledError)
                if self.stopped and joins and not ends:
                    ends = True
                    try:
                        yield from asyncio.get_running_loop().create_future()
                    except GeneratorExit:
                        work.close()
                        raise
                    except BaseException as error:
                        failure = error
        except asyncio.CancelledError as error:
            # Its traceback knows all that the shell had, and thousands of them are left to the collector.
            error.__traceback__ = error.__context__ = None
            raise
        finally:
            failure = None  # it knows this frame
            if joins:
                self.tasks.pop(task, None)

    async def wait_for(self, task: asyncio.Task[T]) -> T:
        """The result of a task in which the main one goes on; a cancellation comes here before it gets there."""
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait((task,))
            except asyncio.CancelledError as error:
                cancelled = error
                task.cancel()
        if cancelled is not None:
            if not task.cancelled():
                task.exception()
            raise cancelled
        return task.result()

    async def apart(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of a shell that runs in a task of its own, and nothing else does in it."""
        task = asyncio.create_task(self.member(work, whole=True))
        self.tasks[task] = True
        try:
            await asyncio.wait((task,))
        except GeneratorExit:
            task.cancel()  # whoever waits for it gives up, where nothing may wait
            raise
        except BaseException:
            await self.end((task,))
            raise
        return task.result()

    async def member(self, work: Callable[[], Coroutine[Any, Any, T]], whole: bool = False) -> T:
        """The work of one of its tasks; cancelled before its first step, it never begins."""
        if self.stopped:
            raise asyncio.CancelledError
        return await self.steps(work(), whole)

    async def end(self, tasks: Iterable[asyncio.Task[Any]]) -> None:
        """Cancel tasks and wait until they have ended; of a large crew that has stopped, for a moment at most."""
        every = list(tasks)
        ending = [task for task in every if not task.done()]
        for task in ending:
            if not (self.stopped and self.tasks.get(task)):
                task.cancel()
        left = None if self._patience is None else self._patience - monotonic()
        try:
            if ending and (left is None or left > 0):
                await asyncio.wait(ending, timeout=left)
        finally:
            for task in every:
                if task.done():
                    self._forget(task)
                else:
                    self.tasks[task] = True
                    task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self.tasks.pop(task, None)
        forget_end(task)

    async def gone(self) -> None:
        """When all of them have ended."""
        while going := [task for task in self.tasks if not task.done()]:
            await asyncio.wait(going)
