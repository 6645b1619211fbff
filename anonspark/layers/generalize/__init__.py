"""Layer 5: what is published of a class.

- ``classes`` turns the codes of finished classes into published columns and loss figures.
- ``figures`` packs the figures of classes.
- ``full_domain`` does the same for classes of full-domain recoding.
- ``published`` writes a release as the published records alone would have made it.
"""
