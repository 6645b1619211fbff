"""Measure what a release is worth: answers to queries, and models trained on it.

Measured from the published files, the manifest and the original, not from what anonymized it.
"""
