"""README and docs/models.md count the models as the registry does, and compare them as measured."""

from __future__ import annotations

import re

from cases import cases
from places import REPOSITORY

from anonspark.config.models import ModelOptions, options_classes
from anonspark.models import registry

WORDS = {"Two": 2, "Six": 6, "Seven": 7, "Eight": 8, "Nine": 9, "Ten": 10}
NEITHER = {"auto", "mapping"}
"""Names that stand for no model of their own: one chooses, the other applies an earlier release."""


def registered() -> dict[str, ModelOptions]:
    """Return the options by every name that a registered model has."""
    ours = registry._MODELS
    return {name: own(name=name) for name, own in options_classes().items() if own in ours}


def models() -> dict[tuple[type[ModelOptions], bool], list[str]]:
    """Return the names of each model: two that compute the same are names of one."""
    found: dict[tuple[type[ModelOptions], bool], list[str]] = {}
    for name, options in registered().items():
        found.setdefault((type(options), options.most_rounds > 1), []).append(name)
    return found


def test_which_names_there_are() -> None:
    assert set(options_classes()) == {*registered(), *NEITHER}
    assert sorted(map(sorted, models().values())) == [
        ["canon"],
        ["full-domain"],
        ["microaggregation"],
        ["mondrian", "smondrian"],
        ["rho-gain"],
        ["su-mondrian", "u-mondrian"],
        ["u-canon"],
    ]


@cases(__file__, "page", "pattern")
def test_pages_count_the_models(page: str, pattern: str) -> None:
    (word,) = re.findall(pattern, (REPOSITORY / page).read_text())
    assert WORDS[word.capitalize()] == len(models())


def test_the_page_of_models_counts_the_names() -> None:
    text = " ".join((REPOSITORY / "docs" / "models.md").read_text().split())
    (word,) = re.findall(r"They have (\w+) names", text)
    assert WORDS[word.title()] == len(registered())
    (word,) = re.findall(r"(\w+) more names choose or repeat", text)
    assert WORDS[word.capitalize()] == len(NEITHER)
    for name in options_classes():
        assert f"`{name}`" in text


def test_the_page_of_the_configuration_lists_all_names() -> None:
    text = (REPOSITORY / "docs" / "configuration.md").read_text()
    (row,) = re.findall(r"\n\| `model.name` \|.*", text)
    assert set(options_classes()) <= set(re.findall(r"`([a-z-]+)`", row))


def test_the_pages_compare_the_models_as_the_tables_do() -> None:
    """The default with microaggregation, and that with the next best of the other models."""
    docs = REPOSITORY / "docs"
    text = (docs / "models.md").read_text()
    tables = text[text.index("## Losses") : text.index("## Figures")].split("\n### ")[1:]
    less, more = [], []
    for table in tables:
        rows = re.findall(r"^\| (\d+) \| ([^|]+) \| \d+ \| [\d,]+ \| ([\d.]+) \|", table, re.M)
        for k in {row[0] for row in rows}:
            gcp = {name: float(loss) for at, name, loss in rows if at == k}
            others = [loss for name, loss in gcp.items() if "microaggregation" not in name]
            less.append(1 - gcp["microaggregation"] / min(others))
            more.append(gcp["su-mondrian"] / gcp["microaggregation"])
    assert len(less) == 16
    assert f"{100 * min(less):.0f} to {100 * max(less):.0f}% less than the next best" in text
    assert f"{min(more):.2f} to {max(more):.1f} times the `gcp` of microaggregation" in text
    (default, least) = (
        float(re.findall(rf"^\| {name} \| ([\d.]+) \|", text, re.M)[0])
        for name in ("su-mondrian", "microaggregation")
    )
    assert f"on average {default / least:.1f} times" in text
    choosing = " ".join((docs / "choosing-k-and-model.md").read_text().split())
    assert f"`gcp` is about {10 * round(10 * (default / least - 1))}% larger" in choosing
