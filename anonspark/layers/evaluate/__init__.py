"""Layer 4: the figures of loss, per round, per class and per attribute.

- ``metrics`` sums up what the tasks measured.
- ``gates`` holds figures against their bounds, ``drift`` against the last run.
- ``nodes`` lists the recodings above the chosen one.
- ``withholding`` decides which figures may not be published.
"""
