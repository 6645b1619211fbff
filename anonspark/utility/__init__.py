"""What a release is worth to somebody who works with it: answers to queries, models trained on it.

Measured from the published files, the manifest and the original, not from what anonymized it.
"""
