# SPDX-License-Identifier: Apache-2.0
"""Folders that live as long as an object does."""
from __future__ import annotations

import os
import shutil
import tempfile
import weakref


def folder_of(owner: object, prefix: str) -> str:
    """A new one. A forked child that ends does not remove what is its parent's."""
    path = tempfile.mkdtemp(prefix=prefix)
    weakref.finalize(owner, _remove, path, os.getpid())
    return path


def _remove(path: str, pid: int) -> None:
    if os.getpid() == pid:
        shutil.rmtree(path, ignore_errors=True)
