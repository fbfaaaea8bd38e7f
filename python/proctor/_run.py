# SPDX-License-Identifier: Apache-2.0
"""Recorded runs, and commands that are run to be recorded."""
from __future__ import annotations

import ctypes
import errno
import json
import math
import os
import signal
import weakref
from array import array
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, Union

from proctor import _library
from proctor._monitor import Path, option_texts
from proctor._values import Summary

if TYPE_CHECKING:
    import subprocess


class Run:
    """A run that was recorded, or still is being: a file, an id or its unique beginning, or "last".

        >>> import tempfile, os, proctor
        >>> path = os.path.join(tempfile.mkdtemp(), "a.proctor")
        >>> with proctor.Monitor(interval=0.01, output=path):
        ...     pass
        >>> with Run.open(path) as r:
        ...     samples = r.samples(["mem.rss"])
        ...     r.summary["mem.rss"].peak >= max(samples["mem.rss"][:-1])
        True
    """

    def __init__(self, pointer: Optional[int], trouble: Optional[Exception] = None) -> None:
        self._pointer = pointer
        self._trouble = trouble  # why there is no record
        self._summary: Optional[Summary] = None
        self._finalizer = weakref.finalize(self, _library.function("run_free"), pointer)
        self._process: Optional[subprocess.CompletedProcess[Any]] = None

    @classmethod
    def open(cls, run: Path = "last") -> Run:
        """Opens a run; `Error` where there is none, or it cannot be read.

            >>> made = run(["true"])
            >>> Run.open(made.id).path == Run.open(made.path).path == made.path
            True
        """
        pointer = ctypes.c_void_p()
        _library.call("run_open", ctypes.byref(pointer), _library.encoded(os.fspath(run)))
        return cls(pointer.value)

    @staticmethod
    def ls() -> list[Mapping[str, Any]]:
        """The recorded runs of this user, as `proctor ls --json` has them: `id`, `name`, `command`,
        `started`, `duration`, `status`, `file`... Open one by its `file`.

            >>> made = run(["true"])
            >>> [row["status"] for row in Run.ls() if row["id"] == made.id]
            ['ok']
        """
        found: list[Mapping[str, Any]] = []

        def add(line: bytes, _: Any) -> None:
            found.append(json.loads(line))
        callback = _library.TEXT_FN(add)
        _library.call("runs_list", callback, None)
        return found

    def close(self) -> None:
        """Its file is closed. What was read of it stays."""
        self._pointer = None
        self._finalizer()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def _open(self) -> int:
        if self._pointer is None:
            raise self._trouble or ValueError("the run is closed")
        return self._pointer

    @property
    def id(self) -> str:
        """The name by which it is found; its beginning is enough where no other begins so."""
        return os.fsdecode(_library.function("run_id")(self._open()) or b"")

    @property
    def path(self) -> str:
        """The run file."""
        return os.fsdecode(_library.function("run_path")(self._open()) or b"")

    @property
    def summary(self) -> Summary:
        """What was used. Of a run without an end it is what is known so far, at the first call."""
        if self._summary is None:
            self._summary = Summary(_library.call_text("run_summary_json", self._open()))
        return self._summary

    # --- samples

    def samples(self, keys: Optional[Sequence[str]] = None) -> dict[str, array[Any]]:
        """Columns by key (one, or several), each an array of doubles, NaN where a value is absent; by default of all
        metrics that are known at all. Besides, `time` (Unix nanoseconds, integers), `elapsed` and
        `interval` (seconds).

            >>> columns = run(["sleep", "0.05"], interval=0.01).samples(["mem.rss"])
            >>> [(name, column.typecode) for name, column in columns.items()]
            [('time', 'q'), ('elapsed', 'd'), ('interval', 'd'), ('mem.rss', 'd')]
        """
        lib = _library.library()
        keys = [keys] if isinstance(keys, str) else keys
        unknown = [key for key in keys or () if key not in lib.places]
        if unknown:
            raise KeyError(f"{unknown[0]}: there is no such metric")
        wanted = list(lib.keys if keys is None else keys)
        places = [lib.places[key] for key in wanted]
        buffer, flat = lib.doubles(), array("d")
        elapsed, interval, time = array("d"), array("d"), array("q")
        f = lib.functions

        def add(snapshot: int, _: Any) -> None:
            f["snapshot_values"](snapshot, buffer, len(buffer))
            flat.extend([buffer[place] for place in places])
            time.append(f["snapshot_time"](snapshot))
            elapsed.append(f["snapshot_elapsed"](snapshot))
            interval.append(f["snapshot_interval"](snapshot))
        callback = _library.SAMPLE_FN(add)
        _library.call("run_samples", self._open(), callback, None)
        found: dict[str, array[Any]] = {"time": time, "elapsed": elapsed, "interval": interval}
        for i, key in enumerate(wanted):
            column = flat[i::len(wanted)]
            if keys is not None or not all(map(math.isnan, column)):
                found[key] = column
        return found

    def to_pandas(self, keys: Optional[Sequence[str]] = None) -> Any:
        """The samples as a DataFrame, indexed by time (UTC). Needs pandas.

            >>> frame = run(["sleep", "0.05"], interval=0.01).to_pandas(["mem.rss"])
            >>> frame.index.name, list(frame.columns)
            ('time', ['elapsed', 'interval', 'mem.rss'])
        """
        pandas = import_module("pandas")
        columns: dict[str, Any] = dict(self.samples(keys))
        index = pandas.DatetimeIndex(pandas.to_datetime(list(columns.pop("time")), unit="ns", utc=True), name="time")
        return pandas.DataFrame(columns, index=index)

    def to_polars(self, keys: Optional[Sequence[str]] = None) -> Any:
        """The samples as a DataFrame of polars; null where a value is absent. Needs polars.

            >>> run(["sleep", "0.05"], interval=0.01).to_polars(["mem.rss"]).columns
            ['time', 'elapsed', 'interval', 'mem.rss']
        """
        polars = import_module("polars")
        columns: dict[str, Any] = dict(self.samples(keys))
        frame = polars.DataFrame({name: list(column) for name, column in columns.items()})
        return frame.with_columns(polars.col("time").cast(polars.Datetime("ns", "UTC"))).fill_nan(None)

    def report(self, path: Path) -> None:
        """Writes a report: .html, .md, .txt, .svg, .png or .json."""
        _library.call("run_report", self._open(), _library.encoded(os.fspath(path)))

    def _repr_html_(self) -> str:
        from proctor._html import of_run
        return of_run(self)

    def __repr__(self) -> str:
        return f"<Run {self.id}>" if self._pointer else "<Run, not recorded>" if self._trouble else "<Run, closed>"

    # --- of proctor.run

    def _completed(self) -> subprocess.CompletedProcess[Any]:
        if self._process is None:
            raise AttributeError("only what proctor.run() has started has this")
        return self._process

    @property
    def args(self) -> Any:
        """The command, where `proctor.run` has started it."""
        return self._completed().args

    @property
    def returncode(self) -> int:
        """As of `subprocess.CompletedProcess`: negative for a signal."""
        return self._completed().returncode

    @property
    def stdout(self) -> Any:
        """What the command has printed, where it was to be captured; else None."""
        return self._completed().stdout

    @property
    def stderr(self) -> Any:
        """The same of standard error."""
        return self._completed().stderr

    def check_returncode(self) -> None:
        """Raises `subprocess.CalledProcessError` where the command has failed."""
        self._completed().check_returncode()


