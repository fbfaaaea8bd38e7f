# SPDX-License-Identifier: Apache-2.0
"""Monitor."""
from __future__ import annotations

import ctypes
import errno
import functools
import json
import operator
import os
import threading
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Callable, Optional, TypeVar, Union

from proctor import _library
from proctor._delivery import Delivery, log_events, logger
from proctor._values import Snapshot, Summary

F = TypeVar("F", bound=Callable[..., Any])
Path = Union[str, "os.PathLike[str]"]
OnSample = Callable[[Snapshot], Any]
BUDGET = "0.2%"
"""Of one core, where none is given: a guest in somebody else's process takes less than the command does."""
WRITTEN = {"output", "csv", "jsonl", "prometheus", "textfile"}
"""Options with which the library has a thread that writes. Where it has none, one is not worth having for
what may go wrong: that is in the summary."""

OTHERS = ("budget", "dialect", "force", "label", "mlflow", "name", "no_pss", "otlp")
"""Options of the command that are wanted most; the library does not list them."""


def option_texts(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Options of the command as keywords: `no_pss=True`, `label={"a": "b"}`, `csv=["one.csv", "two.csv"]`.
    None and False are as if they were not there.

        >>> option_texts({"no_pss": True, "interval": 0.5, "label": {"a": 1}, "csv": None})
        [('no-pss', 'true'), ('interval', '0.5'), ('label', 'a=1')]
    """
    found: list[tuple[str, str]] = []
    for name, value in options.items():
        name = name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            found.append((name, "true"))
        elif isinstance(value, Mapping):
            found += [(name, f"{key}={inner}") for key, inner in value.items()]
        elif isinstance(value, (list, tuple)):
            found += [(name, os.fspath(v) if isinstance(v, os.PathLike) else str(v)) for v in value]
        else:
            found.append((name, os.fspath(value) if isinstance(value, os.PathLike) else str(value)))
    return found


class _Native:
    """A handle of the library. It is dead in a forked child, where the library frees memory alone."""

    def __init__(self) -> None:
        pointer = ctypes.c_void_p()
        _library.call("monitor_new", ctypes.byref(pointer))
        self.pointer: Optional[int] = pointer.value
        self.owner = os.getpid()
        self.delivery: Optional[Delivery] = None
        self.begun = False
        self.sampling = False

    def add(self, delivery: Delivery) -> None:
        _library.call("monitor_add_sink", self.pointer, ctypes.byref(delivery.sink), None)
        self.delivery = delivery

    def end(self) -> Optional[str]:
        """Ends the record. Its summary; None where nothing was recorded."""
        try:
            _library.call("monitor_stop", self.pointer)
            text: Optional[bytes] = _library.function("monitor_summary_json")(self.pointer)
        finally:
            self.free()
        return text.decode("utf-8", "replace") if text else None

    def free(self) -> None:
        pointer, self.pointer = self.pointer, None
        if pointer:
            _library.function("monitor_free")(pointer)

    def forget(self) -> None:
        """When the monitor is gone or the interpreter ends: what is recorded is complete."""
        mine = self.owner == os.getpid()
        self.free()
        if mine and self.delivery:
            self.delivery.close()


class Phase:
    """`with m.phase("load"): ...`, also as a decorator."""

    def __init__(self, monitor: Monitor, name: str) -> None:
        self._monitor = monitor
        self._name = name

    def __enter__(self) -> Phase:
        self._monitor.phase_begin(self._name)
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        try:
            self._monitor.phase_end(self._name)
        except _library.Error as e:
            # Ended already, with an outer one of another thread or with the record: that is no reason to
            # fail for what is being measured.
            if e.errno not in (errno.ENOENT, errno.EBUSY):
                raise
            logger().debug("phase %s: %s", self._name, e)

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with Phase(self._monitor, self._name):
                return function(*args, **kwargs)
        return inside  # type: ignore[return-value]


class Monitor:
    """Watches this process and its children, or whatever else is named, from a native thread.

    pid           another process and its children; `children=False` for it alone
    group, cgroup a process group; a cgroup by its path
    match         processes by name, "NAME=REGEX" or "REGEX", one or several
    system        the whole machine
    interval      seconds, or "100ms"
    output        the run file; there is none where it is not given, and then no `report`
    on_sample     called with each `Snapshot` in a thread of its own; it may take its time, and what it
                  raises is logged
    processes     snapshots have each process; `devices`: each core, disk, interface, GPU

    Any other option of `proctor attach` goes by its long name: `csv="a.csv"`, `no_pss=True`,
    `label={"a": "b"}`, `name="training"`. `budget` is 0.2 % of a core where it is not given: PSS, which
    alone is dear, is read as often as that allows; of many processes `budget="1%"` has it sooner.

    A monitor may be started again after it was stopped: that is another record. In a forked child it is
    off until it is started there, and then watches the child.

        >>> with Monitor(interval=0.01) as m:
        ...     m.mark("half", step=3)
        >>> m.summary["procs"].peak >= 1
        True
        >>> m.running
        False
    """

    def __init__(self, pid: Optional[int] = None, *, interval: Union[float, str, None] = None,
                 output: Optional[Path] = None, on_sample: Optional[OnSample] = None, processes: bool = False,
                 devices: bool = False, children: bool = True, group: Optional[int] = None,
                 cgroup: Optional[Path] = None, match: Union[str, list[str], None] = None, system: bool = False,
                 **options: Any) -> None:
        named = [n for n, v in (("pid", pid), ("group", group), ("cgroup", cgroup), ("system", system or None))
                 if v is not None]
        if len(named) > 1:
            raise ValueError(f"{' and '.join(named)}: one of them can be watched")
        self._target: dict[str, Any] = {"pid": _number("pid", pid), "group": _number("group", group), "cgroup": cgroup, "system": system}
        self._children = children
        self._match = [match] if isinstance(match, str) else list(match or ())
        place = None if output is None else os.path.abspath(output)  # wherever the program goes
        given = {"interval": interval, "output": place, "budget": BUDGET, **options}
        self._options = {name: value for name, value in given.items() if value is not None and value is not False}
        self._on_sample = on_sample
        self._wants = processes * _library.WANT_PROCESSES | devices * _library.WANT_DEVICES
        self._reset()
        self._ready()

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self._native: Optional[_Native] = None
        self._finalizer: Optional[weakref.finalize[Any, Any]] = None
        self._text: Optional[str] = None
        self._summary: Optional[Summary] = None
        self._owner = os.getpid()
        _monitors.add(self)

    # --- the handle

    def _make(self) -> _Native:
        native = _Native()
        self._finalizer = weakref.finalize(self, native.forget)
        for name, value in option_texts(self._options):
            try:
                _library.call("monitor_set", native.pointer, _library.encoded(name), _library.encoded(value))
            except _library.Error as e:
                raise _library.Error(e.errno, f"{e.strerror}{_nearest(name, str(e.strerror))}") from None
        self._watch(native.pointer)
        if self._on_sample or self._wants:
            native.add(Delivery(self._on_sample, self._wants))
        return native

    def _watch(self, pointer: Optional[int]) -> None:
        t = self._target
        alone = not any(v is not None and v is not False for v in t.values())
        if t["system"]:
            _library.call("monitor_watch_system", pointer)
        elif t["group"] is not None:
            _library.call("monitor_watch_group", pointer, t["group"])
        elif t["cgroup"] is not None:
            _library.call("monitor_watch_cgroup", pointer, _library.encoded(os.fspath(t["cgroup"])))
        elif not (alone and self._match):
            pid = os.getpid() if t["pid"] is None else t["pid"]
            _library.call("monitor_watch_pid", pointer, pid, 0 if self._children else _library.NO_CHILDREN)
        for rule in self._match:
            if alone:
                _library.call("monitor_watch_match", pointer, _library.encoded(rule))
            else:
                _library.call("monitor_set", pointer, b"match", _library.encoded(rule))

    def _ready(self) -> _Native:
        """A handle that can begin, or has begun."""
        if self._native is None:
            self._native = self._make()
        return self._native

    @property
    def running(self) -> bool:
        """Whether it samples by itself."""
        native = self._native
        return native is not None and native.sampling

    # --- recording

    def start(self) -> Monitor:
        """Samples from a native thread until `stop`. `with` does both.

            >>> m = Monitor(interval=0.01).start()
            >>> m.running
            True
            >>> m.stop()["procs"].peak >= 1
            True
        """
        with self._lock:
            native = self._ready()
            if native.sampling:
                raise _library.Error(errno.EBUSY, "the monitor has been started already")
            if not native.begun and not native.delivery and WRITTEN & self._options.keys():
                native.add(Delivery(None, 0))  # what goes wrong is logged as it happens
            self._begin("monitor_start", native)
            native.sampling = True
        return self

    def _begin(self, name: str, native: _Native) -> None:
        try:
            _library.call(name, native.pointer)
        except _library.Error as e:
            if not native.begun:  # the library would say the same again; another handle may be luckier
                self._native = None
                native.free()
            if e.errno == errno.EEXIST:  # it speaks of options of the command
                words = str(e.strerror).replace("--output", "output").replace("--force", "force=True")
                raise _library.Error(e.errno, words) from None
            raise
        native.begun = True
        self._text = self._summary = None

    def collect(self) -> Snapshot:
        """One sample, taken now in the calling thread, without a thread of its own.

            >>> Monitor().collect()["mem.rss"] > 0
            True
        """
        with self._lock:
            native = self._ready()
            self._begin("monitor_collect", native)
            return _library.snapshot(_library.function("monitor_latest")(native.pointer), self._wants)

    def stop(self) -> Optional[Summary]:
        """Takes the last sample and ends the record; gives its summary. A second call does nothing. None where
        nothing was recorded.

            >>> m = Monitor()
            >>> print(m.stop())
            None
            >>> m.start().stop() is m.summary
            True
        """
        with self._lock:
            native = self._native
            if native is None or not native.begun:
                return self._summary_now()
            self._native = None
            if self._finalizer:
                self._finalizer.detach()
            self._text = native.end()
        summary = self._summary_now()
        if native.delivery:
            native.delivery.close()
        if summary:
            log_events(summary, native.delivery)
        return summary

    def _summary_now(self) -> Optional[Summary]:
        with self._lock:  # another thread may be about to stop it
            if self._summary is None and self._text is not None:
                self._summary = Summary(self._text)
            return self._summary

    def __enter__(self) -> Monitor:
        return self.start()

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.stop()

    # --- what happens inside

    def _annotate(self, name: str, *arguments: Any) -> None:
        with self._lock:
            native = self._native
            if native is None or not native.begun:
                if self._text is not None:
                    raise _library.Error(errno.EBUSY, "the record has ended")
                return
            _library.call(name, native.pointer, *arguments)

    def phase(self, name: str) -> Phase:
        """What happens inside has an account of its own in the summary. Phases nest.

            >>> with Monitor() as m:
            ...     with m.phase("load"):
            ...         pass
            >>> [p["name"] for p in m.summary.phases]
            ['load']
        """
        return Phase(self, name)

    def phase_begin(self, name: str) -> None:
        """A phase begins. Nothing happens while the monitor is off."""
        self._annotate("monitor_phase_begin", _library.encoded(name))

    def phase_end(self, name: str) -> None:
        """It ends, and those inside it."""
        self._annotate("monitor_phase_end", _library.encoded(name))

    def mark(self, name: str, /, **values: Any) -> None:
        """Something happened just now, with what is to be said of it. Nothing happens while the monitor
        is off.

            >>> with Monitor() as m:
            ...     m.mark("epoch", step=3)
            >>> [dict(e["data"]) for e in m.summary.data["events"] if e["type"] == "mark"]
            [{'step': 3}]
        """
        said = json.dumps(values, default=_plain) if values else None
        self._annotate("monitor_mark", _library.encoded(name), said.encode() if said else None)

    # --- what came of it

    @property
    def summary(self) -> Summary:
        """After `stop`: what was used, a read-only mapping of key to `Stat`."""
        found = self._summary_now()
        if found is None:
            raise _library.Error(errno.EBUSY, "there is no summary before the monitor has stopped")
        return found

    @property
    def output(self) -> Optional[str]:
        """The run file, where one was asked for."""
        output: Optional[str] = self._options.get("output")
        return output

    def report(self, path: Path) -> None:
        """Writes a report: .html, .md, .txt, .svg, .png or .json. Needs `output`.

            >>> import tempfile
            >>> folder = tempfile.mkdtemp()
            >>> with Monitor(output=os.path.join(folder, "a.proctor")) as m:
            ...     pass
            >>> m.report(os.path.join(folder, "a.html"))
            >>> sorted(os.listdir(folder))
            ['a.html', 'a.proctor']
        """
        from proctor._run import Run
        if self.output is None:
            raise _library.Error(errno.EINVAL, "a report is made of a run file: give the monitor an output")
        with Run.open(self.output) as run:
            run.report(path)
    def __repr__(self) -> str:
        from proctor._decorator import in_words
        if self.running:
            return "<Monitor, running>"
        found = self._summary_now()
        return f"<Monitor: {in_words(found)}>" if found else "<Monitor, not started>"

    def _repr_html_(self) -> str:
        from proctor._html import of_monitor
        return of_monitor(self)

    # --- other processes

    def _forked(self) -> None:
        """In a forked child: off. The library knows that the handle is not the child's."""
        if self._finalizer:
            self._finalizer.detach()
        native = self._native
        self._reset()
        if native:
            native.delivery = None
            native.free()

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._target, self._children, self._match, self._options, self._on_sample, self._wants)


