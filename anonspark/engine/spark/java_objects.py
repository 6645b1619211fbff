"""Access Java's classes by their names, and the elements of its collections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def java_class(session: SparkSession, name: str) -> Any:
    """Return a class of Java by its full name, with ``$`` before a nested one.

    The session is a classic one. ``session._jvm.org.apache...`` would look each part up as a class
    in every jar of Spark, which takes some milliseconds for each.
    """
    return getattr(session._jvm, name)


def elements_of(collection: Any) -> list[Any]:
    """Return the elements of a ``java.util.Collection``.

    Python's loop would end with an exception of Java, for which pyspark calls Java fifty times.
    """
    return list(collection.toArray())


def sequence_of(session: SparkSession, array: Any) -> Any:
    """Return an array of Java as a sequence of Scala."""
    return java_class(session, "scala.Predef").genericWrapArray(array)


def elements_of_scala(sequence: Any) -> list[Any]:
    """Return the elements of a sequence of Scala."""
    return [sequence.apply(index) for index in range(sequence.size())]


def texts_of(sequence: Any) -> list[str]:
    """Return the elements of a Scala sequence as texts, in one call of Java.

    A call for each element takes a millisecond, and tables have 100,000 files. NUL separates the
    texts, as no path has it.
    """
    return str(sequence.mkString("\0")).split("\0") if sequence.nonEmpty() else []
