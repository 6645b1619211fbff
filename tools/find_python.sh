#!/usr/bin/env bash
# Prints the Python that a clone is set up with: the first one on the PATH.
# Where that was built without optimizations, as pyenv builds them unless told otherwise, it prints the
# system's of the same version, if that can make environments and build the kernels: its code is as good
# as the other's, and takes a quarter less time.
set -euo pipefail

python=$(command -v python3) || { echo python3; exit; }
system=/usr/bin/python$("$python" -c 'import sys; print("{}.{}".format(*sys.version_info))')

is_slow() {
  "$1" -c 'import sys, sysconfig; built = sysconfig.get_config_var("CONFIG_ARGS") or ""
sys.exit(sys.base_prefix == "/usr" or "--prefix" not in built or "--enable-optimizations" in built)'
}

is_complete() {
  "$1" -c 'import ensurepip, pathlib, sys, sysconfig, venv
sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())' 2> /dev/null
}

if is_slow "$python" && [[ -x $system ]] && is_complete "$system"; then
  python=$system
fi
echo "$python"
