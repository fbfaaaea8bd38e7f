# SPDX-License-Identifier: Apache-2.0
"""From the writer's thread of the library to a thread of Python's own.

The writer has a small stack and files to write: it leaves what it has in a queue, and whatever the
user's callback or a handler of `logging` does, it does elsewhere."""
from __future__ import annotations

import ctypes
import json
import queue
import threading
from typing import Any, Callable, Optional

from proctor import _library
from proctor._values import Snapshot, Summary

WAITING_MOST = 256
"""Samples that may wait for a slow callback; what comes then is left out, counted and said."""


def logger() -> Any:
    import logging
    return logging.getLogger("proctor")


class Delivery:
    """A sink of the library, and a thread that is there once something has happened."""

    def __init__(self, on_sample: Optional[Callable[[Snapshot], Any]], wants: int) -> None:
        self._on_sample = on_sample
        self._wants = wants
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: Optional[threading.Thread] = None
        self._lost = 0
        self.told: set[str] = set()
        sample = _library.SAMPLE_FN(self._sampled) if on_sample else _library.SAMPLE_FN()
        self.sink = _library.Sink(ctypes.sizeof(_library.Sink), wants, sample, _library.TEXT_FN(self._told))

    # --- in the writer's thread

    def _sampled(self, pointer: int, _: Any) -> None:
        if self._queue.qsize() < WAITING_MOST:
            self._put(_library.snapshot(pointer, self._wants))
        else:
            self._lost += 1

    def _told(self, line: bytes, _: Any) -> None:
        self._put(line)

    def _put(self, item: Any) -> None:
        self._queue.put(item)
        if self._thread is None:
            thread = threading.Thread(target=self._deliver, name="proctor", daemon=True)
            try:
                thread.start()
                self._thread = thread
            except RuntimeError:
                pass  # the interpreter ends: close() has what is left

    # --- in ours

    def _deliver(self) -> None:
        while True:
            item = self._queue.get()
            if item is None:
                return
            self._hand_over(item)

    def _hand_over(self, item: Any) -> None:
        if isinstance(item, bytes):
            self.told.add(log_line(item))
        elif self._on_sample:
            try:
                self._on_sample(item)
            except Exception:
                logger().exception("on_sample failed; sampling goes on")

    def close(self) -> None:
        """Once the library is done with the sink: waits until everything is handed over."""
        thread, self._thread = self._thread, None
        if thread is threading.current_thread():
            self._queue.put(None)  # a callback that stops its own monitor: the rest comes behind it
        elif thread is not None:
            self._queue.put(None)
            thread.join()
        else:
            while not self._queue.empty():
                self._hand_over(self._queue.get())
        if self._lost:
            logger().warning("on_sample was too slow: it has not had %d samples", self._lost)
            self._lost = 0


LEVELS = {"problem": 30, "oom": 30, "gpu": 30, "budget": 20}
"""Of `logging`: trouble is a warning; what sampling has cost is worth knowing. The rest is for those who debug."""


def log_line(line: bytes) -> str:
    """What the library says has happened; its text."""
    said = json.loads(line)
    event = said.get("event")
    if said.get("type") == "phase":
        logger().debug("phase %s: %.3f s", said.get("name"), said.get("seconds"))
    elif event == "mark":
        logger().debug("mark %s: %s", said.get("name"), said.get("data"))
    else:
        logger().log(LEVELS.get(event, 10), "%s", said.get("text"))
    return str(said.get("text"))


def log_events(summary: Summary, delivery: Optional[Delivery]) -> None:
    """The same of a summary, for what nobody was told before: all of it, or what went wrong after the
    last sample, as with a server that did not take the rest."""
    for event in summary.data.get("events", ()):
        if delivery and (event["type"] == "mark" or event.get("text") in delivery.told):
            continue
        if event["type"] == "mark":
            logger().debug("mark %s: %s", event.get("name"), event.get("data"))
        else:
            logger().log(LEVELS.get(event["type"], 10), "%s", event.get("text"))
