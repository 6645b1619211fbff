"""Compare many settings on one input, which is read and prepared once.

:func:`~anonspark.comparison.grid.load_grid` reads what is to be compared,
:func:`~anonspark.comparison.runner.compare` runs what is missing of it.
"""
