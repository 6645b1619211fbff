#!/usr/bin/env bash
# One release on another Python, with the golden fingerprint: compatibility/smoke_python.sh PYTHON
#
# Makes .venv-python-VERSION with the locked packages on first use.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$1
version=$("$python" -c 'import sys; print("{}.{}".format(*sys.version_info))')
environment=.venv-python-$version
if [[ ! -e $environment/.ready || requirements.lock -nt $environment/.ready ]]; then
  "$python" -m venv "$environment"
  "$environment/bin/python" -m pip install --quiet --no-deps --require-hashes -r requirements.lock
  "$environment/bin/python" -m pip install --quiet --no-deps --editable .
  touch "$environment/.ready"
fi
exec "$environment/bin/python" -m pytest --basetemp "$environment/temporary" tests/systems/test_spark_versions.py
