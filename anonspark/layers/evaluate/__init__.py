"""Layer 4: the figures of loss, per round, per class and per attribute.

- ``metrics`` sums what the tasks measured, and lists the recodings above the chosen one.
- ``gates`` compares figures with their bounds, and with the last run.
- ``small_counts`` decides which counts may not be published.
"""
