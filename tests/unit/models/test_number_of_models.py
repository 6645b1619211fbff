"""README and docs/models.md count the models as the registry does, and compare them as measured."""

from __future__ import annotations

import math
import re

from cases import cases
from defaults import differences, geometric_means, printed_rows
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


def test_the_page_sums_up_its_tables_of_losses() -> None:
    """The table of defaults, its conclusions, and README, which repeats one of them."""
    page = (REPOSITORY / "docs" / "models.md").read_text()
    text = " ".join(page.split())
    tables = printed_rows(page)
    of_public = [rows for name, rows in tables.items() if name != "People"]
    means = geometric_means(of_public)
    for model, figures in means.items():
        assert f"| {model} | {' | '.join(f'{figure:.2f}' for figure in figures)} |\n" in page
    assert f"`separation: adaptive` loses {1 - means['su-mondrian'][0]:.0%} less" in text
    costs = {
        name: max(
            float(queries["gcp"]) / float(row["gcp"]) - 1
            for row in rows
            for queries in rows
            if (row["model"], queries["model"], row["k"])
            == ("microaggregation", "microaggregation, queries", queries["k"])
        )
        for name, rows in tables.items()
        if name != "People"
    }
    some = ("Adult", "Diabetes", "Poker")
    assert f"up to {max(costs[name] for name in some):.0%} more gcp on Adult, Diabetes and" in text
    others = max(cost for name, cost in costs.items() if name not in some)
    assert f"Poker, and up to {others:.0%} more on the others" in text
    default, least = means["su-mondrian"], means["microaggregation"]
    readme = " ".join((REPOSITORY / "README.md").read_text().split())
    (refined,) = re.findall(r"microaggregation without passes, and (1\.\d\d),", text)
    more = round(100 * (float(refined) - 1))
    assert f"loses about {more}% more detail than `microaggregation`" in readme
    times = {3: "three", 4: "four", 5: "five"}[round(least[3] / default[3])]
    assert f"{times} times the seconds of `su-mondrian`" in text


def test_the_page_sums_up_what_leaving_out_saves() -> None:
    text = " ".join((REPOSITORY / "docs" / "models.md").read_text().split())
    section = text[text.index("## Few records") : text.index("## The mapping")]
    rows = re.findall(r"\| ([\w-]+) \| [\w ]+ \| ([\d.]+) \| ([\d.]+) \S+ \| ([\d.]+) ", section)
    assert len(rows) == 10
    saved = {
        (model, limit): 1
        - math.prod(float(row[limit]) / float(row[1]) for row in rows if row[0] == model) ** 0.2
        for model in ("su-mondrian", "microaggregation")
        for limit in (2, 3)
    }
    assert (
        f"1% of the records saves {saved['su-mondrian', 2]:.0%} of the loss of `su-mondrian` and "
        f"{saved['microaggregation', 2]:.0%} of `microaggregation`. 5% saves "
        f"{saved['su-mondrian', 3]:.0%} and {saved['microaggregation', 3]:.0%}."
    ) in section


def test_other_losses_than_those_of_the_page_are_named() -> None:
    page = printed_rows((REPOSITORY / "docs" / "models.md").read_text())
    row = page["Adult"][0]
    assert not list(differences({"Adult": [row | {"seconds": "99"}]}, page))
    (difference,) = differences({"Adult": [row | {"gcp": "0.5"}]}, page)
    assert difference == f"Adult, k = 5, smondrian: gcp is 0.5, the page has {row['gcp']}"
