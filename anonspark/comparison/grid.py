"""The grid file: a configuration, the settings that are varied, and how they are ranked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from anonspark.comparison.evaluation import (
    EVALUATED,
    FIGURES,
    EvaluationOptions,
    evaluation_problems,
)
from anonspark.config import Configuration, load_configuration, parse_configuration
from anonspark.config.gates import unmeasured
from anonspark.config.loading import written_overrides
from anonspark.config.models import AutoOptions, MappingOptions
from anonspark.config.problems import did_you_mean, in_words, key_path, one_of, validated
from anonspark.config.reading import TextReader, read_local_text, sibling
from anonspark.config.section import Section
from anonspark.config.yaml_reading import Document, Places, read_base, read_document
from anonspark.core.figures import SUMMARY, Figure, Need
from anonspark.errors import ConfigurationError, SparkNeededError
from anonspark.redaction import REDACTED, Redacted, is_secret_option, redact_options, redact_values

METRICS: Mapping[str, Figure] = {
    figure.name: figure for figure in (*SUMMARY, *FIGURES) if figure.better
}
"""Figures of the summary, and of an evaluation, that cells can be ranked by."""


@dataclass(frozen=True)
class Contestant:
    """The properties of a cell that decide its rank.

    ``protection`` is its privacy settings other than k: cells that differ here are not compared.
    ``suppressed`` counts records without a class. The smaller ``value`` is the better, and None if
    nothing was published.
    """

    protection: tuple[str, ...]
    k: int
    suppressed: int
    value: float | None


def places(contestants: Sequence[Contestant]) -> list[int | None]:
    """Return the rank of each cell, from 1, among those with the same privacy settings.

    Equal figures share the better rank. Cells that published nothing have none.

    >>> places([Contestant((), 5, 0, loss) for loss in (0.2, 0.1, 0.2, None)])
    [2, 1, 2, None]
    """

    def rank(contestant: Contestant, value: float) -> int:
        rivals = [
            rival.value
            for rival in contestants
            if (rival.protection, rival.k) == (contestant.protection, contestant.k)
        ]
        return 1 + sum(rival is not None and rival < value for rival in rivals)

    return [None if cell.value is None else rank(cell, cell.value) for cell in contestants]


def dominated(contestants: Sequence[Contestant]) -> list[bool | None]:
    """Return whether another cell is nowhere worse than each, and better in something.

    Compared are k (a larger one protects more), the records suppressed, and the figure that ranks.
    None for cells that published nothing.

    >>> dominated([Contestant((), k, 0, loss) for k, loss in ((5, 0.2), (10, 0.2), (10, None))])
    [True, False, None]
    """
    return [
        None
        if contestant.value is None
        else any(_dominates(other, contestant) for other in contestants)
        for contestant in contestants
    ]


def _dominates(other: Contestant, rival: Contestant) -> bool:
    if other.value is None or rival.value is None or other.protection != rival.protection:
        return False
    pairs = ((-other.k, -rival.k), (other.suppressed, rival.suppressed), (other.value, rival.value))
    return all(left <= right for left, right in pairs) and any(
        left < right for left, right in pairs
    )


# What stands in a cell's configuration for the place of its release, which is deleted after it is
# measured: the cell's name must not depend on that place.
NOWHERE = "-"

# A cell is no run of the base's job, and what the base says of its own output does not matter, but
# for the style.
_FORCED = (f"output.path={NOWHERE!r}", "output.mode=error", "metrics={}")

_VARIED = ("privacy", "model", "evaluate", "execution", "gates")
_FIXED = {
    "input": "the input is read once for all cells",
    "attributes": "the input is prepared once for all cells",
    "missing": "the input is prepared once for all cells",
    "output": "the releases are deleted after they are measured",
}

_SEEDS = (["execution", "seed"], ["execution", "seed_file"])

_LONGEST_SETTING = 60
_LONGEST = 10**30

_STEP = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^."']*))\s*(?:\.|$)""")

Axes = dict[str, Annotated[list[Any], Field(min_length=1)]]


class _GridFile(Section):
    """What a grid file may say."""

    title: str | None = None
    """What is compared, for the report."""

    base: str | dict[str, Any]
    """The configuration that all cells share: a path, relative to the grid file, or the
    configuration itself."""

    settings: dict[str, Any] = Field(default={}, alias="set")
    """Key paths and values that replace those of the base, in all cells."""

    axes: Annotated[list[Axes], Field(min_length=1)]
    """Key paths and the values that each takes. A list of them is run in turn."""

    evaluation: EvaluationOptions | None = None
    """What every cell's release is evaluated with: a target and held-out records."""

    rank_by: str = "loss"
    """The figure that cells are ranked by."""

    output: str = Field(min_length=1)
    """Directory of the figures. Any Hadoop URI."""


