#!/bin/bash
# lamina_bench with the cuBLAS that run-all found, which is not for the PyTorch that it is raced against.
[ -z "${LAMINA_LIBRARY_PATH-}" ] || export LD_LIBRARY_PATH=$LAMINA_LIBRARY_PATH
exec "${BASH_SOURCE[0]%/*}/lamina_bench" "$@"
