#!/bin/bash
# Runs lamina_bench with the cuBLAS that run-all found. In a race, PyTorch runs at the same time with another cuBLAS.
[ -z "${LAMINA_LIBRARY_PATH-}" ] || export LD_LIBRARY_PATH=$LAMINA_LIBRARY_PATH
exec "${BASH_SOURCE[0]%/*}/lamina_bench" "$@"
