"""Ask a database of known vulnerabilities about every line of requirements.lock: ``make audit``.

Ends with 0 if none is known, 1 if some are, 2 if the question could not be answered for every
package. pip-audit itself ends with 0 where a package is unknown to the service, as all are behind
a mirror that serves files but no vulnerabilities.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

NOTHING_KNOWN, VULNERABLE, NOT_ANSWERED = 0, 1, 2


def judge(answer: str, complaint: str) -> tuple[int, list[str]]:
    """Return the exit code and the lines to print.

    Parameters
    ----------
    answer : str
        What ``pip-audit --format json`` printed; anything else where it failed.
    complaint : str
        What it printed on standard error.
    """
    try:
        dependencies: list[dict[str, Any]] = json.loads(answer)["dependencies"]
    except (ValueError, KeyError):
        last = (complaint.strip().splitlines() or ["pip-audit said nothing"])[-1]
        return NOT_ANSWERED, [f"not audited: the service could not be asked: {last}"]
    lines = [
        f"{one['name']} {one['version']}: {found['id']}, mended in "
        f"{', '.join(found['fix_versions']) or 'no version yet'}"
        for one in dependencies
        for found in one.get("vulns", [])
    ]
    unknown = [one["name"] for one in dependencies if "skip_reason" in one]
    if unknown or not dependencies:
        lines.append(
            f"not audited: the service does not know {len(unknown)} of {len(dependencies)} "
            f"packages ({', '.join(unknown[:3])} ...); use a machine that reaches pypi.org, or "
            "SERVICE=osv where api.osv.dev can be reached"
        )
    if any(one.get("vulns") for one in dependencies):
        return VULNERABLE, lines
    if unknown or not dependencies:
        return NOT_ANSWERED, lines
    return NOTHING_KNOWN, [f"{len(dependencies)} packages, no vulnerability known"]


def main(program: str, lock: str, service: str) -> int:
    """Run pip-audit and tell what it found."""
    command = [program, "--requirement", lock, "--disable-pip", "--require-hashes", "--no-deps"]
    command += ["--vulnerability-service", service, "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    code, lines = judge(done.stdout, done.stderr)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
