"""The version of the package and of its files."""

__version__ = "0.1.0"
