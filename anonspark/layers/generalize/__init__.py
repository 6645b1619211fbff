"""Layer 5: generalize the values of each class.

- ``classes`` turns the codes of finished classes into published columns and loss figures.
- ``figures`` packs the figures of classes.
- ``full_domain`` does the same for classes of full-domain recoding.
- ``published`` writes a release as the published records alone would have made it.
"""
