"""Gives WGSL that tests have compiled with wgpu-native to Dawn's compiler, which is Chromium's and refuses more: barriers that
some threads may not reach, numbers that no float holds, operators that want parentheses. Bind groups that browsers refuse
are a fault as well.

usage: check_wgsl.py FOLDER        of what recording_library.cpp has written
"""

import os
import pathlib
import re
import sys

os.environ["WGPU_BACKEND_TYPE"] = "Null"  # compiles, runs nothing, and needs no GPU
import wgpudawn.backends.auto

# More than the op cases and the WebGPU tests make by far, if the recording is what it should be.
LEAST_MODULES = 4000


def complaint(device, code):
    """What the compiler says, or None. Devices whose library wants it put the directive of subgroups first (Device::pipeline)."""
    directive = "enable subgroups;\n" if "subgroup" in code else ""
    try:
        device.create_shader_module(code=directive + code)
    except wgpudawn.GPUValidationError as error:
        return str(error)
    return None


def main():
    if "RLX_TESTS_WITHOUT_WEBGPU" in os.environ:
        return
    files = sorted(pathlib.Path(sys.argv[1]).glob("*.wgsl"))
    if len(files) < LEAST_MODULES:
        sys.exit(f"{sys.argv[1]} has {len(files)} files of WGSL, and should have {LEAST_MODULES} at least.")
    adapter = wgpudawn.gpu.request_adapter_sync()
    device = adapter.request_device_sync(required_features=["shader-f16", "subgroups"])
    assert complaint(device, "fn f() -> u32 { return 1.5; }") is not None, "The compiler takes everything."
    refused = {}  # a kernel's name and what is wrong with it: one of its files
    for file in files:
        said = complaint(device, file.read_text())
        if said:
            first = re.sub(r":\d+:\d+ ", "", said.split("\n")[0])
            refused.setdefault((file.name.rsplit("-", 1)[0], first), f"{file}\n{said}")
    for said in refused.values():
        print(said, "\n")
    overlaps = pathlib.Path(sys.argv[1]) / "overlaps"
    if overlaps.exists():
        print("Bindings that overlap, of which one writes:", *sorted(set(overlaps.read_text().splitlines()))[:10], sep="\n")
    print(f"{len(files)} modules, {len(refused)} faults")
    sys.exit(1 if refused or overlaps.exists() else 0)


main()
