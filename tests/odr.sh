#!/usr/bin/env bash
# The one definition rule: all translation units are linked with -flto, which compares types of one name between them.
set -euo pipefail
cd "$(dirname "$0")/.."
cxx=${CXX:-g++}
mkdir -p build/odr
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Two units that break the rule must be refused, or nothing is checked here.
for field in int double; do
  echo "#include <vector>
    namespace wrong { struct Same { $field value; }; }
    void use_$field(std::vector<wrong::Same>& all) { all.push_back({1}); }" > "$scratch/$field.cpp"
  $cxx -std=c++20 -O0 -flto -fPIC -c "$scratch/$field.cpp" -o "$scratch/$field.o"
done
if $cxx -O0 -flto -shared -Werror=odr "$scratch"/*.o -o "$scratch/both.so" 2> "$scratch/said"; then
  echo "$cxx does not report types that differ between translation units; set CXX to GCC" >&2
  exit 1
fi
grep -q "error=odr" "$scratch/said"

CXX=$cxx "${PYTHON:-python3}" -m pip wheel -q --disable-pip-version-check --no-deps -w "$scratch" \
  -Ccmake.define.EVERYTREE_ODR=ON -Cbuild-dir=build/odr .
echo "no type differs between translation units"
