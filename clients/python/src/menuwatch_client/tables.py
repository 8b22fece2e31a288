"""Items of the API as tables: Arrow, pandas and Polars. Needs the extras `arrow`, `pandas` or `polars`."""

from __future__ import annotations

import datetime as dt
import types
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_SCALE = 12
"""Digits behind the point of exact amounts; the API has at most six."""


def to_arrow(rows: Sequence[Any], item: Any = None, *, exact: bool = False) -> pa.Table:
    """Items of a list or report as an Arrow table: a column for each member, named as in the API, of the type that the API describes,
    even if all values are missing. Amounts are float64, with `exact` decimals. Objects become structs; values without a fixed shape
    become JSON text. `item`: the type of the items, needed only for an empty list."""
    pa = _module("pyarrow", "arrow")
    kinds = _kinds(item) or list(dict.fromkeys(type(row) for row in rows))
    fields: dict[str, Any] = {}
    for kind in kinds:
        for name, (_, column) in _columns(pa, kind, exact).items():
            fields.setdefault(name, column)
    values = [_row(row, fields, exact) for row in rows]
    if not kinds or any(not issubclass(kind, Struct) for kind in kinds):
        return pa.Table.from_pylist([row if isinstance(row, dict) else msgspec.to_builtins(row) for row in rows])
    return pa.Table.from_pylist(values, schema=pa.schema(list(fields.items())))


def to_pandas(rows: Sequence[Any], item: Any = None, *, exact: bool = False) -> pd.DataFrame:
    """Items of a list or report as a DataFrame of pandas; otherwise as `to_arrow`."""
    _module("pandas", "pandas")
    frame: pd.DataFrame = to_arrow(rows, item, exact=exact).to_pandas()
    return frame


def to_polars(rows: Sequence[Any], item: Any = None, *, exact: bool = False) -> pl.DataFrame:
    """Items of a list or report as a DataFrame of Polars; otherwise as `to_arrow`."""
    polars = _module("polars", "polars")
    frame: pl.DataFrame = polars.from_arrow(to_arrow(rows, item, exact=exact))
    return frame


def _module(name: str, extra: str) -> Any:
    try:
        return __import__(name)
    except ImportError:
        raise ImportError(f"{name} is not installed: pip install 'menuwatch-client[{extra}]'") from None


def _kinds(item: Any) -> list[type]:
    """The types of items: several for a list with several shapes."""
    if item is None:
        return []
    return list(get_args(item)) if get_origin(item) in (Union, types.UnionType) else [item]


def _columns(pa: Any, kind: type, exact: bool) -> dict[str, tuple[str, Any]]:
    """Member and Arrow type of each column of a Struct, by name."""
    if not isinstance(kind, type) or not issubclass(kind, Struct):
        return {}
    config = kind.__struct_config__
    columns = {config.tag_field: ("", pa.string())} if config.tag_field else {}
    return columns | {
        field.encode_name: (field.name, _arrow(pa, field.type, exact)) for field in msgspec.structs.fields(kind)
    }


def _arrow(pa: Any, kind: Any, exact: bool) -> Any:
    simple = {
        bool: pa.bool_(),
        int: pa.int64(),
        float: pa.float64(),
        str: pa.string(),
        Decimal: pa.decimal128(38, _SCALE) if exact else pa.float64(),
        dt.datetime: pa.timestamp("us", tz="UTC"),
        dt.date: pa.date32(),
    }
    if kind in simple:
        return simple[kind]
    if get_origin(kind) in (Union, types.UnionType):
        options = [one for one in get_args(kind) if one not in (type(None), msgspec.UnsetType)]
        return _arrow(pa, options[0], exact) if len(options) == 1 else pa.string()
    if get_origin(kind) is list:
        return pa.list_(_arrow(pa, get_args(kind)[0], exact))
    if isinstance(kind, type) and issubclass(kind, Struct):
        members = [(name, column) for name, (_, column) in _columns(pa, kind, exact).items()]
        return pa.struct(members) if members else pa.string()
    return pa.string()


def _row(row: Any, fields: dict[str, Any], exact: bool) -> dict[str, Any]:
    if not isinstance(row, Struct):
        return {}
    config = row.__struct_config__
    values = {field.encode_name: _value(getattr(row, field.name), fields[field.encode_name], exact)
              for field in msgspec.structs.fields(row)}  # fmt: skip
    return values | ({config.tag_field: config.tag} if config.tag_field else {})


def _value(value: Any, column: Any, exact: bool) -> Any:
    if value is None or value is msgspec.UNSET:
        return None
    if isinstance(value, Decimal):
        return value if exact else float(value)
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC)
    kind = str(column)
    if kind == "string" and not isinstance(value, str):
        return msgspec.json.encode(value).decode()
    if isinstance(value, list):
        return [_value(one, column.value_type, exact) for one in value]
    if isinstance(value, Struct):
        members = {member.name: member.type for member in column}
        return _row(value, members, exact)
    return value
