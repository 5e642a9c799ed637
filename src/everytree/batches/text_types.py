"""Types of columns of text that comes in pieces: those that pyarrow would find in all rows at once."""

from __future__ import annotations

from typing import Any

UNITS = ("s", "ms", "us", "ns")


def known_types(schema: Any) -> dict[str, Any]:
    """Types by name, without those of columns in which nothing but missing values was seen."""
    import pyarrow as pa

    return {field.name: field.type for field in schema if not pa.types.is_null(field.type)}


class SeenTypes:
    """Types that hold all values so far.

    `types`: without columns in which nothing but missing values was seen.
    """

    def __init__(self) -> None:
        self.types: dict[str, Any] = {}
        self._bits: dict[str, bool] = {}  # columns of whole numbers: whether all were 0 or 1, which booleans may be

    def add(self, table: Any) -> None:
        """The rows of one piece more."""
        import pyarrow as pa

        for name, found in known_types(table.schema).items():
            if pa.types.is_integer(found):
                self._bits[name] = self._bits.get(name, True) and _are_bits(table.column(name))
            known = self.types.get(name, found)
            self.types[name] = known if known == found else _joined(known, found, self._bits.get(name, False))


def with_types(table: Any, types: dict[str, Any]) -> Any | None:
    """The table with columns of these types; None where that needs the text that they were read from."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        wanted = types.get(field.name, pa.null())
        if field.type == wanted:
            continue
        is_sure = pa.types.is_floating(wanted) or pa.types.is_timestamp(wanted)
        if not (pa.types.is_null(field.type) or is_sure):
            return None
        table = table.set_column(place, field.name, table.column(place).cast(wanted, safe=False))
    return table


def _joined(one: Any, other: Any, are_bits: bool) -> Any:
    """A type that holds the values of both; text where nothing else does."""
    import pyarrow as pa

    both = one, other
    if all(map(_is_number, both)):
        return pa.float64()
    if any(map(pa.types.is_boolean, both)) and any(map(pa.types.is_integer, both)) and are_bits:
        return pa.bool_()
    if all(map(_is_date, both)):
        zones = {getattr(kind, "tz", None) for kind in both}
        if len(zones) == 1:
            units = [kind.unit if pa.types.is_timestamp(kind) else UNITS[0] for kind in both]
            return pa.timestamp(max(units, key=UNITS.index), zones.pop())
    return pa.string()


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_date(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _are_bits(column: Any) -> bool:
    import pyarrow.compute as pc

    ends = pc.min_max(column).as_py()
    return ends["min"] is None or bool(ends["min"] >= 0 and ends["max"] <= 1)
