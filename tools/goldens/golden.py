# SPDX-License-Identifier: Apache-2.0
"""What comes out: the golden files, and beside them what was corrected in them and where they come from."""
import csv
import io
import json

from . import rows as known


class Golden:
    """The files of one dialect. variant: of which form of the rows those are that come next (rows.VARIANTS)."""

    def __init__(self, dialect, source):
        self.dialect, self.source, self.variant = dialect, source, None
        self.files, self.corrections = {}, []

    def _name(self, name):
        table, rest = name.split(".", 1)
        return ".".join(filter(None, [self.dialect, table, self.variant, rest]))

    def add(self, name, data, environment=None):
        """name: the table, and behind a point what tells it apart from others of the same table."""
        self.files[self._name(name)] = {
            "dialect": self.dialect, "table": name.split(".")[0], "rows": self.variant,
            "environment": environment or {}, "source": self.source,
            "data": data.encode() if isinstance(data, str) else data}

    def correct(self, name, row, column, before, after, why):
        """before and after: the cell in the original's own spelling; None where there is no such cell."""
        if before != after:
            self.corrections.append({"file": self._name(name), "row": row, "column": column, "original": before,
                                     "golden": after, "why": why})


class Table:
    """A CSV of an original, to be corrected in single cells. The text is cut and put together again as it was: only
    what is corrected changes."""

    def __init__(self, golden, name, data, terminator, quoting):
        self.golden, self.name, self.terminator = golden, name, terminator
        self.lines = [self._cells(line) for line in data.decode().split(terminator)[:-1]]
        self.header = [cell.strip('"') for cell in self.lines[0]]
        self.quoting = quoting
        if self.bytes() != data:
            raise AssertionError(f"{name}: what was cut does not fit together again")

    @staticmethod
    def _cells(line):
        cells, inside = [""], False
        for char in line:
            inside ^= char == '"'
            if char == "," and not inside:
                cells.append("")
            else:
                cells[-1] += char
        return cells

    def spell(self, value):
        """A value as the writer of this table would write it."""
        out = io.StringIO()
        csv.writer(out, quoting=self.quoting, lineterminator="").writerow([value, 0])
        return out.getvalue()[:-len(",0")]

    def set(self, row, column, value, why):
        """row counts from 0, without the header."""
        cells, at = self.lines[1 + row], self.header.index(column)
        after = self.spell(value)
        self.golden.correct(self.name, row, column, cells[at], after, why)
        cells[at] = after

    def bytes(self):
        return "".join(",".join(cells) + self.terminator for cells in self.lines).encode()

    def done(self):
        self.golden.add(self.name, self.bytes())
        return self.bytes()


def different(goldens):
    """The names of files that are not there as they were made now."""
    there = {name: (known.FOLDER / name).read_bytes() if (known.FOLDER / name).exists() else None
             for golden in goldens for name in golden.files}
    return [name for golden in goldens for name, file in golden.files.items() if there[name] != file["data"]]


def write(goldens):
    sources = {}
    for golden in goldens:
        for name, file in golden.files.items():
            (known.FOLDER / name).write_bytes(file.pop("data"))
            sources[name] = file
    corrections = [c for golden in goldens for c in golden.corrections]
    for name, content in (("corrections", corrections), ("sources", sources)):
        (known.FOLDER / f"{name}.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
