"""The version, which the package and its files tell."""

__version__ = "0.1.0"
