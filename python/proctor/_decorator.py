# SPDX-License-Identifier: Apache-2.0
"""@monitored: a monitor for each call."""
from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Callable, Optional, Protocol, TypeVar, overload

from proctor._delivery import logger
from proctor._monitor import F, Monitor, Path
from proctor._values import Summary

F_co = TypeVar("F_co", bound=Callable[..., Any], covariant=True)
R = TypeVar("R")


class Monitored(Protocol[F_co]):
    """What `monitored` makes of a function, for those who check types. It is a function all the same."""

    @property
    def summary(self) -> Summary:
        """What the last call used. It is not there before the first one has ended."""

    @property
    def __call__(self) -> F_co:
        """It is called as before."""

    @overload
    def __get__(self, instance: None, owner: Any) -> Monitored[F_co]: ...

    # How to take the first one away from parameters can be said only from Python 3.10 on: of a method the result
    # is checked, its arguments are not.
    @overload
    def __get__(self: Monitored[Callable[..., R]], instance: object, owner: Any) -> Monitored[Callable[..., R]]: ...


@overload
def monitored(function: F) -> Monitored[F]: ...


@overload
def monitored(*, on_summary: Optional[Callable[[Summary], Any]] = ..., report: Optional[Path] = ...,
              **options: Any) -> Callable[[F], Monitored[F]]: ...


def monitored(function: Optional[F] = None, *, on_summary: Optional[Callable[[Summary], Any]] = None,
              report: Optional[Path] = None, **options: Any) -> Any:
    """Records each call of a function, coroutine or generator (from its first item to its last).

    What a call used is logged, given to `on_summary`, and kept as `function.summary` until the next one
    (before the first one has ended there is no such attribute);
    `report` is written after each, for which `output` is needed. Other keywords are those of `Monitor`.

        >>> @monitored(interval=0.1)
        ... def work():
        ...     return sum(range(1000))
        >>> work()
        499500
        >>> work.summary["cpu.time"].total > 0
        True
    """
    if function is None:
        return functools.partial(_wrap, on_summary=on_summary, report=report, options=options)
    return _wrap(function, on_summary, report, options)


class _Call:
    """A monitor for the time of one call."""

    def __init__(self, wrapper: Any, on_summary: Optional[Callable[[Summary], Any]], report: Optional[Path],
                 options: Mapping[str, Any]) -> None:
        self._wrapper = wrapper
        self._on_summary = on_summary
        self._report = report
        self._monitor = Monitor(**options)

    def __enter__(self) -> None:
        self._monitor.start()

    def __exit__(self, *_: object) -> None:
        self._monitor.stop()
        summary = self._monitor.summary
        self._wrapper.summary = summary
        logger().info("%s: %s", self._wrapper.__qualname__, in_words(summary))
        if self._report is not None:
            self._monitor.report(self._report)
        if self._on_summary:
            self._on_summary(summary)


def _wrap(function: Any, on_summary: Optional[Callable[[Summary], Any]], report: Optional[Path],
          options: Mapping[str, Any]) -> Any:
    import inspect
    wrapper: Any

    def call() -> _Call:
        return _Call(wrapper, on_summary, report, options)

    if inspect.iscoroutinefunction(function):
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            with call():
                return await function(*args, **kwargs)
    elif inspect.isasyncgenfunction(function):
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            with call():
                inner = function(*args, **kwargs)
                sent = None
                try:
                    while True:
                        try:
                            item = await inner.asend(sent)
                        except StopAsyncIteration:
                            return
                        sent = yield item
                finally:
                    await inner.aclose()
    elif inspect.isgeneratorfunction(function):
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with call():
                return (yield from function(*args, **kwargs))
    else:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with call():
                return function(*args, **kwargs)
    functools.update_wrapper(wrapper, function)
    return wrapper


def in_words(summary: Summary) -> str:
    """One line of what was used.

        >>> in_words(Summary('{"run": {"duration": 2.0}, "metrics": {"cpu.time": {"total": 1.5}}}'))
        '2.00 s, 1.50 s of CPU time'
    """
    parts = [f"{summary.duration:.2f} s"]
    cpu = summary.get("cpu.time", None)
    if cpu and cpu.total is not None:
        parts.append(f"{cpu.total:.2f} s of CPU time")
    for key, name in (("mem.pss", "PSS"), ("mem.rss", "RSS")):
        memory = summary.get(key, None)
        if memory and memory.peak is not None:
            parts.append(f"{memory.peak / 2**20:.1f} MiB of memory at its peak ({name})")
            break
    return ", ".join(parts)
