"""People whose columns are structs, and structs in structs, some of which are missing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

ROLES: dict[str, Any] = {
    "person.name": "identifier",
    "person.id": "identifier",
    "person.age": "quasi_identifier",
    "address.city": "quasi_identifier",
    "address.geo.height": {"role": "quasi_identifier", "type": "number"},
    "visit.disease": "sensitive",
    "visit.day": "insensitive",
}
SECTIONS: dict[str, Any] = {
    "attributes": ROLES,
    "missing": "category",
    "privacy": {"k": 4, "unit": "person.id", "l_diversity": {"attribute": "visit.disease", "l": 2}},
    "execution": {"seed": 2**61 + 5},
}
_TEXT, _WHOLE, _TEXTS = pa.string(), pa.int64(), pa.list_(pa.string())
_PERSON = pa.struct([("name", _TEXT), ("id", _WHOLE), ("age", _WHOLE), ("size", pa.int32())])
_GEO = pa.struct([("height", _TEXT), ("depth", pa.float64()), ("secret", _WHOLE)])
SCHEMA = pa.schema(
    [
        ("person", _PERSON),
        ("address", pa.struct([("city", _TEXT), ("geo", _GEO), ("street", _TEXT)])),
        ("visit", pa.struct([("disease", _TEXT), ("day", _TEXT), ("tags", _TEXTS)])),
        ("tags", _TEXTS),
        ("counts", pa.map_(_TEXT, _WHOLE)),
    ]
)


def people(rows: int = 240) -> pa.Table:
    """Return the people, two records of each."""
    records = []
    for n in range(rows):
        geo = {"height": str(n * 11 % 90), "depth": n * 11 % 90 / 2, "secret": n}
        address = {
            "city": ["Adana", "Bursa", "Konya"][n % 3],
            "geo": None if n % 29 == 0 else geo,
            "street": f"Street {n}",
        }
        tags = ["a", "b"][: n % 3]
        disease = ["flu", "cold", "gout"][n * n % 3]
        age = 20 + n * 7 % 40
        records.append(
            {
                "person": {"name": f"Zebediah {n}", "id": n // 2, "age": age, "size": age},
                "address": None if n % 31 == 0 else address,
                "visit": {"disease": disease, "day": f"2026-01-{n % 28 + 1}", "tags": tags},
                "tags": tags,
                "counts": [("a", n)],
            }
        )
    return pa.Table.from_pylist(records, SCHEMA)
