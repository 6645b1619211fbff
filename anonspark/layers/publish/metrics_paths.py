"""Refuse unusable paths for the metrics of all runs before any work."""

from __future__ import annotations

from anonspark.config import Configuration
from anonspark.engine.files import Files
from anonspark.errors import ConfigurationError
from anonspark.layers.publish.paths import (
    require_apart_from_table,
    require_reachable,
)


def require_usable_metrics(files: Files, configuration: Configuration) -> None:
    """Check that the metrics of all runs endanger neither input nor output.

    Raises ConfigurationError if their path lies inside input or output, or one of these inside it,
    or it cannot be named.
    """
    table = configuration.metrics.append_to
    if table is not None:
        if set(table) & set("*?[]{}"):
            raise ConfigurationError(
                f"metrics.append_to: {table} holds one of the characters * ? [ ] {{ }}, which "
                "Spark would take for a pattern. Choose another path"
            )
        # Directories are made below it: it may be a link itself, but not to nothing.
        require_reachable(files, "metrics.append_to", f"{table.rstrip('/')}/summary")
        require_apart_from_table(files, configuration, "metrics.append_to", table)
