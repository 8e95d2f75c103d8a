"""docs/onnx.md: which ONNX ops rlx reads, from which opsets, and with which element types ONNX's own cases pass.

usage: write_docs.py RLX [--check]      --check compares instead of writing
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys

import onnx
from onnx import TensorProto, defs

from node_cases import DATA, run

DEVICES = ["cpu"]
TARGET = pathlib.Path(__file__).parents[2] / "docs" / "onnx.md"


def element_types(rlx, device):
    """{(domain, op): types of the first operand in the passing cases of one node}."""
    passed = {c["name"] for c in run(rlx, DATA / "node", device)["cases"] if c["result"] == "passed"}
    types = collections.defaultdict(set)
    for name in passed:
        graph = onnx.load(DATA / "node" / name / "model.onnx").graph
        if len(graph.node) != 1 or not graph.input:
            continue
        first = graph.input[0].type
        if first.HasField("tensor_type"):
            node = graph.node[0]
            types[node.domain or "ai.onnx", node.op_type].add(TensorProto.DataType.Name(first.tensor_type.elem_type).lower())
    return types


def opsets(domain, op, since):
    """The opsets in which ONNX changed the op, those before the first builder left out."""
    versions = sorted({s.since_version for s in defs.get_all_schemas_with_history() if s.name == op and (s.domain or "ai.onnx") == domain})
    return ", ".join(str(v) for v in versions if v >= min(since)) or ", ".join(str(v) for v in since)


def text(rlx):
    ops = json.loads(subprocess.run([rlx, "ops", "--onnx", "--json"], capture_output=True, text=True, check=True).stdout)
    measured = {d: element_types(rlx, d) for d in DEVICES}
    lines = ["# ONNX ops", "",
             "Written by `tests/onnx/write_docs.py build/dev/bin/rlx`; do not edit. \"Opsets\" are those in which ONNX changed the op and that rlx reads.",
             "The types of a device are those of the first operand in the cases of the package onnx (one node each) that pass there; ops without",
             "such a case are tested in larger models. Element types that rlx lacks (strings, small floats and integers) are handled by the importer.", ""]
    for domain, rows in ops.items():
        lines += [f"## {domain}", "", "| op | opsets | " + " | ".join(DEVICES) + " |", "|---|---|" + "---|" * len(DEVICES)]
        for op, since in sorted(rows.items()):
            cells = [", ".join(sorted(measured[d].get((domain, op), []))) for d in DEVICES]
            lines.append(f"| {op} | {opsets(domain, op, since)} | " + " | ".join(cells) + " |")
        missing = sorted({s.name for s in defs.get_all_schemas() if (s.domain or "ai.onnx") == domain and not s.deprecated} - set(rows))
        if missing:
            lines += ["", f"Not read: {', '.join(missing)}."]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rlx")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    wanted = text(args.rlx)
    if not args.check:
        TARGET.write_text(wanted)
    elif not TARGET.exists() or TARGET.read_text() != wanted:
        sys.exit(f"{TARGET} is not what write_docs.py writes; run: .venv/bin/python tests/onnx/write_docs.py build/dev/bin/rlx")


if __name__ == "__main__":
    main()
