"""What was measured of a device, as parts of its file, and a whole device as such a file."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from stallscope.profiler.checked_json import Fields
from stallscope.profiler.spec import (
    CALIBRATION_FORM,
    DTYPE_BYTES,
    Calibration,
    DeviceSpec,
    ProductTime,
)

_CALIBRATION = tuple(field.name for field in dataclasses.fields(Calibration))
_FACTORS = ("products", "attention", "rows", "launch", "step_s", "request_s")
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
    weight_bytes = fields.size("weight_bytes") if fields.get("weight_bytes") else 0
    return ProductTime(dtype, inputs, outputs, rows, fields.positive("time_s"), weight_bytes)


def read_calibration(entry: Fields) -> Calibration | None:
    """Return what a device's file says that measured steps taught, None where it says nothing."""
    fields = entry.inner("calibration")
    if fields is None:
        return None
    for name in fields:
        if name not in _CALIBRATION:
            raise fields.error(name, f"is no part of one; parts: {', '.join(_CALIBRATION)}")
    form = fields.size_or("form", 1)
    if form != CALIBRATION_FORM:
        raise fields.error(
            "form",
            f"is {form}, of another version of stallscope (this one's is {CALIBRATION_FORM}); "
            "calibrate again, or take it out of the file",
        )
    factors: dict[str, Any] = {n: _factor(fields, n) for n in _FACTORS if fields.has(n)}
    return Calibration(
        at=fields.text("at") or "",
        engine=fields.text("engine") or "",
        captures=fields.size("captures"),
        steps=fields.size("steps"),
        error=_factor(fields, "error"),
        sizes=fields.size("sizes") if fields.has("sizes") else None,
        runs=_marks(fields),
        recorded=fields.size("recorded") if fields.has("recorded") else None,
        **factors,
    )


def _marks(fields: Fields) -> tuple[str, ...]:
    marks = fields.get("runs") or []
    if not isinstance(marks, list) or not all(isinstance(mark, str) for mark in marks):
        raise fields.error("runs", "must be a list of texts")
    return tuple(marks)


def _factor(fields: Fields, name: str) -> float:
    """Return a finite number that is not negative: a factor or seconds of nothing are possible."""
    return 0.0 if fields.get(name) == 0 else fields.positive(name)


def _known(fields: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value not in (None, {})}


def device_text(device: DeviceSpec) -> str:
    """Return a device as the text of a file that describes it; what is not known is left out."""
    fields = dataclasses.asdict(device)
    products = fields.pop("products")
    if device.calibration is not None:
        fields["calibration"] = _known(fields["calibration"])
    known = _known(fields)
    text = json.dumps(known, indent=2)
    if not products:
        return text + "\n"
    rows = ",\n".join("    " + json.dumps(row) for row in products)
    return f'{text[:-2]},\n  "products": [\n{rows}\n  ]\n}}\n'
