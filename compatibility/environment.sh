#!/usr/bin/env bash
# Makes .venv-python-VERSION, the locked packages on another Python: compatibility/environment.sh PYTHON
set -euo pipefail
cd "$(dirname "$0")/.."

python=$1
version=$("$python" -c 'import sys; print("{}.{}".format(*sys.version_info))')
environment=.venv-python-$version
export DIST_EXTRA_CONFIG=$PWD/tools/uncompressed_wheels.cfg
if [[ ! -e $environment/.ready || requirements.lock -nt $environment/.ready ]]; then
  "$python" -m venv "$environment"
  "$environment/bin/python" -m pip install --quiet --no-deps --require-hashes -r requirements.lock
  "$environment/bin/python" -m pip install --quiet --no-deps --editable .
  touch "$environment/.ready"
fi
echo "$environment"
