# SPDX-License-Identifier: Apache-2.0
"""`python -m proctor ARGS` is `proctor ARGS`."""
from __future__ import annotations

import os
import sys

from proctor._library import Error, command


def main() -> None:
    """The command takes the place of the interpreter."""
    try:
        program = command()
    except Error as e:
        sys.exit(f"proctor: {e.strerror}")
    os.execv(program, ["proctor", *sys.argv[1:]])


if __name__ == "__main__":
    main()
