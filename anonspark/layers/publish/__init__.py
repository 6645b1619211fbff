"""Layer 6: stage the release, and publish all of it with one rename.

In between, :mod:`anonspark.verification` verifies its files.

- ``paths`` refuses output paths that endanger the input, and directories that hold more than a
  release.
- ``staging`` is the private directory, ``run_state`` what a resumed run finds in it.
- ``file_assignment`` and ``writing`` write the published records, ``class_table`` the classes, and
  ``tables`` the metrics.
- ``committing`` publishes the release.
- ``history`` appends to the tables of all runs, whose paths ``paths`` checks.
"""
