"""Layer 1: read the input once, check it, and describe how its quasi-identifiers become numbers.

- :mod:`~anonspark.prepare.reading` opens the input and finds each attribute's column.
- :mod:`~anonspark.prepare.hierarchies` reads the hierarchies and matches them with the values.
- :mod:`~anonspark.prepare.inspection` counts, in one pass, what can be wrong with the values.
- :mod:`~anonspark.prepare.snapshot` stages the records that every later layer works on.
- :mod:`~anonspark.prepare.encoding` maps values to order-preserving 64-bit codes, without Spark.
"""