_ALWAYS_SHOWN = ("model.name", "privacy.k")


@dataclass(frozen=True, repr=False)
class Cell(Redacted):
    """One configuration of a grid, complete and checked, with a stand-in for its output path.

    ``settings`` maps the key paths of the axes that the cell takes part in to its values.
    """

    settings: dict[str, Any]
    configuration: Configuration

    @property
    def id(self) -> str:
        """Name of the cell: 16 digits of its configuration's fingerprint."""
        return self.configuration.fingerprint()[:16]

    @property
    def label(self) -> str:
        """The settings in a few words."""
        return settings_label(self.settings)

    @property
    def words(self) -> str:
        """Model and k, whether or not they are varied, and all other settings in short."""
        others = {key: value for key, value in self.settings.items() if key not in _ALWAYS_SHOWN}
        model, k = self.configuration.model.name, self.configuration.privacy.k
        return ", ".join(filter(None, [model, f"k = {k:,}", settings_label(others)]))


@dataclass(frozen=True, repr=False)
class Trial(Redacted):
    """A configuration in the place of a grid: its models are tried, and one is recommended.

    ``model`` is None if the configuration chooses one by itself, or maps. ``has_options`` says that
    it gives its model options, which others may not have, ``names_model`` that it names its model.
    ``refused`` maps models that are no cells to the reason.
    """

    model: str | None
    has_options: bool
    k: int
    refused: Mapping[str, str]
    names_model: bool = True
    places: Places = field(default_factory=Places)


@dataclass(frozen=True, repr=False)
class Grid(Redacted):
    """The cells of a comparison, each configuration once, in the order of the file.

    ``axes`` are the key paths that at least one block varies, ``rank_by`` is a name of
    :data:`METRICS`, ``output`` the directory of the figures. ``evaluation`` is measured of each
    release beside its own metrics. The cells of a ``trial`` may fail in any way that the data show.
    """

    title: str | None
    cells: tuple[Cell, ...]
    axes: tuple[str, ...]
    rank_by: str
    output: str
    evaluation: EvaluationOptions | None = None
    trial: Trial | None = None

    @property
    def places(self) -> Places | None:
        """The positions of a configuration's keys, or None: messages of a grid name cells."""
        return None if self.trial is None else self.trial.places


def public_setting(key: str, value: Any) -> Any:
    """Return the value of a setting without credentials."""
    if "options" in _steps(key) and is_secret_option(key):
        return REDACTED
    if _steps(key)[-1:] == ["options"] and isinstance(value, Mapping):
        value = redact_options({name: str(option) for name, option in value.items()})
    return redact_values(value)


def _writable(value: Any) -> Any:
    """Return a value of YAML, even a wrong one, in a form that JSON can hold."""
    if isinstance(value, Mapping):
        # Keys of several types cannot be sorted, so all become texts.
        return {
            key if isinstance(key, str) else f"{type(key).__name__} {_writable(key)}": _writable(
                item
            )
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_writable(item) for item in value]
    if isinstance(value, bool | float | str | None):
        return value
    # Python writes no number of thousands of digits, but in other digits.
    return (
        (value if abs(value) < _LONGEST else hex(value)) if isinstance(value, int) else str(value)
    )


def setting_text(key: str, value: Any) -> str:
    """Write a setting in short: the last name of its key, and its value, without credentials.

    >>> setting_text("privacy.k", 5), setting_text("model.name", "canon")
    ('k=5', 'canon')
    """
    value = public_setting(key, value)
    written = value if isinstance(value, str) else json.dumps(_writable(value), ensure_ascii=False)
    return written if key == "model.name" else f"{setting_name(key)}={written}"


def setting_name(key: str) -> str:
    """Return the last name of a key. That of ``model.name`` is model.

    >>> setting_name("privacy.k"), setting_name("model.name")
    ('k', 'model')
    """
    return "model" if key == "model.name" else _steps(key)[-1]


def settings_label(settings: Mapping[str, Any]) -> str:
    """Write settings in short, with long values cut off.

    >>> settings_label({"model.name": "canon", "privacy.k": 5})
    'canon, k=5'
    """
    texts = (setting_text(key, value) for key, value in settings.items())
    return ", ".join(
        text if len(text) <= _LONGEST_SETTING else f"{text[:_LONGEST_SETTING]}..." for text in texts
    )


