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


def sequence_of(session: SparkSession, array: Any) -> Any:
    """Return an array of Java's as a sequence of Scala's."""
    return java_class(session, "scala.Predef").genericWrapArray(array)


def elements_of_scala(sequence: Any) -> list[Any]:
    """Return the elements of a sequence of Scala's."""
    return [sequence.apply(index) for index in range(sequence.size())]


def texts_of(sequence: Any) -> list[str]:
    """Return what the elements of a sequence of Scala's print, in one answer of Java's.

    A question for each element takes a millisecond, and tables have 100,000 files. No path has the
    character that parts them.
    """
    return str(sequence.mkString("\0")).split("\0") if sequence.nonEmpty() else []
