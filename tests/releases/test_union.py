"""``anonspark union``: what is published of several holders, what is proved, what is refused."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import cases, changed
from commands import Cli
from forgeries import read_table, save_table
from helpers import configuration_file, contents, metrics, published, summary, write_table
from holders import ATTRIBUTES, anonymize, write_coding
from hypothesis import given, settings
from hypothesis import strategies as st
from release_folders import list_files, read_manifest, rewrite, save_manifest

import anonspark
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import (
    AnonsparkError,
    ConfigurationError,
    DataError,
    GuaranteeError,
    PublishingError,
)
from anonspark.release.manifest_form import in_order
from anonspark.sharing.holders import union as holders_union
from anonspark.sharing.holders.union import Union, unite
from anonspark.verification.audit import audit_release

PRIVACY = {
    "k": 3,
    "l_diversity": {"attribute": "illness", "l": 2},
    "t_closeness": {"attribute": "illness", "t": 0.8, "distance": "equal"},
}
PLACES = ("north", "south", "east")
PLANTED = "Xanthodiagnosis"


def people(seed: int, rows: int = 60) -> pa.Table:
    draw = np.random.default_rng(seed)
    illness = draw.choice(["flu", "gout", PLANTED], rows, p=[0.5, 0.3, 0.2])
    return pa.table(
        {
            "age": draw.integers(20, 30, rows),
            "sex": draw.choice(["female", "male"], rows),
            "illness": illness,
        }
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the releases of three holders, and two that do not fit to them."""
    folder = tmp_path_factory.mktemp("holders")
    coding = write_coding(folder, PRIVACY)
    for seed, name in enumerate(PLACES):
        anonymize(folder, name, people(seed), coding)
    other = write_coding(folder / "other", PRIVACY | {"k": 4})
    anonymize(folder, "stricter", people(7), other)
    anonymize(folder, "uncoded", people(8), None, attributes=dict(ATTRIBUTES), privacy=PRIVACY)
    anonymize(folder, "again", people(0), coding, privacy={"k": 5})
    return folder


@pytest.fixture
def parts(made: Path, tmp_path: Path) -> Path:
    """Copy all of them to a folder where they may be changed."""
    return Path(shutil.copytree(made, tmp_path / "parts"))


