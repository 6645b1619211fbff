"""Spread work over tasks and access files, on Spark or in this process.

- ``protocol`` defines an engine: a few verbs over tables of Arrow batches.
- ``tasks`` lets functions in tasks know where they run.
- ``spark`` and ``local`` implement the verbs. No room but ``spark`` imports pyspark.

Layers, models and verification are functions over batches and arrays. They get tables, and never
ask which engine these belong to.
"""
