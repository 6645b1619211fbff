"""Entry of ``spark-submit jobs/ledger.py [ARGUMENT ...]``, as in ``anonspark ledger``."""

from __future__ import annotations

import sys

from anonspark.cli.application import main

if __name__ == "__main__":
    sys.exit(main(["ledger", *sys.argv[1:]]))
