#!/usr/bin/env python3
"""Forge releases by the seeds of tests/support/forgeries.py, and print what came of it."""

from __future__ import annotations

import argparse
import logging
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from forgeries import Nothing, forge, try_forgery
from sound_releases import ALL_MODELS_AND_STYLES, catalogue

VERDICTS = (
    "refused",
    "claimed",
    "other records",
    "same values",
    "other promise",
    "accepted",
    "disagrees",
)


def main() -> int:
    """Forge, and return 1 if a forgery was accepted as proven."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=2000, help="forgeries")
    parser.add_argument("--first", type=int, default=0, help="seed of the first one")
    parser.add_argument("--kind", nargs="*", help="the only kinds of changes")
    parser.add_argument("--releases", nargs="*", type=int, default=ALL_MODELS_AND_STYLES)
    parser.add_argument("--keep", help="directory for forged releases that are accepted")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    counts: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory(prefix="forgeries-") as scratch:
        folder = Path(scratch)
        sound = catalogue(folder, arguments.releases)
        seed, tried = arguments.first, 0
        while tried < arguments.number:
            draw = random.Random(seed)  # noqa: S311
            source = draw.choice(sound)
            forged = Path(shutil.copytree(source.path, folder / "forged", symlinks=True))
            try:
                kind = draw.choice(arguments.kind) if arguments.kind else None
                forgery = forge(draw, forged, kind)
                outcome = try_forgery(forgery, forged, source.original)
                tried += 1
                counts.setdefault(forgery.kind, Counter())[outcome.verdict] += 1
                if not outcome.agrees:
                    counts["check_release.py"] = counts.get("check_release.py", Counter())
                    counts["check_release.py"]["disagrees"] += 1
                    reason = f"{outcome.verdict}: {outcome.reason[:200]}; {outcome.stranger}"
                    print(f"{seed}: {source.title}: {forgery}: {reason}", flush=True)
                if outcome.verdict == "accepted":
                    print(f"{seed}: {source.title}: {forgery}", flush=True)
                    if arguments.keep:
                        shutil.copytree(forged, Path(arguments.keep) / str(seed), symlinks=True)
            except Nothing:
                pass
            except Exception as error:  # noqa: BLE001 - nothing that verify ends with is fine
                tried += 1
                counts.setdefault("error", Counter())["accepted"] += 1
                print(f"{seed}: {source.title}: {type(error).__name__}: {error}", flush=True)
            shutil.rmtree(forged)
            seed += 1
    total: Counter[str] = sum(counts.values(), Counter())
    for kind, by_verdict in [*sorted(counts.items()), ("all", total)]:
        print(f"{kind:20}", *(f"{by_verdict[verdict]:6} {verdict}" for verdict in VERDICTS))
    return 1 if total["accepted"] or total["disagrees"] else 0


if __name__ == "__main__":
    sys.exit(main())
