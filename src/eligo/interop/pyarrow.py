"""Tables as Parquet, which needs pyarrow."""

import importlib
import io
from collections.abc import Mapping, Sequence
from typing import Any

from eligo.errors import FormatError, InputError


def check_pyarrow() -> None:
    """Raise if pyarrow is not installed."""
    _pyarrow()


def table_bytes(columns: Mapping[str, Sequence[object]]) -> bytes:
    """The columns as a Parquet file."""
    arrow, parquet = _pyarrow()
    data = io.BytesIO()
    parquet.write_table(arrow.table({name: list(values) for name, values in columns.items()}), data)
    return data.getvalue()


def read_rows(path: str) -> tuple[list[str], list[dict[str, Any]]]:
    """The names of a Parquet file's columns, and its rows."""
    arrow, parquet = _pyarrow()
    try:
        table = parquet.read_table(path)
    except (OSError, arrow.ArrowException) as error:
        raise FormatError(f"not a Parquet file: {error}", path) from None
    return list(table.column_names), table.to_pylist()


def _pyarrow() -> tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise InputError("Parquet needs pyarrow (pip install pyarrow, or give a file name that ends in .csv)") from None
