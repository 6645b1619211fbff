"""Publish the patients: at least 5 records share every combination of age, sex and city.

A run that cannot keep its promises raises an error, so dbt keeps the table of the night before. The
secret seed comes from the variable ANONSPARK_SEED.
"""

import anonspark

CONFIGURATION = {
    "attributes": {
        "age": "quasi_identifier",
        "sex": "quasi_identifier",
        "city": "quasi_identifier",
        "illness": "sensitive",
    },
    "privacy": {"k": 5, "l_diversity": {"attribute": "illness", "l": 2}},
    # Nothing is published if the raw table came with a part of its records only.
    "gates": {"rows_published": {"min": 1000}},
}


def model(dbt, session):  # noqa: ARG001 - as dbt calls it
    """Return the published records."""
    dbt.config(materialized="table")
    patients = dbt.ref("patients").to_arrow_table()
    with anonspark.anonymize(patients, CONFIGURATION, progress=False) as release:
        # dbt wants one return, which is not inside of a block.
        published, proof = release.to_arrow(), release.verify(original=patients)
    if not proof.holds:
        raise RuntimeError("the release does not keep its promises")
    return published
