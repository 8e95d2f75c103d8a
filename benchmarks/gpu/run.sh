#!/usr/bin/env bash
# Runs a packed program (pack.sh), or any command in the environment they need, on a machine with an NVIDIA GPU:
#   benchmarks/gpu/run.sh gpu_bench matmul
#   benchmarks/gpu/run.sh python3 benchmarks/gpu/models.py --peer FOLDER
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../build/gpu" && pwd)
export LD_LIBRARY_PATH="$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
if [[ -z ${VK_DRIVER_FILES:-} ]]; then
  export VK_DRIVER_FILES="$here/nvidia_icd.json" VK_ICD_FILENAMES="$here/nvidia_icd.json"
fi
program=$1
shift
[[ -x $here/$program ]] && program=$here/$program
exec "$program" "$@"
