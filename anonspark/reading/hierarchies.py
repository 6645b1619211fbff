"""Read hierarchies from files, and check whether a release was made with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.core.labels import MISSING, hierarchy_label
from anonspark.engine.files import Files
from anonspark.engine.hierarchies import read_hierarchy_files
from anonspark.errors import DataError
from anonspark.release.regions import Leaves, leaves_by_label

OPTION = "--hierarchy {}"
"""The option for the file of an attribute on the command line."""

ARGUMENT = "hierarchies.{}"
"""The argument for it in Python."""

# A record that no round found a class for has this label, whatever the hierarchy's root is.
_SUPPRESSED = "*"


@dataclass(frozen=True)
class GivenHierarchy:
    """The hierarchy of one attribute from a file.

    Parameters
    ----------
    key : str
        What named the file, for messages.
    path : str
    hierarchy : Hierarchy
    """

    key: str
    path: str
    hierarchy: Hierarchy

    def leaves(self) -> Leaves:
        """Return what each label stands for."""
        return leaves_by_label(self.hierarchy)

    def labels(self) -> set[str]:
        """Return everything that may be published for a value or group of any level."""
        return {
            hierarchy_label(label, with_missing=with_missing)
            for label in leaves_by_label(self.hierarchy)
            for with_missing in (False, True)
        } | {_SUPPRESSED}

    def require_labels(self, published: Collection[str], expected: Collection[str]) -> None:
        """Check that labels of a release are among those that the file can have made.

        Parameters
        ----------
        published : collection of str
            Different labels of the attribute.
        expected : collection of str
            Those of the file. What is missing need not be one of them.

        Raises
        ------
        DataError
            If some are not.
        """
        lacking = set(published) - {*expected, MISSING}
        if lacking:
            raise self.refused(
                f"{len(lacking):,} of the release's {len(published):,} labels are not in it"
            )

    def refused(self, what: str) -> DataError:
        """Return the error that the release was made with another file."""
        return DataError(
            f"{self.key}: {self.path} is not the file that the release was made with: {what}. "
            "Name the one that was used"
        )


def read_given(files: Files, paths: Mapping[str, str], key: str) -> dict[str, GivenHierarchy]:
    """Read the files of hierarchies.

    Parameters
    ----------
    files : Files
    paths : mapping of str to str
        By attribute.
    key : str
        :data:`OPTION` or :data:`ARGUMENT`.

    Raises
    ------
    ConfigurationError
        If some cannot be read.
    """
    keys = {name: key.format(name) for name in paths}
    trees = read_hierarchy_files(files, paths, keys=keys)
    return {name: GivenHierarchy(keys[name], paths[name], tree) for name, tree in trees.items()}
