#!/usr/bin/env bash
# Kernels built with AddressSanitizer and UndefinedBehaviorSanitizer: without Python, then under the test suite, in an
# environment of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
make -C tests/native run BUILD=../../build/native-sanitize \
  CXXFLAGS="-O0 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined"

venv=.venv-sanitize
[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
extra() { "$venv/bin/python" -c 'import sys, tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"][sys.argv[1]])' "$1"; }
"$venv/bin/pip" install -q --disable-pip-version-check $(extra test) numpy scipy scikit-learn narwhals
"$venv/bin/pip" install -q --disable-pip-version-check --force-reinstall --no-deps \
  -Ccmake.define.EVERYTREE_SANITIZE=ON -Cbuild-dir=build/sanitize .

cxx=${CXX:-c++}
# The interpreter itself is not instrumented: the runtimes come first, and its own leaks at exit are not ours.
LD_PRELOAD="$($cxx -print-file-name=libasan.so) $($cxx -print-file-name=libubsan.so) $($cxx -print-file-name=libstdc++.so)" \
ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
  "$venv/bin/python" -m pytest -q -p no:cacheprovider -m "not slow" "$@"
