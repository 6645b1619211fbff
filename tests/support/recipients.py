"""Plans over the Adult table, whose persons are the rows of the file, from 1 on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import GuaranteeError
from anonspark.sharing.ledger.chain import make_key, read_key
from anonspark.sharing.ledger.ledger import Ledger, init_ledger, open_ledger
from anonspark.sharing.recipients.distribute import Distribution, distribute
from anonspark.sharing.recipients.plan import parse_plan

COLUMNS = ("age", "education-num", "hours-per-week", "capital-gain", "capital-loss", "sex")
"""Quasi-identifiers of the catalogue, in its order."""

RECIPIENTS = {
    "a": ("age", "education-num", "hours-per-week", "sex"),
    "b": ("age", "education-num", "capital-gain", "capital-loss"),
    "c": ("age", "hours-per-week", "capital-gain", "sex"),
}
"""What three recipients ask for, besides the occupation."""


def write_persons(adult: Path, path: Path, keep: Any = None) -> Path:
    """Write Adult with a number for each person, or some of its rows."""
    table = pc.read_csv(adult)
    table = table.append_column("person", pa.array(range(1, table.num_rows + 1)))
    if keep is not None:
        table = table.filter(keep(table))
    pq.write_table(table, path)
    return path


def base_of(source: Path, k: int = 1, **sections: Any) -> dict[str, Any]:
    """Return the base of a plan over Adult."""
    return {
        "input": {"path": str(source)},
        "attributes": {
            "person": {"role": "identifier"},
            **{name: {"role": "quasi_identifier"} for name in COLUMNS},
            "workclass": {"role": "insensitive"},
            "occupation": {"role": "sensitive"},
        },
        "privacy": {"k": k, "allow_k_1": k == 1},
        "model": {"name": "smondrian"},
        "execution": {"seed": 7},
        **sections,
    }


def plan_of(
    source: Path,
    folder: Path,
    ks: Mapping[str, int],
    *,
    columns: Mapping[str, Sequence[str]] = RECIPIENTS,
    where: Mapping[str, Any] | None = None,
    **sections: Any,
) -> dict[str, Any]:
    """Return a plan: whoever is in ``ks`` gets the columns, and the occupation."""
    return {
        "base": base_of(source),
        "subject": "person",
        "output": str(folder / "releases"),
        "recipients": {
            name: {
                "approved": "a test",
                "columns": [*columns[name], "occupation"],
                "privacy": {"k": k},
                "where": (where or {}).get(name, {}),
            }
            for name, k in ks.items()
        },
        **sections,
    }


def plan_about(
    source: Path,
    roles: Mapping[str, str],
    recipients: Mapping[str, Any],
    base: Mapping[str, Any] | None = None,
    **sections: Any,
) -> dict[str, Any]:
    """Return a plan about the persons of a table whose columns have these roles."""
    return {
        "base": {
            "input": {"path": str(source)},
            "attributes": {name: {"role": role} for name, role in roles.items()},
            "privacy": {"k": 5},
            "execution": {"seed": 2**40},
            **(base or {}),
        },
        "subject": "person",
        "recipients": {name: {"approved": "yes", **one} for name, one in recipients.items()},
        **sections,
    }


def with_ledger(
    plan: dict[str, Any],
    folder: Path,
    subject: Sequence[str] = ("person",),
    record: Sequence[str] = (),
) -> Ledger:
    """Give a plan a ledger, made where none is, and return it as it is now."""
    engine = LocalEngine()
    path, key_file = folder / "ledger", folder / "ledger.key"
    plan["ledger"] = {"path": str(path), "key_file": str(key_file)}
    if not key_file.exists():
        init_ledger(engine.files, str(path), make_key(str(key_file)), list(subject), record)
    return open_ledger(engine.files, str(path), read_key(str(key_file)))


def carry_out(plan: dict[str, Any], run_id: str | None = None, **options: Any) -> Distribution:
    """Carry a plan out with the local engine."""
    return distribute(LocalEngine(), parse_plan(plan), run_id=run_id, **options)


def refused(plan: dict[str, Any], folder: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    """Carry out a plan that is refused; return what the ledger says, by coalition."""
    with_ledger(plan, folder)
    try:
        carry_out(plan)
    except GuaranteeError as error:
        told = str(error)
    else:
        raise AssertionError("the plan was not refused")
    events = with_ledger(plan, folder).events.events
    if events[-1].type != "refused" or "joint check" not in told:
        raise AssertionError(f"refused for another reason: {told}")
    return {
        (*row["recipients"], *([row["attribute"]] if row["attribute"] else [])): row
        for row in events[-1].content["checks"]
    }
