"""A release read back: its manifest, its labels and the regions that they cover.

- ``layout`` tells what may lie in a release.
- ``manifest`` writes and reads the manifest, ``manifest_form`` tells what has to be in it.
- ``originals`` opens the tables that a release is compared with, ``formats`` their formats.
- ``published`` and ``regions`` read labels, ``inference`` tells how those of other tools are to be
  read, and ``region_matching`` brings raw records and regions together.
"""
