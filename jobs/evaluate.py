"""Entry of ``spark-submit jobs/evaluate.py RELEASE --original PATH [--target COLUMN]``."""

from __future__ import annotations

import sys

from anonspark.cli.application import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", *sys.argv[1:]]))
