"""Releases whose groups are refined: proven, alike however they are made, and better."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from holders import ATTRIBUTES, anonymize, write_coding
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import anonspark
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError, GuaranteeError
from anonspark.kernels.refinement import refine_in_cells
from anonspark.sharing.holders.union import unite
from anonspark.verification.audit import audit_release

N = 12_000
"""Records of several cells of the refinement."""


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    draw = np.random.default_rng(11)
    age = draw.integers(0, 95, N).astype(float)
    age[draw.random(N) < 0.02] = np.nan
    return pd.DataFrame(
        {
            "person": draw.integers(0, 9_000, N),
            "age": age,
            "income": draw.normal(30_000, 9_000, N).round(-1),
            "region": draw.choice(["north", "east", "south", "west"], N),
            "height": draw.normal(170, 10, N).round(0),
            "disease": draw.choice([f"d{i}" for i in range(12)], N),
        }
    )


def configuration(model: dict[str, Any], **privacy: Any) -> dict[str, Any]:
    return {
        "attributes": {
            "age": "quasi_identifier",
            "income": {"role": "quasi_identifier", "weight": 2},
            "region": {"role": "quasi_identifier", "order": ["north", "east", "south", "west"]},
            "height": {"role": "quasi_identifier", "hierarchy": {"intervals": [5, 20]}},
            "disease": "sensitive",
        },
        "privacy": {"k": 5, **privacy},
        "model": model,
        "execution": {"seed": 4_611_686_018_427_387_904},
    }


def figures(
    people: pd.DataFrame, model: dict[str, Any], task_rows: int = 250_000, **privacy: Any
) -> tuple[float, str]:
    """Return what a proven release loses, and its fingerprint."""
    wanted = configuration(model, **privacy)
    wanted["execution"]["task_rows"] = task_rows
    if "unit" in privacy:
        wanted["attributes"]["person"] = "identifier"
    with anonspark.anonymize(people, wanted, progress=False) as release:
        release.verify(original=people).require()
        gcp = float(release.summary["gcp"].iloc[0])
        return gcp, release.manifest["fingerprints"]["output"]


CRITERIA: dict[str, dict[str, Any]] = {
    "k": {},
    "l": {"l_diversity": 4},
    "entropy": {"l_diversity": {"attribute": "disease", "l": 3, "kind": "entropy"}},
    "t": {"t_closeness": {"attribute": "disease", "t": 0.4}},
    "people": {"unit": "person", "l_diversity": 3},
}


@pytest.mark.parametrize("criteria", CRITERIA.values(), ids=CRITERIA)
def test_refined_releases_hold_lose_less_and_do_not_depend_on_tasks(
    people: pd.DataFrame, criteria: dict[str, Any]
) -> None:
    whole, _ = figures(people, {"name": "smondrian"}, **criteria)
    refined, fingerprint = figures(people, {"name": "smondrian", "refine": 2}, **criteria)
    assert refined < 0.99 * whole
    for task_rows in (1, 5_000):
        other = figures(people, {"name": "smondrian", "refine": 2}, task_rows, **criteria)
        assert other == (refined, fingerprint)


def test_refined_rounds_hold_and_published_settings_have_no_passes(people: pd.DataFrame) -> None:
    rounds, _ = figures(people, {"name": "su-mondrian", "refine": 0})
    refined, _ = figures(people, {"name": "su-mondrian", "refine": 2})
    assert refined < 0.9 * rounds
    with pytest.raises(ConfigurationError, match=r"model\.refine"):
        figures(people, {"name": "su-mondrian", "published": "canbay-2019", "refine": 2})


FEW_CRITERIA: tuple[dict[str, Any], ...] = (
    {},
    {"l_diversity": 2},
    {"l_diversity": {"attribute": "disease", "l": 2, "kind": "recursive", "c": 2.5}},
    {"alpha_k_anonymity": {"attribute": "disease", "alpha": 0.6}},
    {"t_closeness": {"attribute": "disease", "t": 0.3}},
    {"beta_likeness": {"attribute": "disease", "beta": 2.5}},
    {"unit": "person"},
    {"unit": "person", "l_diversity": 2},
)


@pytest.mark.parametrize("privacy", FEW_CRITERIA, ids=str)
@settings(max_examples=3, phases=[Phase.explicit, Phase.generate], deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rows=st.sampled_from([40, 150, 400]),
    k=st.integers(2, 6),
    outliers=st.sampled_from([0.0, 0.02, 0.2]),
    weight=st.sampled_from([0.1, 1, 7]),
    limit=st.sampled_from([0.0, 0.0, 0.1]),
)
def test_a_refined_release_never_loses_more(
    privacy: dict[str, Any],
    seed: int,
    rows: int,
    k: int,
    outliers: float,
    weight: float,
    limit: float,
) -> None:
    draw = np.random.default_rng(seed)
    age = draw.integers(0, 30, rows).astype(float)
    age[draw.random(rows) < outliers] *= 40
    age[draw.random(rows) < 0.05] = np.nan
    table = pd.DataFrame(
        {
            "person": draw.integers(0, rows, rows),
            "age": age,
            "region": draw.choice(["north", "east", "south", "west"], rows),
            "height": np.round(draw.normal(170, 10, rows)),
            "disease": draw.choice(["flu", "gout", "none"], rows),
        }
    )
    wanted = configuration({"name": "su-mondrian", "suppression_limit": limit}, **privacy)
    wanted["privacy"]["k"] = k
    wanted["attributes"]["age"] = {"role": "quasi_identifier", "weight": weight}
    del wanted["attributes"]["income"]
    if "unit" in privacy:
        wanted["attributes"]["person"] = "identifier"

    lost = []
    for refine in (0, 2):
        wanted["model"]["refine"] = refine
        try:
            with anonspark.anonymize(table, wanted, progress=False) as release:
                release.verify(original=table).require()
                # Which classes are left out then is for the limit to say.
                lost.append(float(release.rounds["gcp_total_if_last"].iloc[-1]))
        except GuaranteeError:
            lost.append(np.inf)
    assert lost[1] <= lost[0] * (1 + 1e-12)


def test_rounds_that_lose_less_than_refined_groups_are_published_and_proved() -> None:
    draw = np.random.default_rng(28)
    age = draw.integers(0, 30, 150).astype(float)
    age[draw.random(150) < 0.02] *= 40
    table = pd.DataFrame(
        {
            "age": age,
            "region": draw.choice(list("nesw"), 150),
            "disease": draw.choice(["flu", "gout", "none"], 150),
        }
    )
    roles = {"age": "quasi_identifier", "region": "quasi_identifier", "disease": "sensitive"}
    wanted = {"attributes": roles, "privacy": {"k": 2}, "evaluate": {"compare_baseline": True}}
    lost, whole = [], []
    for refine in (0, 1):
        wanted["model"] = {"name": "su-mondrian", "refine": refine}
        with anonspark.anonymize(table, wanted, progress=False) as release:
            release.verify(original=table).require()
            assert len(release.rounds) == 3
            whole.append(float(release.rounds["gcp_total_if_last"].iloc[0]))
            lost.append(float(release.summary["gcp_total"].iloc[0]))
    assert lost[0] == lost[1]
    assert whole[1] <= whole[0]


def test_unions_and_mappings_of_refined_releases_are_proved(tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    privacy = {"k": 3, "l_diversity": {"attribute": "illness", "l": 2}}
    coding = write_coding(tmp_path, privacy)
    model = {"name": "su-mondrian", "refine": 2}
    parts = []
    for name in ("north", "south"):
        table = pa.table(
            {
                "age": draw.integers(0, 100, 300),
                "sex": draw.choice(["female", "male"], 300),
                "illness": draw.choice(["flu", "gout", "none"], 300),
            }
        )
        parts.append(str(anonymize(tmp_path, name, table, coding, model=model)))
    united = str(tmp_path / "union")
    unite(LocalEngine(), parts, united)
    sections = {"attributes": dict(ATTRIBUTES), "privacy": privacy}
    mapped = str(
        anonymize(
            tmp_path,
            "mapped",
            table,
            None,
            model={"name": "mapping", "release": parts[0]},
            **sections,
        )
    )
    for path in (*parts, united, mapped):
        audit_release(LocalEngine(), path).require()


def test_groups_that_violate_a_criterion_are_not_published(
    people: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run counts once more, whatever the kernels have counted."""

    def forgetful(*arguments: Any) -> Any:
        *others, requirements, passes = arguments
        return refine_in_cells(*others, requirements._replace(kinds=requirements.kinds[:0]), passes)

    monkeypatch.setattr("anonspark.models.mondrian.refine_in_cells", forgetful)
    with pytest.raises(GuaranteeError, match="l-diversity"):
        figures(people.head(2_000), {"name": "su-mondrian", "refine": 1}, l_diversity=4)
