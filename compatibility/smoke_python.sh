#!/usr/bin/env bash
# One release on another Python, with the golden fingerprint: compatibility/smoke_python.sh PYTHON
set -euo pipefail
cd "$(dirname "$0")/.."

environment=$(compatibility/environment.sh "$1")
exec "$environment/bin/python" -m pytest --basetemp "$environment/temporary" tests/systems/test_spark_versions.py