def load_grid(
    path: str | Path, overrides: Sequence[str] = (), read: TextReader = read_local_text
) -> Grid:
    """Read a grid file and check every cell of it.

    Overrides replace values of the base, not those of the axes. ``read`` reads the file, and that
    of the base. Raises ConfigurationError with all problems of the file and cells, each once.
    """
    expected = "a mapping with 'base', 'axes' and 'output'"
    written, problems = read_document(path, "a grid", expected, read, variables=True)
    with written.locating_problems(is_whole=False):
        return _grid(written, problems, path, overrides, read)


def _grid(
    written: Document,
    problems: list[str],
    path: str | Path,
    overrides: Sequence[str],
    read: TextReader,
) -> Grid:
    """Build a grid from its document, or raise ConfigurationError with all problems."""
    document = dict(written)
    if isinstance(document.get("axes"), Mapping):
        document["axes"] = [document["axes"]]
    file = validated(_GridFile, document, problems)
    if file is None:
        raise ConfigurationError(*problems)
    problems += _unusable_axes(file.axes)
    if file.rank_by not in METRICS:
        remedy = did_you_mean(file.rank_by, METRICS, f"Expected {one_of(list(METRICS))}")
        problems.append(f"rank_by: found {in_words(file.rank_by)}. {remedy}")
    base: Mapping[str, Any] | None
    if isinstance(file.base, str):
        expected = "a mapping with 'input', 'attributes', 'privacy' and 'output'"
        base = read_base(sibling(path, file.base), expected, read, problems)
    else:
        base = file.base
    if base is None or problems:
        raise ConfigurationError(*problems)
    shared = [*written_overrides(file.settings), *overrides]
    # The file of the seed is the same for all cells.
    cells, problems = _cells(base, shared, file.axes, cache(read))
    if not problems:
        configurations = [cell.configuration for cell in cells]
        problems = evaluation_problems(file.evaluation, file.rank_by, configurations)
    if not problems:
        # A comparison publishes no records, and shows what means lose.
        evaluated = frozenset[Need](["bounds"])
        evaluated |= frozenset() if file.evaluation is None else EVALUATED
        lack = [unmeasured(file.rank_by, cell.configuration.measured | evaluated) for cell in cells]
        problem = next(filter(None, lack), None)
        if problem is not None:
            problems.append(f"rank_by: {problem} for all cells, or rank by another figure")
    if problems:
        raise ConfigurationError(*problems)
    axes = dict.fromkeys(key for block in file.axes for key in block)
    return Grid(file.title, tuple(cells), tuple(axes), file.rank_by, file.output, file.evaluation)


def _steps(key: str) -> list[str]:
    """Split a key path as ``--set`` does.

    >>> _steps("attributes.'capital.gain'.role")
    ['attributes', 'capital.gain', 'role']
    """
    return [
        (in_double or in_single or bare).strip()
        for in_double, in_single, bare in _STEP.findall(key)
        if in_double or in_single or bare.strip()
    ]


def _unusable_axes(blocks: Sequence[Mapping[str, Sequence[Any]]]) -> list[str]:
    """Explain which axes would change settings that all cells share, or name no single key."""
    problems = []
    for index, block in enumerate(blocks):
        for key, values in block.items():
            where = key_path(("axes", index, key))
            steps = _steps(key) or [key]
            if steps[0] in _FIXED or steps in _SEEDS:
                reason = _FIXED.get(steps[0], "it is mixed into the prepared records")
                problems.append(
                    f"{where}: cannot be varied, because {reason}. Expected a key of "
                    f"{one_of(_VARIED)}. Write a grid file for each value"
                )
            elif steps[0] not in _VARIED:
                hint = did_you_mean(steps[0], _VARIED)
                problems.append(f"{where}: unknown key. Expected {one_of(_VARIED)}. {hint}".strip())
            elif len(steps) == 1:
                problems.append(
                    f"{where}: found a whole section. Expected the path of a key in it, as in "
                    "'model.name'. List its keys as separate axes"
                )
            texts = [json.dumps(_writable(value), sort_keys=True) for value in values]
            if len(set(texts)) < len(texts):
                problems.append(f"{where}: found a value twice. Expected each once. Remove one")
    return problems


