"""Layer 5: generalize the values of each class.

- ``classes`` turns the codes of finished classes into published columns and loss figures.
- ``figures`` packs the figures of classes.
- ``full_domain`` publishes classes of full-domain recoding.
- ``published`` writes a release as if the records left out had not been in the input.
"""
