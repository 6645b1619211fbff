"""A run that uses most of what there is, and its fingerprints wherever it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anonspark.demo.people import EDUCATION_ORDER

ROWS = 600
"""People of :func:`anonspark.demo.people.generate_people`."""

SECTIONS: Mapping[str, Any] = {
    "attributes": {
        "birth_date": "quasi_identifier",
        "postal_code": {"role": "quasi_identifier", "hierarchy": {"prefix": [1, 3]}},
        "education": {"role": "quasi_identifier", "order": list(EDUCATION_ORDER)},
        "body_mass_index": "quasi_identifier",
        "marital_status": "quasi_identifier",
        "diagnosis": "sensitive",
        "last_visit": "insensitive",
        "income": "insensitive",
    },
    "missing": "category",
    "privacy": {"k": 5, "l_diversity": {"attribute": "diagnosis", "l": 3}},
    "model": {"name": "su-mondrian", "rho": 2, "separation": "always"},
    # Fewer than there are: the tree begins on the cluster.
    "execution": {"task_rows": 400},
}

FINGERPRINTS = {
    "input": "59fe159b0cb1e7f331bc062b754fbc0dad771c9807d3c0e62198e9361b53e138",
    "output": "5a4841d7e5349d0debece7696a9c47562c78060cd894fe8105dbcd6381fe946e",
}
