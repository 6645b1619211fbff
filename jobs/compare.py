"""Entry of ``spark-submit jobs/compare.py GRID [--set key.path=value ...]``."""

from __future__ import annotations

import sys

from anonspark.cli.application import main

if __name__ == "__main__":
    sys.exit(main(["compare", *sys.argv[1:]]))
