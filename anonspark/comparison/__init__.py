"""Comparison: many settings on one input that is read and prepared once, and what each lost.

:func:`~anonspark.comparison.grid.load_grid` reads what is to be compared,
:func:`~anonspark.comparison.runner.compare` runs what is missing of it.
"""
