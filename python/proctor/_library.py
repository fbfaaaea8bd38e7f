# SPDX-License-Identifier: Apache-2.0
"""libproctor, loaded at its first use, and what its functions look like."""
from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Mapping, Sequence
from ctypes import c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint, c_void_p
from math import nan
from typing import Any, Callable, Optional

from proctor._values import Device, Metric, Process, Snapshot

_SONAME = "libproctor.so.0"
_HERE = os.path.dirname(os.path.abspath(__file__))
NATIVE = os.path.join(_HERE, "native")
"""Where a wheel has the library and the command."""

NO_CHILDREN = 1
WANT_PROCESSES = 1
WANT_DEVICES = 2


class Error(OSError):
    """What went wrong, in words, and its `errno`.

        >>> import proctor
        >>> try:
        ...     proctor.Monitor(interval="soon")
        ... except proctor.Error as e:
        ...     print(e.errno == errno.EINVAL)
        True
    """


class _ErrorText(ctypes.Structure):
    _fields_ = [("code", c_int), ("message", c_char * 256)]


SAMPLE_FN = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
TEXT_FN = ctypes.CFUNCTYPE(None, c_char_p, c_void_p)
CLOSE_FN = ctypes.CFUNCTYPE(None, c_void_p)


class Sink(ctypes.Structure):
    """struct proctor_sink"""

    _fields_ = [("size", c_size_t), ("wants", c_uint), ("sample", SAMPLE_FN), ("line", TEXT_FN),
                ("summary", TEXT_FN), ("close", CLOSE_FN)]


_p, _s, _e = c_void_p, c_char_p, ctypes.POINTER(_ErrorText)
_doubles = ctypes.POINTER(c_double)
_PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "version": (_s, []),
    "metrics": (c_size_t, []),
    "metric_key": (_s, [c_size_t]),
    "metric_unit": (_s, [c_size_t]),
    "metric_kind": (_s, [c_size_t]),
    "metric_scope": (_s, [c_size_t]),
    "metric_help": (_s, [c_size_t]),
    "monitor_new": (c_int, [ctypes.POINTER(c_void_p), _e]),
    "monitor_free": (None, [_p]),
    "monitor_watch_pid": (c_int, [_p, c_int, c_uint, _e]),
    "monitor_watch_group": (c_int, [_p, c_int, _e]),
    "monitor_watch_cgroup": (c_int, [_p, _s, _e]),
    "monitor_watch_match": (c_int, [_p, _s, _e]),
    "monitor_watch_system": (c_int, [_p, _e]),
    "monitor_set": (c_int, [_p, _s, _s, _e]),
    "monitor_add_sink": (c_int, [_p, ctypes.POINTER(Sink), _p, _e]),
    "monitor_start": (c_int, [_p, _e]),
    "monitor_collect": (c_int, [_p, _e]),
    "monitor_latest": (_p, [_p]),
    "monitor_stop": (c_int, [_p, _e]),
    "monitor_phase_begin": (c_int, [_p, _s, _e]),
    "monitor_phase_end": (c_int, [_p, _s, _e]),
    "monitor_mark": (c_int, [_p, _s, _s, _e]),
    "monitor_summary_json": (_s, [_p]),
    "snapshot_values": (c_size_t, [_p, _doubles, c_size_t]),
    "snapshot_marks": (c_size_t, [_p, ctypes.POINTER(c_char_p), c_size_t]),
    "snapshot_elapsed": (c_double, [_p]),
    "snapshot_interval": (c_double, [_p]),
    "snapshot_time": (c_int64, [_p]),
    "snapshot_processes": (c_size_t, [_p]),
    "snapshot_process_pid": (c_int, [_p, c_size_t]),
    "snapshot_process_command": (_s, [_p, c_size_t]),
    "snapshot_process_values": (c_size_t, [_p, c_size_t, _doubles, c_size_t]),
    "snapshot_devices": (c_size_t, [_p]),
    "snapshot_device_kind": (_s, [_p, c_size_t]),
    "snapshot_device_name": (_s, [_p, c_size_t]),
    "snapshot_device_values": (c_size_t, [_p, c_size_t, _doubles, c_size_t]),
    "run_open": (c_int, [ctypes.POINTER(c_void_p), _s, _e]),
    "run_free": (None, [_p]),
    "run_id": (_s, [_p]),
    "run_path": (_s, [_p]),
    "run_summary_json": (_s, [_p, _e]),
    "run_samples": (c_int, [_p, SAMPLE_FN, _p, _e]),
    "run_report": (c_int, [_p, _s, _e]),
    "runs_list": (c_int, [TEXT_FN, _p, _e]),
}


class _Library:
    """Functions by their names without `proctor_`; `call` raises what they complain about."""

    def __init__(self, path: str) -> None:
        self.path = path
        loaded = ctypes.CDLL(path)
        self.functions: dict[str, Any] = {}
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(loaded, "proctor_" + name)
            function.restype = result
            function.argtypes = arguments
            self.functions[name] = function
        count = self.functions["metrics"]()
        self.keys = [_text(self.functions["metric_key"](i)) for i in range(count)]
        self.places: Mapping[str, int] = {key: i for i, key in enumerate(self.keys)}
        self.doubles = c_double * count
        self.words = c_char_p * count


