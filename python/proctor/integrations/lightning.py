# SPDX-License-Identifier: Apache-2.0
"""A callback for the Trainer of Lightning, `lightning.pytorch` or `pytorch_lightning`.

    from proctor.integrations.lightning import ProctorCallback
    Trainer(callbacks=[ProctorCallback(output="run.proctor", report="run.html")])

    >>> from proctor.integrations.lightning import ProctorCallback
    >>> print(ProctorCallback().summary)     # there is one after the end
    None

Epochs, validation and tests are phases; at the end of each epoch the loggers get the latest sample.
"""
from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Optional

from proctor import Summary

from ._session import Session

__all__ = ["ProctorCallback"]


class _Hooks:
    """What the callback does. Only the process of rank 0 watches; the others of its machine are its children."""

    def __init__(self, interval: float = 1.0, output: Optional[str] = None, report: Optional[str] = None,
                 prefix: str = "process/", **options: Any) -> None:
        super().__init__()
        self._session = Session(interval, output, report, options)
        self._prefix = prefix

    @property
    def summary(self) -> Optional[Summary]:
        """What was used, after the end."""
        return self._session.summary

    def setup(self, trainer: Any, pl_module: Any, stage: Optional[str] = None) -> None:
        if getattr(trainer, "is_global_zero", True):
            self._session.start()

    def teardown(self, trainer: Any, pl_module: Any, stage: Optional[str] = None) -> None:
        self._session.stop()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._session.mark("exception", type=type(exception).__name__)
        self._session.stop()

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._session.begin(f"epoch {trainer.current_epoch}")

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._session.end(f"epoch {trainer.current_epoch}")
        values = self._session.values(self._prefix)
        if values:
            for logger in getattr(trainer, "loggers", ()):
                logger.log_metrics(values, step=trainer.global_step)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._session.begin("validation")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self._session.end("validation")

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        self._session.begin("test")

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        self._session.end("test")

    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        self._session.begin("predict")

    def on_predict_end(self, trainer: Any, pl_module: Any) -> None:
        self._session.end("predict")


def _base() -> Any:
    """The class of whichever package the program uses; they do not take each other's."""
    names = ("lightning.pytorch", "pytorch_lightning")
    loaded = [name for name in names if name in sys.modules]
    for name in [*loaded, *names]:
        try:
            return import_module(name).Callback
        except ImportError:
            continue
    raise ImportError("neither lightning nor pytorch_lightning is installed")


def __getattr__(name: str) -> Any:
    """The callback is made when it is asked for."""
    if name != "ProctorCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = type("ProctorCallback", (_Hooks, _base()), {"__doc__": __doc__, "__module__": __name__})
    globals()[name] = made
    return made
