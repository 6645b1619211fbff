"""Entry of ``spark-submit jobs/clean.py CONFIG [--run-id ID]``."""

from __future__ import annotations

import sys

from anonspark.cli.application import main

if __name__ == "__main__":
    sys.exit(main(["clean", *sys.argv[1:]]))
