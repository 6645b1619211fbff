"""Other tools that anonymize tables, run and judged beside ours: ``make peers``.

- :mod:`peers.tool` says what is known of a tool, and what it is asked to do.
- :mod:`peers.adapters` has one module for each of them: how it is called, and how what it wrote is
  read. It runs in the tool's environment, too, so it needs nothing of ours.
- :mod:`peers.environments` installs each of them into an environment of its own.
- :mod:`peers.running` runs a tool, or one of our models, over a table.
- :mod:`peers.verifying` has the published rows measured by :command:`anonspark verify`.
- :mod:`peers.cases` keeps what was measured, so that a later run fills in the rest.
- :mod:`peers.page` writes the table.

``benchmarks/side_by_side.py`` puts them together.
"""
