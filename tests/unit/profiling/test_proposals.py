"""What is proposed of columns, one rule after another."""

from __future__ import annotations

from typing import Any

from cases import cases

from anonspark.core.association import Dependency
from anonspark.core.recognition.names import meaning_of
from anonspark.profiling.roles import Described, propose_roles, unit_of


def column(name: str, **facts: Any) -> Described:
    usual: dict[str, Any] = {
        "kind": "text", "form": None, "rows": 1000, "missing": 0, "distinct": 10, "unique": 0,
        "few": 0, "largest": 300, "infinite": 0, "separation": 0.8,
    }  # fmt: skip
    return Described(name=name, meaning=meaning_of(name), **usual | facts)


def role(name: str, **facts: Any) -> str | None:
    others = [column("sex"), column("age", kind="whole number")]
    return propose_roles([column(name, **facts), *others])[name].role


@cases(__file__, "name", "facts", "expected")
def test_roles(name: str, facts: dict[str, Any], expected: str | None) -> None:
    assert role(name, **facts) == expected


def test_not_too_many() -> None:
    names = ["age", "sex", "zip", "race", "city", "country", "education", "job", "language",
             "marital"]  # fmt: skip
    found = propose_roles([column(name) for name in names])
    # What is known of people most often comes first.
    assert [name for name, one in found.items() if one.role is None] == ["marital", "language"][
        ::-1
    ]
    diseases = [column(f"diag_{number}") for number in range(6)]
    roles = [one.role for one in propose_roles(diseases).values()]
    assert roles == ["sensitive"] * 4 + [None] * 2


def test_what_others_give_away() -> None:
    columns = [column("city"), column("zip"), column("age"), column("birth_date", kind="date")]
    found = propose_roles(columns, [Dependency("zip", "city", 1.0, 900)])
    assert [one.role for one in found.values()] == [
        None, "quasi_identifier", None, "quasi_identifier",
    ]  # fmt: skip
    assert found["city"].reason == "zip gives it away"
    # The other way round it is kept, and so is what is told of most records only.
    kept = propose_roles(columns[:2], [Dependency("zip", "city", 0.97, 900)])
    assert kept["city"].role == "quasi_identifier"


def test_what_tells_most_where_names_tell_nothing() -> None:
    columns = [column(f"x{number}", separation=number / 20) for number in range(12)]
    found = propose_roles(columns)
    chosen = [name for name, one in found.items() if one.role == "quasi_identifier"]
    assert chosen == [f"x{number}" for number in range(4, 12)]
    assert found["x11"].reason == "meaning unknown. Differs in 55% of all pairs"
    # What names say goes first, and what one of them gives away is left out.
    named = [column("sex", separation=0.5), column("age"), *columns]
    found = propose_roles(named, [Dependency("age", "x11", 1.0, 1000)])
    chosen = [name for name, one in found.items() if one.role == "quasi_identifier"]
    assert chosen == ["sex", "age", *(f"x{number}" for number in range(5, 11))]
    assert found["x11"].reason == "meaning unknown, and age gives it away"


def test_units() -> None:
    repeated = column("patient_id", kind="whole number", distinct=500, unique=100)
    single = column("visit_id", kind="whole number", distinct=1000, unique=1000)
    columns = [single, repeated]
    assert unit_of(columns, propose_roles(columns)) == "patient_id"
    assert unit_of([single], propose_roles([single])) is None
    lacking = column("patient_id", kind="whole number", distinct=500, unique=100, missing=1)
    assert unit_of([lacking], propose_roles([lacking])) is None


def test_no_key_where_names_tell_nothing() -> None:
    # Its values are shared, but by too few; of numbers ranges are published.
    columns = [
        column("x", distinct=400, few=960, separation=0.999),
        column("y", kind="whole number", distinct=400, few=960, separation=0.998),
        column("z", separation=0.6),
    ]
    found = propose_roles(columns)
    assert [one.role for one in found.values()] == [None, "quasi_identifier", "quasi_identifier"]
    assert "shared by k records" in found["x"].reason


def test_keys_of_people_are_identifiers_and_units() -> None:
    visits = {"kind": "whole number", "largest": 5}
    columns = [
        column("nr", distinct=400, few=990, separation=0.999, **visits),
        column("hhid", distinct=300, few=990, separation=0.998, **visits),
        *(column(f"x{number}", separation=0.6) for number in (2, 3, 4)),
    ]
    found = propose_roles(columns)
    assert [one.role for one in found.values()] == [None, "identifier", *["quasi_identifier"] * 3]
    assert found["nr"].reason == "400 values in 1,000 rows, as a number of people has"
    assert found["hhid"].reason == "by its name it numbers households, and it repeats"
    # k households are of k people at least.
    assert unit_of(columns, found) == "hhid"
    assert unit_of(columns[:1], propose_roles(columns[:1])) is None
    person = [*columns, column("pid", distinct=400, **visits)]
    assert unit_of(person, propose_roles(person)) == "hhid"


@cases(__file__, "names", "weighs", "expected")
def test_weights(names: list[str], weighs: Any, expected: str | None) -> None:
    columns = [column(name, kind="number", weighs=weighs) for name in names[:1]]
    columns += [column(name, kind="number") for name in names[1:]]
    proposal = propose_roles(columns)[names[0]]
    assert proposal.role == expected
    assert ("evaluate: {risk: {weights: " in proposal.reason) is proposal.is_weight
    assert unit_of(columns, propose_roles(columns)) is None


def test_an_index_that_the_header_does_not_name() -> None:
    for name in ("_c0", "Unnamed: 0", "__index_level_0__", "rownames"):
        found = propose_roles([column(name, kind="whole number", distinct=400), column("age")])
        assert found[name].role == "identifier", name
        assert "index of rows" in found[name].reason
        assert unit_of([column(name, distinct=400)], found) is None
    # Without a header no column has a name.
    found = propose_roles([column("_c0"), column("_c1")])
    assert found["_c0"].role == "quasi_identifier"


def test_dates_of_birth_alone_give_an_age_away() -> None:
    for name in ("birth_order", "birthplace", "birthcontrol", "birth_weight"):
        columns = [column("age", kind="whole number"), column(name, kind="whole number")]
        assert propose_roles(columns)["age"].role == "quasi_identifier", name
    columns = [column("age", kind="whole number"), column("birth", distinct=2)]
    assert propose_roles(columns)["age"].role == "quasi_identifier"
    for name, facts in {
        "birth_date": {"kind": "date"}, "birth_year": {"kind": "whole number", "length": 4},
    }.items():  # fmt: skip
        columns = [column("age", kind="whole number"), column(name, **facts)]
        assert propose_roles(columns)["age"].role is None, name