def _combinations(blocks: Sequence[Mapping[str, Sequence[Any]]]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        for values in product(*block.values()):
            yield dict(zip(block, values, strict=True))


def _cells(
    base: Mapping[str, Any],
    shared: Sequence[str],
    blocks: Sequence[Mapping[str, Sequence[Any]]],
    read: TextReader,
) -> tuple[list[Cell], list[str]]:
    """Parse the configuration of each combination of settings, and keep different ones once.

    Also return the problems of all, each with the number of settings that have it.
    """
    combinations = list(_combinations(blocks))
    cells: dict[str, Cell] = {}
    labels_of_problem: dict[str, list[str]] = {}
    for settings in combinations:
        overrides = [*shared, *written_overrides(settings), *_FORCED]
        try:
            parsed = parse_configuration(base, overrides, read, with_tops=False)
            cell = Cell(settings, parsed)
        except SparkNeededError:
            raise
        except ConfigurationError as error:
            for problem in error.problems:
                labels_of_problem.setdefault(problem, []).append(settings_label(settings))
        else:
            cells.setdefault(cell.id, cell)
    problems = [
        f"{problem} (in {len(labels)} of {len(combinations)} settings, first in: {labels[0]})"
        if len(labels) < len(combinations)
        else problem
        for problem, labels in labels_of_problem.items()
    ]
    prepared = {cell.configuration.input_fingerprint(): cell.label for cell in cells.values()}
    if len(prepared) > 1 and not problems:
        problems.append(
            "axes: the input is prepared once for all cells, and these need it in different ways: "
            f"{'; '.join(prepared.values())}. It differs by privacy.unit, pseudonyms, weights, and "
            "grid: auto with and without model.published. Write a grid file for each"
        )
    return list(cells.values()), problems


MODELS = (
    "su-mondrian",
    "smondrian",
    "u-canon",
    "microaggregation",
    "full-domain",
    "rho-gain",
)
"""What is tried. Of equal losses the first is best. The others are variants of these."""

FACTORS = (1, 2, 5)
"""Of the configuration's k."""

BESIDE = "-comparison"
"""What the name of the figures' directory ends with, beside that of a configuration's output."""


def load_comparison(
    path: str | Path, overrides: Sequence[str] = (), read: TextReader = read_local_text
) -> Grid:
    """Read a grid file as :func:`load_grid`, or make a configuration's :func:`trial_grid`."""
    what = "a grid or a configuration"
    document, problems = read_document(path, what, "a mapping", read, variables=True)
    if "axes" in document or "base" in document or "input" not in document:
        return load_grid(path, overrides, read)
    if problems:
        raise ConfigurationError(*problems)
    # Loaded from the file again, so that messages name lines.
    return trial_grid(document, load_configuration(path, overrides, read), overrides, read)


def trial_grid(
    document: Mapping[str, Any],
    configuration: Configuration,
    overrides: Sequence[str] = (),
    read: TextReader = read_local_text,
) -> Grid:
    """Make a grid of the models, each at the configuration's k, at twice and five times it.

    ``document`` is the configuration without the overrides. Figures are written next to its output.
    Models that refuse the configuration are no cells, and the trial explains why.
    """
    model = configuration.model.name
    # Their rivals are what they would choose from, or need no earlier release.
    chooses = isinstance(configuration.model, AutoOptions | MappingOptions)
    names = list(MODELS) if chooses or model in MODELS else [model, *MODELS]
    cells: list[Cell] = []
    refused: dict[str, str] = {}
    for name in names:
        for factor in FACTORS:
            k = configuration.privacy.k * factor
            settings = {"model.name": name, "privacy.k": k}
            try:
                cell = _cell(document, overrides, settings, configuration, read)
            except SparkNeededError:
                raise
            except ConfigurationError as error:
                first, *others = error.problems
                more = f" (and {len(others):,} more)" if others else ""
                refused.setdefault(name, f"{first}{more}")
            else:
                cells.append(cell)
    return Grid(
        title=None,
        cells=tuple(cells),
        axes=("model.name", "privacy.k"),
        rank_by="loss",
        output=f"{configuration.output.path.rstrip('/')}{BESIDE}",
        trial=Trial(
            model=None if chooses else model,
            has_options=bool(
                configuration.model.model_dump(exclude_defaults=True).keys() - {"name"}
            ),
            k=configuration.privacy.k,
            refused=refused,
            names_model="model" in configuration.model_fields_set
            and "name" in configuration.model.model_fields_set,
            places=configuration.places,
        ),
    )


def _cell(
    document: Mapping[str, Any],
    overrides: Sequence[str],
    settings: Mapping[str, Any],
    configuration: Configuration,
    read: TextReader,
) -> Cell:
    """Make a cell. The configuration's own model keeps its options."""
    changed = {"privacy.k": settings["privacy.k"]}
    if settings["model.name"] != configuration.model.name:
        changed["model"] = {"name": settings["model.name"]}
    forced = [*overrides, *written_overrides(changed), *_FORCED]
    parsed = parse_configuration(document, forced, read, with_tops=False)
    return Cell(dict(settings), parsed)
