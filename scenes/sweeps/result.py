"""The result of a sweep: arrays by name, a frame, or a file.

The one file that imports pyarrow, pandas and polars, each only when it is needed.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from ...engine.display import Row, count, display_as
from ..formats.atomic import replacing
from ..formats.errors import FileError

T = TypeVar("T")
Array = np.ndarray
SUFFIXES = (".parquet", ".csv", ".npz")


def _describe(sweep: Sweep) -> tuple[str, list[Row]]:
    rows = [("varied", ", ".join(sweep.varied) or "nothing")]
    return count(len(sweep), "lane"), [*rows, ("measured", ", ".join(sweep.measured))]


@display_as(_describe)
@dataclass(frozen=True)
class Sweep:
    """A result.  arrays: by name, lanes first: "lane", their numbers; each varied path; and each measure.

    varied, measured: names in `arrays`.  manifest: its origin: hashes of the scene and the values, options, seed,
    versions.  compiled: paths whose every value was compiled, since they set more than one number of the model.
    """

    arrays: Mapping[str, Array]
    varied: tuple[str, ...]
    measured: tuple[str, ...]
    manifest: Mapping[str, Any] = field(default_factory=dict)
    compiled: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.arrays["lane"])

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def columns(self) -> dict[str, Array]:
        """Columns (lanes,) by name: arrays with more axes by component, as q.0, q.1."""
        columns: dict[str, Array] = {}
        for name, x in self.arrays.items():
            inner = {".".join(map(str, (name, *at))): x[(slice(None), *at)] for at in np.ndindex(x.shape[1:])}
            columns |= inner
        return columns

    def frame(self) -> Any:
        """The columns as a frame of pandas, or of polars if pandas is missing."""
        try:
            import pandas

            return pandas.DataFrame(self.columns())
        except ModuleNotFoundError as error:
            _is_missing(error, "pandas")
        try:
            import polars  # pyright: ignore[reportMissingImports]  # users bring it

            return polars.DataFrame(self.columns())
        except ModuleNotFoundError as error:
            _is_missing(error, "polars")
            raise ImportError("frame: neither pandas nor polars is installed: pip install pandas") from None

    def write(self, path: str | PathLike[str]) -> None:
        """Write a .parquet or .csv file of the columns, or an .npz file of the arrays, with numbers in full, completely
        or not at all. Parquet and npz hold the manifest too."""
        check_suffix(path)
        with replacing(path) as out:
            _WRITERS[Path(path).suffix.lower()](self, out)


def check_suffix(path: str | PathLike[str]) -> None:
    """Check that a result can be written to the path, before the work begins."""
    suffix = Path(path).suffix.lower()
    if suffix not in _WRITERS:
        raise FileError(path, f"a sweep is written to {', '.join(SUFFIXES)}: give another name")
    if suffix == ".parquet":
        _parquet()


def value_array(values: Sequence[Any]) -> Array:
    """Numbers as arrays (lanes,) or (lanes, n); other values as text."""
    kinds = {type(x) for x in values}
    if kinds <= {int, float} or kinds == {bool}:
        return np.array(values)
    if kinds <= {list, tuple}:
        flat = {(len(x), all(type(y) in (int, float) for y in x)) for x in values}
        if len(flat) == 1 and next(iter(flat))[1]:
            return np.array(values, float)
    return np.array([x if isinstance(x, str) else json.dumps(x, default=str) for x in values])


def _write_csv(sweep: Sweep, out: BinaryIO) -> None:
    text = io.TextIOWrapper(out, "utf-8", newline="")
    writer, columns = csv.writer(text, lineterminator="\n"), sweep.columns()
    writer.writerow(columns)
    writer.writerows(zip(*(x.tolist() for x in columns.values()), strict=True))
    text.detach()


def _write_npz(sweep: Sweep, out: BinaryIO) -> None:
    np.savez(out, allow_pickle=False, manifest=np.array(json.dumps(sweep.manifest)), **sweep.arrays)


def _write_parquet(sweep: Sweep, out: BinaryIO) -> None:
    arrow, parquet = _parquet()
    table = arrow.table({name: arrow.array(x) for name, x in sweep.columns().items()})
    about = {**(table.schema.metadata or {}), b"carom": json.dumps(sweep.manifest).encode()}
    parquet.write_table(table.replace_schema_metadata(about), out)


_WRITERS = {".parquet": _write_parquet, ".csv": _write_csv, ".npz": _write_npz}


def _parquet() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        _is_missing(error, "pyarrow")
        raise ImportError(
            "Parquet needs pyarrow, which is not installed: pip install 'carom[sweep]', or write .csv or .npz"
        ) from None
    return pyarrow, pyarrow.parquet


def read_design(path: str | PathLike[str]) -> dict[str, list[Any]]:
    """Read a design of experiments: path of the scene -> a column of values, from a .csv or .parquet file. Cells of a
    CSV file are written as values of `--set`."""
    from ..formats.settings import parse_value

    suffix = Path(path).suffix.lower()
    if suffix == ".parquet":
        _, parquet = _parquet()
        return _read(path, parquet.read_table).to_pydict()
    if suffix != ".csv":
        raise FileError(path, "a design is read from .csv or .parquet: give such a file")
    rows = list(csv.reader(io.StringIO(_read(path, lambda x: Path(x).read_text("utf-8-sig")))))
    rows = [row for row in rows if row]
    if len(rows) < 2:
        raise FileError(path, "a design has a line of paths, and a line of values for each lane")
    head, *lines = rows
    for number, row in enumerate(lines, 2):
        if len(row) != len(head):
            raise FileError(path, f"there are {len(row)} values for {len(head)} paths", number)
    names = [name.strip() for name in head]
    if len({*names}) < len(names):
        raise FileError(path, "two columns have the same path: leave one out", 1)
    return {name: [parse_value(name, row[k].strip()) for row in lines] for k, name in enumerate(names)}


def _read(path: str | PathLike[str], read: Callable[[str | PathLike[str]], T]) -> T:
    try:
        return read(path)
    except (OSError, ValueError) as error:
        raise FileError(path, f"it cannot be read ({getattr(error, 'strerror', None) or error})") from None


def _is_missing(error: ModuleNotFoundError, name: str) -> None:
    """Return whether the package itself is not installed, rather than one that it needs."""
    if (error.name or "").partition(".")[0] != name:
        raise error
