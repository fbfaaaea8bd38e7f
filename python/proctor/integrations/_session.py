# SPDX-License-Identifier: Apache-2.0
"""A monitor for the time of a training: the latest sample, phases, and the report at its end."""
from __future__ import annotations

import logging
from typing import Any, Optional

from proctor import Monitor, Snapshot, Summary

from ._named import process_values

logger = logging.getLogger(__name__)


class Session:
    """Nothing that goes wrong here ends a training: it is logged."""

    def __init__(self, interval: float, output: Optional[str], report: Optional[str], options: dict[str, Any]) -> None:
        if report is not None and output is None:
            raise ValueError("a report is made of a run file: give an output")
        self._report = report
        self._options = {"interval": interval, "output": output, **options}
        self._monitor: Optional[Monitor] = None
        self._latest: dict[str, float] = {}
        self._phases: list[str] = []
        self.summary: Optional[Summary] = None

    def _arrived(self, snapshot: Snapshot) -> None:
        # Not each sample has all of them: what is dear is read less often.
        self._latest.update(process_values(snapshot, ""))

    def start(self) -> None:
        if self._monitor is not None:
            return
        try:
            self._monitor = Monitor(on_sample=self._arrived, **self._options).start()
        except Exception:
            logger.warning("proctor does not watch this training", exc_info=True)

    def begin(self, phase: str) -> None:
        self._say("phase_begin", phase)
        self._phases.append(phase)

    def end(self, phase: str) -> None:
        """Ends it where it is open."""
        if phase in self._phases:
            del self._phases[self._phases.index(phase):]
            self._say("phase_end", phase)

    def mark(self, name: str, **values: Any) -> None:
        self._say("mark", name, **values)

    def _say(self, method: str, *words: Any, **values: Any) -> None:
        if self._monitor is not None:
            try:
                getattr(self._monitor, method)(*words, **values)
            except Exception:
                logger.warning("proctor: %s %s", method, words, exc_info=True)

    def values(self, prefix: str) -> dict[str, float]:
        """The latest of each, by name."""
        return {prefix + name: value for name, value in self._latest.copy().items()}

    def stop(self) -> None:
        monitor, self._monitor = self._monitor, None
        if monitor is None:
            return
        try:
            self.summary = monitor.stop()
            if self._report is not None:
                monitor.report(self._report)
        except Exception:
            logger.warning("proctor could not end its record", exc_info=True)
