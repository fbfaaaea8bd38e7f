# SPDX-License-Identifier: Apache-2.0
"""A decorator of steps in the manner of Metaflow's `@track_resources`:

    @card(type="html", options={"attribute": "resource_tracker_data_html"})
    @step
    @track_resources
    def train(self): ...

It stands below `@step`. What was measured is an artifact of the step, also of one that fails.
"""
from __future__ import annotations

import functools
import logging
import traceback
from importlib import import_module
from typing import Any, Callable, Optional, TypeVar, overload

from proctor.compat.resource_tracker.sentinel_api import RunStatus
from proctor.compat.resource_tracker.tracker import ResourceTracker

__all__ = ["track_resources"]

F = TypeVar("F", bound=Callable[..., Any])

logger = logging.getLogger(__name__)

_RUNS_MOST = 5


@overload
def track_resources(function: F) -> F: ...


@overload
def track_resources(*, interval: float = ..., artifact_name: str = ...,
                    create_card: bool = ...) -> Callable[[F], F]: ...


def track_resources(function: Optional[F] = None, *, interval: float = 1.0,
                    artifact_name: str = "resource_tracker_data", create_card: bool = True) -> Any:
    """The artifact is `{"step_failed", "tracker", "historical_stats"}`, or `{"error": {...}}` where nothing could be
    measured; with `create_card` the report is one, too, called ARTIFACT_NAME`_html`.

        >>> class Flow:
        ...     @track_resources(interval=0.1)
        ...     def train(self):
        ...         return "trained"
        >>> flow = Flow()
        >>> flow.train(), flow.resource_tracker_data["step_failed"], flow.resource_tracker_data_html[:15]
        ('trained', False, '<!doctype html>')
    """
    if function is None:
        return functools.partial(_decorated, interval=interval, artifact_name=artifact_name, create_card=create_card)
    return _decorated(function, interval, artifact_name, create_card)


def _decorated(function: Any, interval: float, artifact_name: str, create_card: bool) -> Any:
    @functools.wraps(function)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        tracker, error = _started(interval)
        failed = True
        try:
            result = function(self, *args, **kwargs)
            failed = False
            return result
        finally:
            _keep(self, function.__name__, tracker, error, failed, artifact_name, create_card)
    return step


def _error(e: BaseException) -> dict[str, str]:
    return {"error_type": type(e).__name__, "error_message": str(e), "traceback": traceback.format_exc()}


def _started(interval: float) -> tuple[Optional[ResourceTracker], Optional[dict[str, str]]]:
    try:
        return ResourceTracker(interval=interval, autostart=True), None
    except Exception as e:
        logger.warning("The resources of the step are not tracked: %s", e)
        return None, _error(e)


def _keep(flow: Any, name: str, tracker: Optional[ResourceTracker], error: Optional[dict[str, str]], failed: bool,
          artifact_name: str, create_card: bool) -> None:
    """Nothing that goes wrong here fails the step."""
    data: dict[str, Any] = {"error": error}
    page = ""
    if tracker is not None:
        try:
            tracker.stop(exit_code=int(failed), run_status=RunStatus.failed if failed else RunStatus.finished)
            history = _earlier(type(flow).__name__, name, artifact_name)
            data = {"step_failed": failed, "tracker": tracker.snapshot(), "historical_stats": history}
            page = str(tracker.report("Metaflow", history, failed)) if create_card else ""
        except Exception as e:
            logger.warning("The resources of the step could not be kept: %s", e)
            data = {"error": _error(e)}
    setattr(flow, artifact_name, data)
    if create_card:
        setattr(flow, f"{artifact_name}_html", page)


def _earlier(flow: str, step: str, artifact_name: str) -> list[dict[str, Any]]:
    """Figures of this step in the last runs that succeeded, of all its tasks."""
    found: list[dict[str, Any]] = []
    try:
        client: Any = import_module("metaflow")
        current = getattr(client.current, "run_id", None)
        runs = (run for run in client.Flow(flow) if run.id != current and run.successful)
        for run, _ in zip(runs, range(_RUNS_MOST)):
            for task in run[step]:
                data = getattr(task.data, artifact_name, None) or {}
                if "tracker" in data:
                    found.append(ResourceTracker.from_snapshot(data["tracker"]).stats())
    except Exception as e:  # no Metaflow, no metadata, another run that was removed meanwhile
        logger.info("No earlier runs are compared: %s", e)
    return found
