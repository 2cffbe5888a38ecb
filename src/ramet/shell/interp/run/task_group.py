"""`TaskGroup`: cancel and end the tasks of one execution's shells; each job has another group.

- Cancelling an execution stops its whole group at once: no task makes a further step of a script, and none begins.
  Passed on from parent to child, the cancellation would reach the last of thousands much later.
- Tasks end a few at a time, so that thousands of them never fill a turn of the event loop.
- A cancelled task waits briefly for its children; the group ends the rest. The next call in the same session waits
  until they are gone.
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
_SCOPE: Final = "Cancelled via cancel scope"
"""How the message of a cancellation by a scope of anyio begins."""
_FEW: Final = 16
"""Tasks that are waited for in any case."""
_MOMENT: Final = 0.01
"""Seconds that a cancelled execution waits for a larger group."""


def forget_end(task: asyncio.Task[Any]) -> None:
    """Drop the result of a task: its exception refers to frames, and these to the task."""
    with suppress(asyncio.CancelledError):
        task.exception()


class TaskGroup:
    __slots__ = ("_uncancelled", "_wait_until", "main", "stopped", "tasks")

    def __init__(self) -> None:
        self.main: asyncio.Task[Any] | None = None
        """The task that started the others, once it has waited for something."""
        self.tasks: dict[asyncio.Task[Any], bool] = {}
        """Tasks that run or are about to; true for one that runs nothing but a shell, which the group ends itself."""
        self.stopped = False
        self._wait_until: float | None = None
        """When to stop waiting for the remaining tasks; None where they are few."""
        self._uncancelled: list[asyncio.Task[Any]] = []

    def stop(self) -> None:
        if self.stopped:
            return
        self.stopped = True
        current = asyncio.current_task()
        self._uncancelled = [task for task, whole in self.tasks.items() if whole and task is not current]
        self._uncancelled.reverse()
        self._wait_until = monotonic() + _MOMENT if len(self._uncancelled) > _FEW else None
        self._cancel_some(asyncio.get_running_loop())

    def _cancel_some(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel some of the stopped tasks, the rest in later turns."""
        cancelled = 0
        while self._uncancelled and cancelled < _AT_ONCE:
            cancelled += self._uncancelled.pop().cancel()
        if self._uncancelled:
            loop.call_soon(self._cancel_some, loop)

    def lead(self, work: Coroutine[Any, Any, T]) -> T | Awaitable[T]:
        """Run the main work of the execution: return its result, or an awaitable for the rest of it.

        A cancellation stops the group first.
        """
        try:
            waited_for = work.send(None)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        return self._lead(work, waited_for)

    @types.coroutine
    def _lead(self, work: Coroutine[Any, Any, Any], waited_for: Any) -> Generator[Any, Any, Any]:
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
                    if isinstance(error, asyncio.CancelledError) and self._is_outer(error):
                        self.stop()
                    failure = error
                try:
                    waited_for = work.send(None) if failure is None else work.throw(failure)
                except StopIteration as stop:
                    return stop.value
                if failure is None and self.stopped and self.main is not None and not self.main.cancelling():
                    self.stopped = False  # a timeout inside of a backend, which is over
                failure = None
        finally:
            failure = None  # it refers to this frame

    def _is_outer(self, error: asyncio.CancelledError) -> bool:
        """Whether a cancellation ends the execution.

        It does not if the awaited task itself was cancelled, or if a cancel scope of anyio ends inside: HTTP clients
        cancel their own waiting that way when a connection is there.
        """
        inner = bool(error.args) and str(error.args[0]).startswith(_SCOPE)
        return self.main is not None and bool(self.main.cancelling()) and not inner

    @types.coroutine
    def steps(self, work: Coroutine[Any, Any, T], whole: bool = False) -> Generator[Any, Any, T]:
        """Run the work of one of the tasks, which makes no further step once the group has stopped.

        The group ends a task of which this is the `whole` work; the task that started it ends any other.
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
            # The traceback refers to all that the shell had, which would be left to the garbage collector.
            error.__traceback__ = error.__context__ = None
            raise
        finally:
            failure = None  # it refers to this frame
            if joins:
                self.tasks.pop(task, None)

    def abandon(self, rest: Awaitable[Any]) -> None:
        """Cancel the rest of a coroutine that `drive` began and no caller can wait for."""

        async def ending() -> None:
            await rest

        task = asyncio.create_task(ending())
        self.tasks[task] = True
        task.add_done_callback(self._forget)
        asyncio.get_running_loop().call_soon(task.cancel)  # after its first step, so that it takes over the rest

    async def wait_for(self, task: asyncio.Task[T]) -> T:
        """Return the result of a task in which the main one goes on; pass on a cancellation."""
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

    async def run_in_task(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a shell in a new task and return its result."""
        task = asyncio.create_task(self.member(work, whole=True))
        self.tasks[task] = True
        try:
            await asyncio.wait((task,))
        except GeneratorExit:
            task.cancel()  # the caller may not wait and gives up
            raise
        except BaseException:
            await self.end((task,))
            raise
        return task.result()

    async def member(self, work: Callable[[], Coroutine[Any, Any, T]], whole: bool = False) -> T:
        """Run the work of one of the tasks; cancelled before its first step, it never begins."""
        if self.stopped:
            raise asyncio.CancelledError
        return await self.steps(work(), whole)

    async def end(self, tasks: Iterable[asyncio.Task[Any]]) -> None:
        """Cancel tasks and wait until they have ended, for a large group only briefly."""
        every = list(tasks)
        ending = [task for task in every if not task.done()]
        for task in ending:
            if not (self.stopped and self.tasks.get(task)):
                task.cancel()
        left = None if self._wait_until is None else self._wait_until - monotonic()
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
        """Wait until all tasks have ended."""
        while going := [task for task in self.tasks if not task.done()]:
            await asyncio.wait(going)
