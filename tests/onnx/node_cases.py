"""ONNX's own test cases (of the package onnx) through `rlx test-onnx`, against the list of those that rlx does not run.

usage: node_cases.py RLX [--device NAME] [--write]      --write drafts the list from what fails
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

HERE = pathlib.Path(__file__).parent
DATA = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"
GROUPS = ["node", "simple", "pytorch-operator", "pytorch-converted"]


def read_list(path):
    """{case: reason}; a line is a case's name, two spaces or more, and the reason."""
    listed = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, reason = line.partition("  ")
            assert reason.strip(), f"{path}: '{name}' has no reason."
            listed[name] = reason.strip()
    return listed


def write_light_cases(folder):
    """The light models have outputs beside them for inputs that ONNX's runner makes: 0, 1/n, 2/n, …"""
    for path in sorted((DATA / "light").glob("*.onnx")):
        model = onnx.load(path)
        case = folder / path.stem
        data = case / "test_data_set_0"
        data.mkdir(parents=True)
        (case / "model.onnx").symlink_to(path)
        initializers = {t.name for t in model.graph.initializer}
        inputs = [i for i in model.graph.input if i.name not in initializers]
        for k, value in enumerate(inputs):
            shape = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
            count = int(np.prod(shape))
            array = (np.arange(count).reshape(shape) / count).astype(np.float32)
            (data / f"input_{k}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
        for k in range(len(model.graph.output)):
            stored = path.with_name(f"{path.stem}_output_{k}.pb")
            if stored.exists():
                (data / f"output_{k}.pb").write_bytes(stored.read_bytes())


def run(rlx, folder, device):
    command = [rlx, "test-onnx", str(folder), "--json", "--device", device]
    result = subprocess.run(command, capture_output=True, text=True)
    if not result.stdout:
        sys.exit(f"{' '.join(command)} failed: {result.stderr}")
    return json.loads(result.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rlx")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    list_path = HERE / "unsupported.txt"
    listed = read_list(list_path) if list_path.exists() else {}
    own_list = HERE / f"unsupported_{args.device}.txt"
    listed |= read_list(own_list) if own_list.exists() else {}
    wrong, failures, seen = [], {}, set()
    with tempfile.TemporaryDirectory() as temporary:
        light = pathlib.Path(temporary)
        write_light_cases(light)
        for name, folder in [(g, DATA / g) for g in GROUPS] + [("light", light)]:
            report = run(args.rlx, folder, args.device)
            print(f"{name}: {report['passed']} passed, {report['failed']} failed, {report['skipped']} skipped"
                  + (f", {report['host_steps']} steps on the host" if args.device == "webgpu" else ""))
            for case in report["cases"]:
                seen.add(case["name"])
                if case["result"] == "failed":
                    failures[case["name"]] = " ".join(case["why"].split())
                    if case["name"] not in listed:
                        wrong.append(f"{case['name']} fails and is not listed: {failures[case['name']]}")
                elif case["result"] == "passed" and case["name"] in listed:
                    wrong.append(f"{case['name']} is listed, but passes.")
    wrong += [f"{name} is listed, but there is no such case." for name in listed if name not in seen]
    if args.write:
        lines = [f"{name}  {listed.get(name, why)}" for name, why in sorted(failures.items())]
        list_path.write_text("# Cases of the package onnx that rlx does not pass, and why.\n" + "\n".join(lines) + "\n")
        return
    if wrong:
        sys.exit("\n".join(wrong) + f"\n{len(wrong)} cases differ from {list_path}.")


if __name__ == "__main__":
    main()
