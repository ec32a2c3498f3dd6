"""A job for `asyncio`: each call of `Job` in a thread of its own, and waiting that can be cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar

from sojourn.job.best import Best
from sojourn.job.job import Job
from sojourn.job.views import Status
from sojourn.job.waiting import Patience, pauses

P = ParamSpec("P")
T = TypeVar("T")


def _later(call: Callable[Concatenate[Job, P], T]) -> Callable[Concatenate[LaterJob, P], Coroutine[Any, Any, T]]:
    """A call of a job as a coroutine, with the same arguments."""

    async def later(self: LaterJob, /, *arguments: P.args, **options: P.kwargs) -> T:
        return await asyncio.to_thread(call, self._job, *arguments, **options)

    update_wrapper(later, call)
    return later


class LaterJob:
    """The calls of a job as coroutines: `await job.aio.pause()` is `job.pause()` in a thread. Made by `Job.aio`."""

    def __init__(self, job: Job) -> None:
        self._job = job

    cancel = _later(Job.cancel)
    clone = _later(Job.clone)
    curves = _later(Job.curves)
    delete = _later(Job.delete)
    detail = _later(Job.detail)
    end = _later(Job.end)
    evaluate = _later(Job.evaluate)
    export = _later(Job.export)
    extend = _later(Job.extend)
    pause = _later(Job.pause)
    predict = _later(Job.predict)
    prioritise = _later(Job.prioritise)
    replay = _later(Job.replay)
    report = _later(Job.report)
    resume = _later(Job.resume)
    retry = _later(Job.retry)
    revive = _later(Job.revive)
    rollback = _later(Job.rollback)
    search = _later(Job.search)
    set = _later(Job.set)
    share = _later(Job.share)
    stop = _later(Job.stop)
    trial = _later(Job.trial)
    trials = _later(Job.trials)
    widen = _later(Job.widen)

    async def status(self) -> Status:
        """As `Job.status`."""
        return await asyncio.to_thread(lambda: self._job.status)

    async def best(self) -> Best:
        """As `Job.best`."""
        return await asyncio.to_thread(lambda: self._job.best)

    async def change(self, **request: object) -> list[int]:
        """As `Job.change`."""
        return await asyncio.to_thread(lambda: self._job.change(**request))

    async def events(self, after: int = 0) -> list[dict[str, Any]]:
        """As `Job.events`, all of them at once."""
        return await asyncio.to_thread(lambda: list(self._job.events(after)))

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