_monitors: weakref.WeakSet[Monitor] = weakref.WeakSet()


def _again(target: dict[str, Any], children: bool, match: list[str], options: dict[str, Any],
           on_sample: Optional[OnSample], wants: int) -> Monitor:
    """A pickled monitor, in a process that was spawned: one that is off."""
    return Monitor(**target, children=children, match=match, on_sample=on_sample,
                   processes=bool(wants & _library.WANT_PROCESSES), devices=bool(wants & _library.WANT_DEVICES),
                   **options)


def _number(name: str, value: Any) -> Optional[int]:
    try:
        return None if value is None else operator.index(value)
    except TypeError:
        raise _library.Error(errno.EINVAL, f"{name}: {value!r} is no number; match= finds by name") from None


def _nearest(name: str, said: str) -> str:
    """What was meant, perhaps, by an option that is none."""
    import difflib
    import inspect
    if "no option" not in said:
        return ""
    known = [word for word in inspect.signature(Monitor).parameters if word != "options"]
    found = difflib.get_close_matches(name.replace("-", "_"), [*known, *WRITTEN, *OTHERS], 1)
    return f"; did you mean {found[0]}?" if found else "; `proctor attach --help` lists them"


def _after_fork() -> None:
    for monitor in list(_monitors):
        monitor._forked()


os.register_at_fork(after_in_child=_after_fork)


def _plain(value: Any) -> Any:
    """Numbers of numpy and the like; anything else by its text."""
    item = getattr(value, "item", None)
    if item is not None:
        try:
            return item()
        except (TypeError, ValueError):
            pass
    return str(value)