NOT_STARTED = {125: errno.EINVAL, 126: errno.EACCES, 127: errno.ENOENT}
"""How the command exits where it could not even start the job. A job may exit so, too: it has a record."""


def not_started(status: int, name: str) -> OSError:
    """What `subprocess.run` would have raised; of what was wrong with the recording, it has spoken itself."""
    code = NOT_STARTED[status]
    if status == 125:
        return _library.Error(code, f"proctor could not start {name}: its message is on standard error")
    return OSError(code, os.strerror(code), name)


# --- run --------------------------------------------------------------------------------------------------------


def _run_id() -> str:
    import time
    return time.strftime("%Y%m%dT%H%M%SZ-", time.gmtime()) + os.urandom(4).hex()


def _state() -> str:
    """Where runs of this user are, as the command has it."""
    states = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.environ.get("PROCTOR_HOME") or os.path.join(states, "proctor")


def _arguments(options: Mapping[str, Any]) -> list[str]:
    return [f"--{name}" if value == "true" else f"--{name}={value}" for name, value in option_texts(options)]


def _kill_job(process: subprocess.Popen[Any]) -> None:
    """The job, not its recorder: that one writes its record and ends as the job did."""
    try:
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as f:
            children = [int(pid) for pid in f.read().split()]
    except OSError:
        children = []
    for pid in children:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    if not children:
        process.kill()


