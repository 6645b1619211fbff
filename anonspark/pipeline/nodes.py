"""The levels that a run by full-domain recoding would choose, and those it would look at."""

from __future__ import annotations

import uuid

from anonspark.config import Configuration
from anonspark.config.models import FullDomainOptions
from anonspark.engine.protocol import Engine
from anonspark.errors import ConfigurationError
from anonspark.layers.partition.lattice.watching import LookedAt
from anonspark.layers.prepare.snapshot import require_criteria
from anonspark.layers.publish.staging import open_staging
from anonspark.models.full_domain import FullDomain
from anonspark.models.model import Round
from anonspark.pipeline.preparing import prepare
from anonspark.pipeline.tasks import generalizer_of, task_of
from anonspark.progress import Progress


def require_lattice(configuration: Configuration) -> FullDomainOptions:
    """Return the options of a model that searches a lattice.

    Raises
    ------
    ConfigurationError
        If the model is another one.
    """
    options = configuration.model
    if not isinstance(options, FullDomainOptions):
        raise ConfigurationError(
            f"--nodes: model.name is {options.name}, which searches no lattice; expected "
            "full-domain or rho-gain; leave --nodes out, or choose one of them"
        )
    return options


def look_at_nodes(
    engine: Engine, configuration: Configuration, progress: Progress
) -> list[LookedAt]:
    """Tell of the nodes that the first round of a run would look at; nothing is anonymized.

    Parameters
    ----------
    engine : Engine
    configuration : Configuration
    progress : Progress

    Returns
    -------
    list of LookedAt
        See :meth:`anonspark.models.full_domain.FullDomain.look`. They are for whoever has the
        input: no release may tell them.

    Raises
    ------
    ConfigurationError, DataError, GuaranteeError, PublishingError
        If the input or the criteria cannot be used, or the model searches no lattice.

    Notes
    -----
    One pass over the input, which is staged as in a run, beside the output or at
    ``execution.staging_path``; then what the search costs. The staging is removed at the end.
    """
    options = require_lattice(configuration)
    run_id = uuid.uuid4().hex[:12]
    staging_path = configuration.execution.staging_path
    opening = open_staging(
        engine.files, configuration.output.path, run_id, staging_path=staging_path
    )
    with opening as staging, engine.running(run_id, progress):
        with progress.stage("prepare"):
            snapshot = prepare(engine, configuration, staging.records)
            with engine.reading(configuration.input.paths):
                snapshot = require_criteria(snapshot, configuration)
        generalizer = generalizer_of(configuration, snapshot.quasi_identifiers)
        model = FullDomain(options, task_of(configuration, generalizer, snapshot.criteria))
        with progress.stage("look at nodes", rows=snapshot.rows):
            table = Round(
                snapshot.records, snapshot.rows, 1, last=model.rounds == 1, tell=progress.tell
            )
            return model.look(table)
