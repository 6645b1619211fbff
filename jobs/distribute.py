"""Entry of ``spark-submit jobs/distribute.py [ARGUMENT ...]``, as in ``anonspark distribute``."""

from __future__ import annotations

import sys

from anonspark.cli.application import main

if __name__ == "__main__":
    sys.exit(main(["distribute", *sys.argv[1:]]))
