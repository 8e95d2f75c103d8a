#!/usr/bin/env bash
# Runs the packed tests (pack.sh build/ci, or build/dev) on a machine with a GPU: those of the WebGPU backend, of language
# models, and the op cases; every program in as many processes as there are cores, eight at the most. Prints what failed
# and the counts; then runs gpu_large.
#   benchmarks/gpu/test.sh [FILTER]        FILTER: for --gtest_filter; gpu_large is left out
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
checkout=$(cat build/gpu/checkout)
[[ -e $checkout ]] || { mkdir -p "$(dirname "$checkout")" && ln -s "$PWD" "$checkout"; }
tar -xzf build/gpu/built.tar.gz
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export GTEST_TOTAL_SHARDS=$(($(nproc) < 8 ? $(nproc) : 8))
failed=0
for program in webgpu_tests decoder_tests op_tests; do
  seconds=$SECONDS
  pids=()
  for ((i = 0; i < GTEST_TOTAL_SHARDS; ++i)); do
    GTEST_SHARD_INDEX=$i benchmarks/gpu/run.sh "$program" --gtest_brief=1 --gtest_filter="${1:-*}" >"$logs/$program.$i" 2>&1 &
    pids+=($!)
  done
  for i in "${!pids[@]}"; do
    wait "${pids[i]}" && continue
    failed=1
    cat "$logs/$program.$i"
  done
  cat "$logs/$program".* | awk -v program="$program" -v seconds=$((SECONDS - seconds)) '
    /^\[  PASSED  \]/ {passed += $4} /^\[  SKIPPED \] [0-9]+ test/ {skipped += $4} /^\[  FAILED  \] .* ms\)$/ {++failed}
    END {printf "%s: %d passed, %d failed, %d skipped (%d s)\n", program, passed, failed, skipped, seconds}'
done
if [[ -x build/gpu/gpu_large && $# == 0 ]]; then
  benchmarks/gpu/run.sh gpu_large || failed=1
fi
exit $failed
