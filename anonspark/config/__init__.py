"""The configuration: one YAML file, checked as a whole before any data is touched.

:func:`load_configuration` reads the file, applies the overrides of the command line and either
returns a complete :class:`Configuration` or raises one
:class:`~anonspark.errors.ConfigurationError` with everything that is wrong.
:func:`parse_configuration` does the same for a mapping in memory, and :func:`json_schema` describes
the file for editors.
"""

from anonspark.config.attributes import Attribute, HierarchyRule
from anonspark.config.configuration import Configuration
from anonspark.config.gates import EvaluateOptions
from anonspark.config.input import InputOptions
from anonspark.config.json_schema import json_schema
from anonspark.config.loading import load_configuration, parse_configuration
from anonspark.config.output import ExecutionOptions, OutputOptions
from anonspark.config.privacy import PrivacyOptions

__all__ = [
    "Attribute",
    "Configuration",
    "EvaluateOptions",
    "ExecutionOptions",
    "HierarchyRule",
    "InputOptions",
    "OutputOptions",
    "PrivacyOptions",
    "json_schema",
    "load_configuration",
    "parse_configuration",
]
