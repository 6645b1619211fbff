"""An ordinary configuration in the place of a grid: the models at three k, without a grid file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anonspark.comparison.grid import NOWHERE, Cell, Grid, Trial, load_grid
from anonspark.config import Configuration, load_configuration, parse_configuration
from anonspark.config.models import AutoOptions, MappingOptions
from anonspark.config.overrides import written_overrides
from anonspark.config.reading import TextReader, read_local_text
from anonspark.config.yaml_reading import read_document
from anonspark.errors import ConfigurationError, SparkNeededError

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
    """Read a grid file, or make the grid of a configuration. Parameters, errors: `load_grid`.

    Returns
    -------
    Grid
        Of a configuration that names input and attributes: :func:`trial_grid`.
    """
    what = "a grid or a configuration"
    document, problems = read_document(path, what, "a mapping", read, variables=True)
    if "axes" in document or "base" in document or "input" not in document:
        return load_grid(path, overrides, read)
    if problems:
        raise ConfigurationError(*problems)
    # With the places of what is wrong.
    return trial_grid(document, load_configuration(path, overrides, read), overrides, read)


def trial_grid(
    document: Mapping[str, Any],
    configuration: Configuration,
    overrides: Sequence[str] = (),
    read: TextReader = read_local_text,
) -> Grid:
    """Return the models at the configuration's k, twice and five times that.

    Parameters
    ----------
    document : mapping
        A configuration.
    configuration : Configuration
        The same with the overrides, checked.
    overrides : sequence of str
        What ``--set`` was given.
    read : callable

    Returns
    -------
    Grid
        Figures go beside the configuration's output. Models that refuse the configuration are no
        cells. The trial says why.
    """
    own = configuration.model.name
    # Their rivals are what they would choose from, or need no earlier release.
    chooses = isinstance(configuration.model, AutoOptions | MappingOptions)
    names = list(MODELS) if chooses or own in MODELS else [own, *MODELS]
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
        rank_by="gcp",
        output=f"{configuration.output.path.rstrip('/')}{BESIDE}",
        trial=Trial(
            model=None if chooses else own,
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
    """Return a cell. The configuration's own model keeps its options."""
    wanted = {"privacy.k": settings["privacy.k"]}
    if settings["model.name"] != configuration.model.name:
        wanted["model"] = {"name": settings["model.name"]}
    own = [
        *written_overrides(wanted),
        f"output.path={NOWHERE!r}",
        "output.mode=error",
        "metrics={}",
    ]
    return Cell(dict(settings), parse_configuration(document, [*overrides, *own], read))
