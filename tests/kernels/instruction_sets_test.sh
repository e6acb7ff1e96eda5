#!/bin/bash
# instruction_sets_test.sh LIBRARY: objects that are compiled for more than the baseline (vector_*_256, vector_*_512) define
# only functions that carry their lane count in their name, and no initialiser that would run before the CPU is asked. Else
# the linker could hand code with AVX to a CPU without it.
set -euo pipefail

nm --demangle --print-file-name "$1" | grep -E 'vector_(exact|transform)_(256|512)\.' > symbols.txt
functions=$(grep -cE ' [TtWVuBb] .*<(8|16)[,>]' symbols.txt || true)
others=$(grep -E ' [TtWVuBb] ' symbols.txt | grep -vE '<(8|16)[,>]' || true)
if [[ $functions -lt 10 ]]; then
  echo "found only $functions functions: is $1 the right library?"
  exit 1
fi
if [[ -n $others ]]; then
  echo "not bound to an instruction set:"
  echo "$others"
  exit 1
fi
echo "$functions functions, all bound to an instruction set"