@pytest.fixture(scope="module")
def by_holder(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unite the three once, with a column of the holders."""
    out = tmp_path_factory.mktemp("united") / "union"
    paths = [str(made / name) for name in PLACES]
    unite(LocalEngine(), paths, str(out), holder_column="clinic")
    return out


@pytest.fixture
def united(by_holder: Path, tmp_path: Path) -> Path:
    """Copy the union to where its manifest may be changed."""
    return Path(shutil.copytree(by_holder, tmp_path / "union"))


def union(folder: Path, names: Sequence[str] = PLACES, out: str = "union", **options: Any) -> Union:
    paths = [str(folder / name) for name in names]
    return unite(LocalEngine(), paths, str(folder / out), **options)


def records(release: Path) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in published(release).to_pylist())


def failures(release: Path) -> str:
    return "\n".join(audit_release(LocalEngine(), str(release)).failures)


def change_manifest(release: Path, **changes: Any) -> None:
    save_manifest(release, read_manifest(release) | changes)


def test_a_union_is_published_and_proved(parts: Path, cli: Cli) -> None:
    out = parts / "union"
    done = cli.ends(0, "union", *(parts / name for name in PLACES), "--out", out)
    told = " ".join(done.out.split())
    assert "a person whose records two holders have is not protected by the union" in told
    assert "Ganta, Kasiviswanathan and Smith 2008" in told
    cli.ends(0, "verify", out, says="a person whose records two holders have is not protected")
    whole = sum((records(parts / name) for name in PLACES), Counter())
    assert records(out) == whole
    assert sorted(path.name for path in (out / "metrics").iterdir()) == [
        "privacy",
        "risk",
        "summary",
    ]
    figures = summary(out)
    classes = Counter((row["age"], row["sex"]) for row in published(out).to_pylist())
    assert figures["rows_published"] == 180 == sum(classes.values())
    assert figures["published_classes"] == len(classes)
    assert figures["published_min_class_size"] == min(classes.values()) >= 3
    assert {figures[name] for name in ("gcp", "loss", "model", "rows_in", "rounds")} == {None}
    assert {row["criterion"] for row in metrics(out, "privacy")} == {
        "k",
        "distinct",
        "equal distance",
    }
    said = read_manifest(out)
    runs = {read_manifest(parts / name)["run_id"]: read_manifest(parts / name) for name in PLACES}
    assert [part["run_id"] for part in said["parts"]] == sorted(runs)
    for part in said["parts"]:
        of_run = runs[part["run_id"]]
        assert part["output_fingerprint"] == of_run["fingerprints"]["output"]
        assert (part["rows"], part["holder"]) == (60, None)
        assert part["privacy"] == of_run["configuration"]["privacy"]
    assert said["coding"] == read_manifest(parts / "north")["coding"]
    assert said["warnings"][0]["code"] == "people_of_two_holders"
    assert not [path for path in parts.iterdir() if ".anonspark-" in path.name]


def test_the_order_of_the_parts_and_their_names_change_nothing(parts: Path) -> None:
    union(parts, out="one", seed=5)
    (parts / "south").rename(parts / "elsewhere")
    union(parts, ["east", "elsewhere", "north"], out="two", seed=5)
    union(parts, ["east", "elsewhere", "north"], out="three")
    one, two, three = (read_manifest(parts / name) for name in ("one", "two", "three"))
    assert one["fingerprints"] == two["fingerprints"] == three["fingerprints"]
    assert one["parts"] == two["parts"]
    of_data = [[file for file in said["files"] if "data/" in file["path"]] for said in (one, two)]
    assert of_data[0] == of_data[1]
    # A seed that is drawn orders the records in another way.
    assert published(parts / "three").to_pylist() != published(parts / "one").to_pylist()


def test_the_seed_is_told_nobody(parts: Path) -> None:
    made = union(parts, seed=8675309017443211)
    everything = b"".join(filter(None, contents(parts / "union").values()))
    assert b"8675309017443211" not in everything
    assert "8675309017443211" not in json.dumps(made.as_dict(), default=str)


def test_classes_of_two_holders_beside_the_distribution_of_both(tmp_path: Path, cli: Cli) -> None:
    closeness = {"attribute": "illness", "t": 0.3, "distance": "equal"}
    coding = write_coding(tmp_path, {"k": 10, "t_closeness": closeness})
    for name, flu, age in (("north", 9, 30), ("south", 1, 50)):
        illness = ["flu"] * flu + ["gout"] * (10 - flu)
        table = {"age": [age] * 10, "sex": ["male"] * 10, "illness": illness}
        anonymize(tmp_path, name, table, coding)
    both = [tmp_path / "north", tmp_path / "south"]
    for part in both:
        (distance,) = audit_release(LocalEngine(), str(part)).criteria
        assert distance.measured == 0.0
    before = contents(tmp_path)
    done = cli.ends(4, "union", *both, "--out", tmp_path / "union")
    assert "t_closeness of 'illness': the union needs 0.4:" in done.err
    assert "l-diversity" in done.err
    assert "--holder-column" in done.err
    assert contents(tmp_path) == before
    options = ("--out", tmp_path / "union", "--holder-column", "clinic")
    cli.ends(0, "union", *both, *options)
    cli.ends(0, "verify", tmp_path / "union")
    (row,) = [row for row in metrics(tmp_path / "union", "privacy") if row["attribute"]]
    assert row["measured"] == 0.0


def test_a_column_of_holders(parts: Path) -> None:
    made = union(parts, holder_column="clinic")
    out = parts / "union"
    assert failures(out) == ""
    rows = published(out).to_pylist()
    assert list(rows[0]) == ["age", "sex", "illness", "clinic"]
    for name in PLACES:
        own = Counter(tuple(row.values())[:3] for row in rows if row["clinic"] == name)
        assert own == records(parts / name)
    assert {part["holder"] for part in made.parts} == set(PLACES)
    sizes = Counter((row["age"], row["sex"], row["clinic"]) for row in rows)
    assert made.summary["published_classes"] == len(sizes)
    assert made.summary["published_min_class_size"] == min(sizes.values())


@pytest.mark.parametrize("holder_column", [None, "clinic"])
def test_a_configuration_may_require_more_of_a_union(
    parts: Path, cli: Cli, holder_column: str | None
) -> None:
    made = union(parts, holder_column=holder_column)
    smallest = made.summary["published_min_class_size"]
    for k in (smallest, smallest + 1):
        path = configuration_file(parts, attributes=dict(ATTRIBUTES), privacy=PRIVACY | {"k": k})
        done = cli.ends(0 if k == smallest else 4, "verify", parts / "union", "--config", path)
        (told,) = [line for line in done.err.splitlines() if "error" in line] or [""]
        assert (k == smallest) == (told == "")


def with_release_of_two_types(parts: Path) -> list[str]:
    coding = parts / "coding.yaml"
    table = people(5)
    for name, width in (("narrow", pa.int32()), ("wide", pa.int64())):
        numbers = table["illness"].dictionary_encode().combine_chunks().indices.cast(width)
        place = table.schema.get_field_index("illness")
        anonymize(parts, name, table.set_column(place, "illness", numbers), coding)
        table = people(6)
    return ["narrow", "wide"]


def with_the_same_people(parts: Path) -> list[str]:
    # The table of the north again, in its place.
    coding = parts / "coding.yaml"
    for name, k in (("first", 3), ("second", 5)):
        write_table(parts / "first.parquet", people(0))
        anonymize(
            parts,
            name,
            people(0),
            coding,
            privacy={"k": k},
            input={"path": str(parts / "first.parquet")},
        )
    return ["first", "second"]


def with_a_copied_table(parts: Path) -> list[str]:
    coding = parts / "coding.yaml"
    for name, k in (("first", 3), ("second", 5)):
        anonymize(parts, name, people(20), coding, privacy={"k": k})
    return ["first", "second"]


def with_a_copy(parts: Path) -> list[str]:
    shutil.copytree(parts / "north", parts / "copy")
    return ["north", "copy"]


def with_a_union(parts: Path) -> list[str]:
    union(parts, ["north", "south"], out="both")
    return ["both", "east"]


def with_a_changed_record(parts: Path) -> list[str]:
    table = read_table(parts / "north", "data")
    illness = table["illness"].to_pylist()
    illness[0] = "gout" if illness[0] != "gout" else "flu"
    index = table.schema.get_field_index("illness")
    save_table(parts / "north", "data", table.set_column(index, "illness", pa.array(illness)))
    list_files(parts / "north")
    assert "its records are not those that were published" in failures(parts / "north")
    return list(PLACES)


def with_a_swapped_file(parts: Path) -> list[str]:
    files = [next((parts / name / "data").glob("part-*")) for name in ("north", "south")]
    rewrite(files[0], files[1].read_bytes())
    return list(PLACES)


def with_another_coding_in_the_manifest(parts: Path) -> list[str]:
    said = changed(read_manifest(parts / "north"), {"coding.document.style": "mean"})
    save_manifest(parts / "north", said)
    return list(PLACES)


def with_another_configuration(parts: Path) -> list[str]:
    said = changed(read_manifest(parts / "north"), {"configuration.missing": "category"})
    save_manifest(parts / "north", said)
    return list(PLACES)


@pytest.mark.parametrize(
    ("names", "error", "told"),
    [
        (["north"], ConfigurationError, "found 1 release. Expected at least two"),
        (["north", "stricter"], ConfigurationError, "found two codings: 'clinics'"),
        (["north", "uncoded"], ConfigurationError, "was made without a coding"),
        (["north", "north"], ConfigurationError, "found the same place"),
        (["north", "nowhere"], DataError, "no manifest.json there"),
        (with_a_copy, ConfigurationError, "are one release"),
        (with_the_same_people, ConfigurationError, "about the same people"),
        (with_a_copied_table, ConfigurationError, "about the same people"),
        (with_a_union, ConfigurationError, "is a union of releases itself"),
        (
            with_release_of_two_types,
            ConfigurationError,
            r"attributes\.illness: found (int|long|bigint) in .* and (int|long|bigint) in",
        ),
        (with_a_changed_record, GuaranteeError, "does not keep its own promise"),
        (with_a_swapped_file, GuaranteeError, "does not keep its own promise"),
        (with_another_coding_in_the_manifest, GuaranteeError, "expected that of coding.document"),
        (with_another_configuration, GuaranteeError, "is not that of its coding"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_cannot_be_united(
    parts: Path,
    names: Sequence[str] | Callable[[Path], list[str]],
    error: type[AnonsparkError],
    told: str,
) -> None:
    chosen = names(parts) if callable(names) else names
    before = contents(parts)
    with pytest.raises(error, match=told) as raised:
        union(parts, chosen)
    assert contents(parts) == before
    assert PLANTED not in str(raised.value)


def test_a_part_with_less_than_the_coding_asks_for(parts: Path) -> None:
    # A release of its own right, whose manifest got the coding afterwards.
    sections = {"attributes": dict(ATTRIBUTES), "privacy": PRIVACY | {"k": 2}}
    anonymize(parts, "loose", people(11), None, **sections)
    assert summary(parts / "loose")["published_min_class_size"] == 2
    coding = read_manifest(parts / "north")["coding"]
    document = in_order(read_manifest(parts / "loose") | {"coding": coding})
    save_manifest(parts / "loose", document)
    with pytest.raises(GuaranteeError, match=r"is not that of its coding \(privacy\)"):
        union(parts, ["north", "loose"])
    assert not (parts / "union").exists()


@cases(__file__, "options", "told")
def test_options_that_are_refused(made: Path, options: dict[str, Any], told: str) -> None:
    before = sorted(contents(made))
    with pytest.raises(ConfigurationError, match=told):
        union(made, **options)
    assert sorted(contents(made)) == before


def test_holders_of_one_name_cannot_be_told_apart(parts: Path) -> None:
    (parts / "far").mkdir()
    (parts / "south").rename(parts / "far" / "north")
    with pytest.raises(ConfigurationError, match="2 releases lie in directories called 'north'"):
        union(parts, ["north", "far/north"], holder_column="clinic")
    union(parts, ["north", "far/north"])


def test_a_release_without_a_name_is_no_holder(
    parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(parts / "north")
    with pytest.raises(ConfigurationError, match="found a release that is called"):
        unite(LocalEngine(), [".", "../south"], "../union", holder_column="clinic")
    assert not (parts / "union").exists()


def test_integers_of_other_widths_have_the_same_labels(parts: Path) -> None:
    table = people(5)
    narrow = table.set_column(0, "age", table["age"].cast(pa.int16()))
    anonymize(parts, "narrow", narrow, parts / "coding.yaml")
    union(parts, ["north", "narrow"])
    assert failures(parts / "union") == ""
    floats = table.set_column(0, "age", table["age"].cast(pa.float64()))
    anonymize(parts, "floats", floats, parts / "coding.yaml")
    with pytest.raises(ConfigurationError, match=r"attributes\.age: found (integer|double) in"):
        union(parts, ["north", "floats"], out="mixed")


@cases(__file__, "changes", "told")
def test_a_union_whose_manifest_is_changed_fails_its_proof(
    united: Path, changes: dict[str, Any], told: str
) -> None:
    save_manifest(united, changed(read_manifest(united), changes))
    assert told in failures(united)


@cases(__file__, "changes", "told")
def test_what_a_union_says_of_parts_and_coding_is_claimed(
    united: Path, changes: dict[str, Any], told: str
) -> None:
    save_manifest(united, changed(read_manifest(united), changes))
    list_files(united)
    found = audit_release(LocalEngine(), str(united))
    assert (found.failures, told in found.claimed) == ([], True)


@pytest.mark.parametrize("key", ["parts", "coding", "holder_column", "files", "published"])
def test_a_union_whose_manifest_lacks_a_key_is_damaged(united: Path, key: str) -> None:
    said = read_manifest(united)
    del said[key]
    save_manifest(united, said)
    with pytest.raises(GuaranteeError, match="manifest"):
        audit_release(LocalEngine(), str(united))


@cases(__file__, "changes", "told")
def test_a_union_whose_manifest_names_what_is_not_there_is_damaged(
    united: Path, changes: dict[str, Any], told: str
) -> None:
    save_manifest(united, changed(read_manifest(united), changes))
    with pytest.raises(GuaranteeError, match=told):
        audit_release(LocalEngine(), str(united))


def test_what_needs_a_run_refuses_a_union(parts: Path, cli: Cli) -> None:
    union(parts)
    out = parts / "union"
    original = parts / "north.parquet"
    cli.ends(2, "report", out, "--original", original, says="is a union, which has no original")
    cli.ends(2, "verify", out, "--original", original, says="a union, which has no original")
    with pytest.raises(ConfigurationError, match="the release is a union"):
        anonymize(
            parts,
            "mapped",
            people(9),
            parts / "coding.yaml",
            model={"name": "mapping", "release": str(out)},
        )


@pytest.mark.parametrize("holder_column", [None, "clinic"])
def test_the_report_of_a_union(parts: Path, cli: Cli, holder_column: str | None) -> None:
    union(parts, holder_column=holder_column)
    out = parts / "union"
    cli.ends(0, "report", out)
    page = (out / "report.html").read_text()
    assert "union of 3 releases · k = 3" in page
    assert "A union has no original" in page
    assert "A person whose records two holders have is not protected by the union" in page
    assert "The guarantee holds" in page
    for part in read_manifest(out)["parts"]:
        assert f"records of the release {part['run_id']}" in page
    assert failures(out) == ""


def test_models_learn_from_a_union(parts: Path, cli: Cli) -> None:
    union(parts)
    options = ("--original", parts / "north.parquet", "--target", "illness", "--json")
    done = cli.ends(0, "evaluate", parts / "union", *options)
    trained = {score["trained_on"] for score in json.loads(done.out)["learning"]["scores"]}
    assert "release" in trained


def closest_t(releases: Sequence[Path]) -> Fraction:
    """The largest distance of a class from the records of all releases, counted one by one."""
    rows = [row for release in releases for row in published(release).to_pylist()]
    whole = Counter(row["illness"] for row in rows)
    needed = Fraction(0)
    for place in {(row["age"], row["sex"]) for row in rows}:
        own = Counter(row["illness"] for row in rows if (row["age"], row["sex"]) == place)
        shares = [
            abs(Fraction(own[value], own.total()) - Fraction(whole[value], len(rows)))
            for value in whole
        ]
        needed = max(needed, sum(shares, Fraction(0)) / 2)
    return needed


@settings(max_examples=3, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(1, 3), min_size=2, max_size=4),
    t=st.sampled_from([0.05, 0.25, 0.5]),
)
def test_unions_of_any_split_of_a_table(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cuts: list[int], t: float
) -> None:
    folder = tmp_path_factory.mktemp("split")
    closeness = {"attribute": "illness", "t": t, "distance": "equal"}
    free = write_coding(folder, {"k": 3, "t_closeness": closeness | {"t": 1.0}})
    bound = write_coding(folder / "bound", {"k": 3, "t_closeness": closeness})
    draw = np.random.default_rng(seed)
    starts = np.cumsum([0, *(8 * cut for cut in cuts)])
    table = people(seed, int(starts[-1])).take(draw.permutation(starts[-1]))
    ends = list(pairwise(starts.tolist()))
    names = [f"part{place}" for place in range(len(ends))]
    for name, (start, end) in zip(names, ends, strict=True):
        for coding in (free, bound):
            anonymize(coding.parent, name, table.slice(start, end - start), coding)
    union(folder, names)
    assert summary(folder / "union")["rows_published"] == starts[-1]
    assert summary(folder / "union")["published_min_class_size"] >= 3
    (row,) = [one for one in metrics(folder / "union", "privacy") if one["attribute"]]
    assert row["measured"] == pytest.approx(float(closest_t([folder / name for name in names])))
    # By the other coding it is published exactly where what is measured allows it.
    needed = closest_t([folder / "bound" / name for name in names])
    if needed <= t:
        union(folder / "bound", names)
        assert failures(folder / "bound" / "union") == ""
        return
    with pytest.raises(GuaranteeError, match="t_closeness of 'illness': the union needs") as raised:
        union(folder / "bound", names)
    (told,) = re.findall(r"the union needs ([\d.]+\d)", str(raised.value))
    assert needed <= Fraction(told) <= needed + Fraction(1, 10_000)
    assert not (folder / "bound" / "union").exists()


def test_nothing_stays_of_a_union_that_fails_at_the_end(
    parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise PublishingError("the disk is full")

    monkeypatch.setattr("anonspark.sharing.holders.union.commit", full)
    before = contents(parts)
    with pytest.raises(PublishingError):
        union(parts, out="new/union")
    assert contents(parts) == before


@pytest.mark.parametrize("when", ["before", "while"])
def test_a_place_that_cannot_be_written_is_named_as_the_user_did(
    parts: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    if when == "before":
        (parts / "file").write_text("no directory")
        with pytest.raises(PublishingError, match=r"^--out: "):
            union(parts, out="file/union")
        return
    proving = holders_union.prove_union

    def come_between(*arguments: Any) -> Any:
        (parts / "union").mkdir()
        return proving(*arguments)

    monkeypatch.setattr(holders_union, "prove_union", come_between)
    with pytest.raises(PublishingError, match=r"^--out: .* appeared while .* another path$"):
        union(parts)


def test_figures_as_json_and_in_python(parts: Path, cli: Cli) -> None:
    paths = [str(parts / name) for name in PLACES]
    done = cli("union", *paths, "--out", parts / "one", "--json", "--seed", "5")
    told = json.loads(done.out)
    made = anonspark.union(paths, str(parts / "two"), seed=5)
    assert told["summary"]["output_fingerprint"] == made.summary["output_fingerprint"]
    assert [row["criterion"] for row in told["privacy"]] == ["k", "distinct", "equal distance"]
    assert told["parts"] == made.parts
    assert "is not protected" in told["warnings"][0]


def test_it_is_shown_without_commands(by_holder: Path, cli: Cli) -> None:
    shown = cli.ends(0, "show", by_holder)
    assert "has no configuration of its own" in shown.out
    assert "anonspark run again.yaml" not in shown.out
