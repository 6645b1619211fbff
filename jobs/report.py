"""Entry of ``spark-submit jobs/report.py OUTPUT [--original PATH] [--out FILE]``."""

from __future__ import annotations

import sys

from anonspark.cli.application import main

if __name__ == "__main__":
    sys.exit(main(["report", *sys.argv[1:]]))
