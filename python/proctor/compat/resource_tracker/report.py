# SPDX-License-Identifier: Apache-2.0
"""`Report`: a page as a text. `round_memory`."""
from __future__ import annotations

import math
import os
from typing import Union

__all__ = ["Report", "round_memory"]


class Report(str):
    """An HTML page that needs nothing else.

        >>> import tempfile
        >>> Report("<p>fine</p>").save(os.path.join(tempfile.mkdtemp(), "report.html"))
        '<p>fine</p>'
    """

    def browse(self) -> Report:
        """Shows it in a browser."""
        import tempfile
        import webbrowser

        with tempfile.NamedTemporaryFile("w", suffix=".html", delete=False, encoding="utf-8") as file:
            file.write(self)
        webbrowser.open("file://" + file.name)
        return self

    def save(self, filepath: Union[str, "os.PathLike[str]"]) -> Report:
        """Writes it into a file."""
        with open(filepath, "w", encoding="utf-8") as file:
            file.write(self)
        return self


def round_memory(mib: Union[int, float]) -> int:
    """The next size that is asked for: 128 MiB to 2 GiB doubled, then whole GiB.

        >>> round_memory(68), round_memory(896), round_memory(3863)
        (128, 1024, 4096)
    """
    for size in (128, 256, 512, 1024, 2048):
        if mib <= size:
            return size
    return 1024 * math.ceil(mib / 1024)
