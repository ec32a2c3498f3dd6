"""A job for `asyncio`: each call of `Job` in a thread of its own, and waiting that can be cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from sojourn.job.best import Best
from sojourn.job.views import Status
from sojourn.job.waiting import Patience, pauses

if TYPE_CHECKING:
    from sojourn.job.job import Job


class LaterJob:
    """The calls of a job as coroutines: `await job.aio.pause()` is `job.pause()` in a thread. Made by `Job.aio`."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        call = getattr(type(self._job), name)
        if name.startswith("_") or not callable(call):
            raise AttributeError(f"a job has no call {name!r} for asyncio")

        def later(*arguments: object, **options: object) -> Awaitable[Any]:
            return asyncio.to_thread(call, self._job, *arguments, **options)

        return later

    async def status(self) -> Status:
        """As `Job.status`."""
        return await asyncio.to_thread(lambda: self._job.status)

    async def best(self) -> Best:
        """As `Job.best`."""
        return await asyncio.to_thread(lambda: self._job.best)

    async def watch(self, timeout: float | None = None) -> AsyncIterator[Status]:
        """As `Job.watch`; a task that is cancelled stops to ask."""
        job, patience, before = self._job, Patience(), None
        for pause in pauses(timeout):
            status = await asyncio.to_thread(patience.ask, lambda: job.status)
            if status is not None and status != before:
                before = status
                yield status
            if status is not None and status.has_ended:
                return
            await asyncio.sleep(pause)

    async def wait(self, timeout: float | None = None) -> Status:
        """As `Job.wait`."""
        last = await self.status()
        async for last in self.watch(timeout):
            pass
        return last
