#!/usr/bin/env bash
# Runs a packed program (pack.sh) on a machine with an NVIDIA GPU:  benchmarks/gpu/run.sh gpu_bench matmul
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../build/gpu" && pwd)
export LD_LIBRARY_PATH="$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
if [[ -z ${VK_DRIVER_FILES:-} ]]; then
  export VK_DRIVER_FILES="$here/nvidia_icd.json" VK_ICD_FILENAMES="$here/nvidia_icd.json"
fi
program=$1
shift
exec "$here/$program" "$@"
