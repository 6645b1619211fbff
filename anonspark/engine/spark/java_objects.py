"""Classes of Java's by their names, and what its collections hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def java_class(session: SparkSession, name: str) -> Any:
    """Return a class of Java's, to call or to ask for its static members.

    Written as ``session._jvm.org.apache...`` each part would be looked up as a class of its own, in
    every jar that Spark has: some milliseconds a part.

    Parameters
    ----------
    session : SparkSession
        A classic one.
    name : str
        With all packages. Of a nested class with ``$``.
    """
    return getattr(session._jvm, name)


def elements_of(collection: Any) -> list[Any]:
    """Return what a collection of Java's holds.

    Python's own loop ends with an exception of Java's, about which pyspark asks fifty questions.

    Parameters
    ----------
    collection : py4j.java_gateway.JavaObject
        A ``java.util.Collection``.
    """
    return list(collection.toArray())
