"""Entry of ``spark-submit jobs/verify.py PUBLISHED [--original PATH] [--config CONFIG]``."""

from __future__ import annotations

import sys

from anonspark.cli.application import main

if __name__ == "__main__":
    sys.exit(main(["verify", *sys.argv[1:]]))