def _text(value: Optional[bytes]) -> str:
    return (value or b"").decode("utf-8", "surrogateescape")


def encoded(value: str) -> bytes:
    """A text for C, which cannot have a zero in it."""
    if "\0" in value:
        raise ValueError("embedded null character")
    return os.fsencode(value)


def _find() -> str:
    named = os.environ.get("PROCTOR_LIBRARY")
    beside = os.path.join(NATIVE, _SONAME)
    return named or (beside if os.path.exists(beside) else _SONAME)


_loaded: Optional[_Library] = None


def library() -> _Library:
    global _loaded
    if _loaded is None:
        path = _find()
        try:
            _loaded = _Library(path)
        except AttributeError as e:
            raise Error(errno.ELIBBAD, f"{path} is of another version: {e}") from None
        except OSError as e:
            raise Error(errno.ELIBACC, f"cannot load libproctor: {e}; PROCTOR_LIBRARY names it, and the wheel has it") from None
    return _loaded


def function(name: str) -> Callable[..., Any]:
    """A function of the library that does not fail."""
    found: Callable[..., Any] = library().functions[name]
    return found


def failure(text: _ErrorText, code: int) -> Error:
    said = _text(text.message)
    return Error(text.code or -code, said or os.strerror(text.code or -code))


def call(name: str, *arguments: Any) -> int:
    """Calls what takes an error last; the interpreter is free for other threads meanwhile."""
    text = _ErrorText()
    code: int = library().functions[name](*arguments, ctypes.byref(text))
    if code < 0:
        raise failure(text, code)
    return code


def call_text(name: str, *arguments: Any) -> str:
    """The same for what gives a text, or NULL."""
    text = _ErrorText()
    found: Optional[bytes] = library().functions[name](*arguments, ctypes.byref(text))
    if found is None:
        raise failure(text, -errno.EIO)
    return _text(found)


def version() -> str:
    """The library's version.

        >>> import proctor
        >>> proctor.version().count(".")
        2
    """
    return _text(library().functions["version"]())


def metrics() -> list[Metric]:
    """The catalogue: all that can be measured.

        >>> import proctor
        >>> [m.unit for m in proctor.metrics() if m.key == "mem.rss"]
        ['bytes']
    """
    f = library().functions
    return [Metric(*(_text(f["metric_" + field](i)) for field in Metric._fields)) for i in range(f["metrics"]())]


def _candidates() -> list[str]:
    import sysconfig
    site = os.path.dirname(_HERE)  # `pip install --target` has bin beside the packages
    return [os.path.join(NATIVE, "proctor"), os.path.join(sysconfig.get_path("scripts"), "proctor"),
            os.path.join(site, "bin", "proctor")]


def command() -> str:
    """The path of the `proctor` command: that of the wheel, else the one in PATH.

        >>> import proctor
        >>> os.path.basename(proctor.command())
        'proctor'
    """
    import shutil
    found = os.environ.get("PROCTOR_COMMAND") or next((p for p in _candidates() if os.access(p, os.X_OK)), None)
    found = found or shutil.which("proctor")
    if not found:
        raise Error(errno.ENOENT, "there is no proctor command: neither beside the package nor in PATH")
    return found


# --- snapshots --------------------------------------------------------------------------------------------------


def _processes(pointer: int) -> list[Process]:
    lib = library()
    f, buffer, found = lib.functions, lib.doubles(*[nan] * len(lib.keys)), []
    for i in range(f["snapshot_processes"](pointer)):
        f["snapshot_process_values"](pointer, i, buffer, len(buffer))  # those of no process stay absent
        found.append(Process(f["snapshot_process_pid"](pointer, i), _text(f["snapshot_process_command"](pointer, i)),
                             lib.places, tuple(buffer)))
    return found


def _devices(pointer: int) -> list[Device]:
    lib = library()
    f, buffer, found = lib.functions, lib.doubles(), []
    for i in range(f["snapshot_devices"](pointer)):
        f["snapshot_device_values"](pointer, i, buffer, len(buffer))
        found.append(Device(_text(f["snapshot_device_kind"](pointer, i)), _text(f["snapshot_device_name"](pointer, i)),
                            lib.places, tuple(buffer)))
    return found


def _marks(pointer: int, values: Sequence[float]) -> Mapping[str, str]:
    lib = library()
    buffer = lib.words()
    lib.functions["snapshot_marks"](pointer, buffer, len(buffer))
    return {key: _text(word) for key, word, value in zip(lib.keys, buffer[:], values) if word and value == value}


def snapshot(pointer: int, wants: int = 0) -> Snapshot:
    """A copy of what C lends for the time of a call."""
    lib = library()
    f, buffer = lib.functions, lib.doubles()
    f["snapshot_values"](pointer, buffer, len(buffer))
    values = tuple(buffer)
    return Snapshot(f["snapshot_time"](pointer), f["snapshot_elapsed"](pointer), f["snapshot_interval"](pointer),
                    lib.places, values, _processes(pointer) if wants & WANT_PROCESSES else (),
                    _devices(pointer) if wants & WANT_DEVICES else (), _marks(pointer, values))
