#!/usr/bin/env bash
# Collects what a machine with a GPU but without a Vulkan loader needs to run rlx, in build/gpu (ignored by git): the
# programs, the libraries they load, wgpu-native, Debian's Vulkan loader and an ICD file for NVIDIA's driver. Copy or carry the
# folder there and start programs with run.sh.
#   benchmarks/gpu/pack.sh [BUILD]        BUILD: build/release (default) or another build folder
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${1:-build/release}
out=build/gpu
rm -rf "$out"
mkdir -p "$out"
for program in "$build/bin/rlx" "$build/bin/gpu_bench" "$build/bin/gpu_large" "$build/tests/ops/op_tests" "$build/tests/webgpu/webgpu_tests"; do
  [[ -x $program ]] || continue
  strip -o "$out/$(basename "$program")" "$program"
  # Libraries that a bare machine may lack; the C and C++ run-time libraries are everywhere.
  ldd "$program" | awk '/=> \// {print $3}' | grep -Ev '/(libc|libm|libstdc\+\+|libgcc_s|libpthread|libdl|ld-linux[^/]*)\.so' |
    xargs -r -I{} cp -nL {} "$out/"
done
cp -L .venv/lib/python3*/site-packages/wgpu/resources/libwgpu_native-release.so "$out/"
cp -L /usr/lib/x86_64-linux-gnu/libvulkan.so.1 "$out/"
cp -r tests/ops/fixtures "$out/fixtures"
cat >"$out/nvidia_icd.json" <<'JSON'
{"file_format_version": "1.0.1", "ICD": {"library_path": "libEGL_nvidia.so.0", "api_version": "1.4.312"}}
JSON
du -sh "$out"
