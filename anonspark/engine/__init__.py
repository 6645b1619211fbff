"""Spread work over tasks and access files, on Spark or in this process.

- ``protocol`` says what an engine offers: a few verbs over tables of Arrow batches.
- ``tasks`` is what functions that run in tasks may know of where they are.
- ``spark`` implements the verbs. No other room imports pyspark.

Layers, models and what proves a release are functions over batches and arrays. They are handed
tables, and never ask what engine these are of.
"""
