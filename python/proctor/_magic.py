# SPDX-License-Identifier: Apache-2.0
"""`%%proctor [-i INTERVAL] [-o FILE] [--report FILE] [--quiet]`: records a cell of a notebook."""
from __future__ import annotations

import argparse
import ast
import os
import shlex
import tempfile
from importlib import import_module
from typing import Any

from proctor._library import Error
from proctor._monitor import Monitor

class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        """A notebook is not to be ended by a wrong option."""
        raise ValueError(f"{message}\n{self.format_usage()}")

def parser() -> Parser:
    p = Parser(prog="%%proctor", add_help=False, description="Record what a cell uses.")
    p.add_argument("-i", "--interval", default="100ms", help="sampling interval: 100ms, 0.5, 2s")
    p.add_argument("-o", "--output", help="keep the run file")
    p.add_argument("--force", action="store_true", help="let --output overwrite")
    p.add_argument("--report", help="write a report: .html, .md, .svg...")
    p.add_argument("-q", "--quiet", action="store_true", help="show nothing")
    return p

def register(shell: Any) -> None:
    shell.register_magic_function(_Magic(shell), magic_kind="cell", magic_name="proctor")

class _Magic:
    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def __call__(self, line: str, cell: str) -> None:
        """Runs the cell in the user's namespace. Afterwards `proctor_summary` is there, and the account
        is shown below the cell, also where the cell has failed."""
        options = parser().parse_args(shlex.split(line))
        with tempfile.TemporaryDirectory(prefix="proctor-") as folder:
            output = options.output or os.path.join(folder, "cell.proctor")
            monitor = Monitor(interval=options.interval, output=output, force=options.force, name="cell")
            try:
                monitor.start()
            except Error as e:
                raise Error(e.errno, str(e.strerror).replace("force=True", "--force")) from None
            try:
                self._execute(cell)
            finally:
                monitor.stop()
                self._shell.user_ns["proctor_summary"] = monitor.summary
                if options.report:
                    monitor.report(options.report)
                if not options.quiet:
                    import_module("IPython.display").display(monitor)

    def _execute(self, cell: str) -> None:
        """As IPython's own magics do it: what the cell raises is the notebook's to show, once, and the
        value of its last expression is shown."""
        shell = self._shell
        code = shell.transform_cell(cell)
        name = shell.compile.cache(code)
        tree = shell.transform_ast(shell.compile.ast_parse(code, filename=name))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(shell.compile(tree, name, "exec"), shell.user_ns)
        if last is not None:
            value = eval(shell.compile(ast.Expression(last.value), name, "eval"), shell.user_ns)
            if not code.rstrip().endswith(";"):
                shell.displayhook(value)
