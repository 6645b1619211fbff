"""One module for each tool: how it is called, and how what it returned is read.

Each runs in the environment of its tool, so it takes nothing from our packages but
:mod:`peers.tool`, and imports the tool only where it is called.
"""
