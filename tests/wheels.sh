#!/usr/bin/env bash
# The source distribution and a wheel for each Python found here, in dist/; each wheel is installed into an environment
# of its own and tested there. PYTHONS="python3.12 python3.14t" names the interpreters instead.
set -euo pipefail
cd "$(dirname "$0")/.."

# One interpreter for each version and kind (with and without the GIL) on the path and among those of pyenv.
find_pythons() {
  local candidate tag seen=" "
  for candidate in python3.{11..14} python3.{13,14}t "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python; do
    tag=$("$candidate" -c 'import sys, venv, ensurepip; assert sys.version_info >= (3, 11); print(sys.version_info[:2], sys.abiflags)' 2>/dev/null) || continue
    [[ "$seen" == *"|$tag|"* ]] && continue
    seen+="|$tag|"
    echo "$candidate"
  done
}

tests=(tests/trees tests/posterior/test_laws.py tests/posterior/test_threads.py tests/estimators/test_shared_models.py)
read -ra pythons <<<"${PYTHONS:-$(find_pythons | tr '\n' ' ')}"
[[ ${#pythons[@]} -gt 0 ]] || { echo "no Python 3.11 or newer was found; name one: PYTHONS=/path/to/python $0"; exit 1; }
mkdir -p dist
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${pythons[0]}" -m venv "$work/build"
"$work/build/bin/pip" install -q --disable-pip-version-check build
echo "source distribution"
"$work/build/bin/python" -m build -q --sdist --outdir dist .

for python in "${pythons[@]}"; do
  name=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2] + sys.abiflags)')
  echo "Python $name: compiling the kernels"
  began=$SECONDS
  venv="$work/$name"
  "$python" -m venv "$venv"
  rm -rf "$work/wheel"
  "$venv/bin/pip" wheel -q --disable-pip-version-check --no-deps --wheel-dir "$work/wheel" .
  echo "Python $name: $(basename "$work"/wheel/*.whl) after $((SECONDS - began)) s; testing it"
  "$venv/bin/pip" install -q --disable-pip-version-check "$work"/wheel/*.whl "pytest>=8" "hypothesis>=6.100" "mpmath>=1.3"
  "$venv/bin/python" -m pytest -q -p no:cacheprovider -m "not slow" "${tests[@]}"
  cp "$work"/wheel/*.whl dist/
done