def _finish(process: subprocess.Popen[Any], input: Any, timeout: Optional[float]) -> tuple[Any, Any]:
    import subprocess
    try:
        return process.communicate(input, timeout=timeout)
    except subprocess.TimeoutExpired as e:
        _kill_job(process)
        e.stdout, e.stderr = process.communicate()
        raise
    except BaseException:
        _kill_job(process)
        process.wait()
        raise


def run(args: Union[str, Sequence[Path]], *, interval: Union[float, str, None] = None, output: Optional[Path] = None,
        options: Optional[Mapping[str, Any]] = None, input: Any = None, capture_output: bool = False,
        timeout: Optional[float] = None, check: bool = False, **popen: Any) -> Run:
    """Runs a command to its end and records it and everything it starts: as `subprocess.run`, but what
    comes back is also a `Run`.

    `options` are those of `proctor run` (`{"no_pss": True, "label": {"a": "b"}}`); other keywords are
    those of `subprocess.run`. Without `output` the record is in the state directory, as that of the
    command is. Where nothing could be recorded there, the command has run all the same: what it printed
    and how it ended is known, and asking for anything else raises why.

        >>> r = run(["sh", "-c", "exit 3"], output=os.path.join(__import__("tempfile").mkdtemp(), "r"))
        >>> r.returncode, r.summary["procs.started"].total
        (3, 1.0)
    """
    import subprocess
    words = [os.fspath(args)] if isinstance(args, (str, os.PathLike)) else [os.fspath(word) for word in args]
    if popen.pop("shell", False):
        words = ["/bin/sh", "-c", *words]
    place = None if output is None else os.path.abspath(output)  # not below the command's own directory
    settings: dict[str, Any] = {"quiet": True, "interval": interval, "output": place, **(options or {})}
    if place is None:
        settings.setdefault("run_id", _run_id())
        if popen.get("env") is not None:
            popen["env"] = {"PROCTOR_HOME": _state(), **popen["env"]}  # where it is looked for afterwards
    if capture_output:
        popen.update(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if input is not None:
        popen["stdin"] = subprocess.PIPE
    process = subprocess.Popen([_library.command(), "run", *_arguments(settings), "--", *words], **popen)
    with process:
        stdout, stderr = _finish(process, input, timeout)
    done = subprocess.CompletedProcess(args, process.returncode, stdout, stderr)
    if check and process.returncode not in NOT_STARTED:
        done.check_returncode()
    try:
        found = Run.open(place or settings["run_id"])
    except _library.Error as e:
        if process.returncode in NOT_STARTED and e.errno == errno.ENOENT:
            raise not_started(process.returncode, words[0]) from None
        found = Run(None, e)  # the job has run all the same
    found._process = done
    if check:
        done.check_returncode()
    return found
