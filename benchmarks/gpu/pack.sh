#!/usr/bin/env bash
# Collects what a machine with a GPU but without a Vulkan loader needs to run rlx, in build/gpu (ignored by git): the
# programs, the libraries they load, wgpu-native, Debian's Vulkan loader and an ICD file for NVIDIA's driver. Copy or carry the
# folder there and start programs with run.sh, or all tests with test.sh.
#   benchmarks/gpu/pack.sh [BUILD]        BUILD: build/release (default) or another build folder; of one with tests, such
#                                         as build/ci, these and no benchmarks, since some machines take 64 MiB
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${1:-build/release}
out=build/gpu
rm -rf "$out"
mkdir -p "$out"
if [[ -d $build/tests ]]; then
  ctest --test-dir "$build" -R '^tiny_models$' --output-on-failure >&2  # they are read by decoder_tests
  programs=(bin/gpu_large tests/ops/op_tests tests/webgpu/webgpu_tests tests/models/decoder_tests)
else
  programs=(bin/rlx bin/gpu_bench bin/gpu_large)
fi
for program in "${programs[@]/#/$build/}"; do
  strip -o "$out/$(basename "$program")" "$program"
  # Libraries that a bare machine may lack; the C and C++ run-time libraries are everywhere.
  ldd "$program" | awk '/=> \// {print $3}' | grep -Ev '/(libc|libm|libstdc\+\+|libgcc_s|libpthread|libdl|ld-linux[^/]*)\.so' |
    xargs -r -I{} cp -nL {} "$out/"
done
cp -L .venv/lib/python3*/site-packages/wgpu/resources/libwgpu_native-release.so "$out/"
cp -L /usr/lib/x86_64-linux-gnu/libvulkan.so.1 "$out/"
if [[ -d $build/tests ]]; then
  # Test programs are large, and look for files in the checkout and the build folder they were made in: test.sh unpacks all of it.
  echo "$PWD" >"$out/checkout"
  tar -czf "$out/built.tar.gz" "${programs[@]/#*\//$out/}" "$build"/tests/webgpu/lib*_webgpu.so "$build/tests/models/tiny"
  rm "${programs[@]/#*\//$out/}"
fi
cat >"$out/nvidia_icd.json" <<'JSON'
{"file_format_version": "1.0.1", "ICD": {"library_path": "libEGL_nvidia.so.0", "api_version": "1.4.312"}}
JSON
du -sh "$out"
