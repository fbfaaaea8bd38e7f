# SPDX-License-Identifier: Apache-2.0
"""A callback for the Trainer of Hugging Face.

    from proctor.integrations.huggingface import ProctorCallback
    Trainer(..., callbacks=[ProctorCallback(output="run.proctor", report="run.html")])

    >>> from proctor.integrations.huggingface import ProctorCallback
    >>> print(ProctorCallback().summary)     # there is one after the end
    None

Epochs are phases, evaluations and saves are marks; each entry of the log gets the latest sample.
"""
from __future__ import annotations

from importlib import import_module
from typing import Any, Optional

from proctor import Summary

from ._session import Session

__all__ = ["ProctorCallback"]


class _Hooks:
    """What the callback does. Only the first process watches; the others of its machine are its children, or have
    a launcher as their parent that is better watched by `proctor run`."""

    def __init__(self, interval: float = 1.0, output: Optional[str] = None, report: Optional[str] = None,
                 prefix: str = "process/", **options: Any) -> None:
        super().__init__()
        self._session = Session(interval, output, report, options)
        self._prefix = prefix
        self._epoch = ""

    @property
    def summary(self) -> Optional[Summary]:
        """What was used, after the end."""
        return self._session.summary

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if getattr(state, "is_world_process_zero", True):
            self._session.start()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._session.end(self._epoch)
        self._session.stop()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._epoch = f"epoch {int(state.epoch or 0)}"
        self._session.begin(self._epoch)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._session.end(self._epoch)

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._session.mark("evaluate", step=state.global_step)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._session.mark("save", step=state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[dict[str, Any]] = None, **kwargs: Any) -> None:
        values = self._session.values(self._prefix)
        if logs is not None:
            logs.update(values)
        if state.log_history:
            state.log_history[-1].update(values)


def __getattr__(name: str) -> Any:
    """The callback is made when it is asked for."""
    if name != "ProctorCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    base: Any = import_module("transformers").TrainerCallback
    made = type("ProctorCallback", (_Hooks, base), {"__doc__": __doc__, "__module__": __name__})
    globals()[name] = made
    return made
