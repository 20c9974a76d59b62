"""Results as rows: printed in columns, written as CSV, or taken as plain data."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Table:
    """A table.  rows: each has a value for each of the columns, whose names have the units; None prints as nothing."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Rows as column -> value."""
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[Any]:
        return [row[self.columns.index(name)] for row in self.rows]

    def __str__(self) -> str:
        cells = [[_text(x) for x in row] for row in (self.columns, *self.rows)]
        widths = [max(len(row[k]) for row in cells) for k in range(len(self.columns))]
        words = [any(isinstance(row[k], str) for row in self.rows) for k in range(len(self.columns))]
        align = [str.ljust if word else str.rjust for word in words]
        lines = ("  ".join(f(x, w) for f, x, w in zip(align, row, widths, strict=True)) for row in cells)
        return "\n".join(line.rstrip() for line in lines)

    def write_csv(self, path: str | PathLike[str]) -> None:
        """Write a CSV file with numbers in full."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        Path(path).write_text(text.getvalue(), "utf-8")


def _text(x: object) -> str:
    if x is None:
        return ""
    if isinstance(x, float):
        return "nan" if math.isnan(x) else f"{x:.6g}"
    return str(x)
