"""Read a release back: its manifest, its labels and the regions that they cover.

- ``layout`` defines which files a release may have.
- ``manifest`` writes and reads the manifest, ``manifest_form`` defines its form.
- ``originals`` opens the tables that a release is compared with, ``formats`` their formats.
- ``published`` and ``regions`` read labels, ``inference`` decides how those of other tools are
  read, and ``region_matching`` brings raw records and regions together.
"""
