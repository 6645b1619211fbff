"""Layer 6: write the release aside, verify its files, then publish all of it with one rename.

- :mod:`~anonspark.publish.paths` refuses output paths that endanger the input.
- :mod:`~anonspark.publish.writing` writes the published records.
- :mod:`~anonspark.publish.verification` proves k from published files alone.
- :mod:`~anonspark.publish.tables` writes the metrics tables.
- :mod:`~anonspark.publish.manifest` writes and reads the manifest.
- :mod:`~anonspark.publish.committing` makes it the release.
"""
