"""Measured matrix products of a device: rows of its file, and a whole device as such a file."""

from __future__ import annotations

import dataclasses
import json

from stallscope.profiler.checked_json import Fields
from stallscope.profiler.spec import DTYPE_BYTES, DeviceSpec, ProductTime

_COLUMNS = tuple(field.name for field in dataclasses.fields(ProductTime))
MOST_PRODUCTS = 10_000


def read_products(entry: Fields) -> tuple[ProductTime, ...]:
    """Return the measured products of a device's file, () where it has none."""
    rows = entry.get("products")
    if rows is None:
        return ()
    if not isinstance(rows, list) or len(rows) > MOST_PRODUCTS:
        raise entry.error("products", f"must be a list of at most {MOST_PRODUCTS:,} objects")
    return tuple(_product(entry, i, row) for i, row in enumerate(rows))


def _product(entry: Fields, index: int, row: object) -> ProductTime:
    name = f"products[{index}]"
    if not isinstance(row, dict):
        raise entry.error(name, f"must be an object with {', '.join(_COLUMNS)}")
    fields = Fields(f"{entry.where}: {name}", row)
    dtype = fields.text("dtype")
    if dtype is None or dtype not in DTYPE_BYTES:
        raise fields.error("dtype", f"is not one of {', '.join(DTYPE_BYTES)}")
    inputs, outputs, rows = (fields.size(column) for column in ("inputs", "outputs", "rows"))
    return ProductTime(dtype, inputs, outputs, rows, fields.positive("time_s"))


def device_text(device: DeviceSpec) -> str:
    """Return a device as the text of a file that describes it; what is not known is left out."""
    fields = dataclasses.asdict(device)
    products = fields.pop("products")
    known = {name: value for name, value in fields.items() if value not in (None, {})}
    text = json.dumps(known, indent=2)
    if not products:
        return text + "\n"
    rows = ",\n".join("    " + json.dumps(row) for row in products)
    return f'{text[:-2]},\n  "products": [\n{rows}\n  ]\n}}\n'
