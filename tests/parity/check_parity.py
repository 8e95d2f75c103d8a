"""Checks docs/parity.md: every test it names exists, nothing is ticked without one, nothing is missing.

usage: check_parity.py BUILD_FOLDER TEST_PROGRAM…
"""

import json
import pathlib
import re
import subprocess
import sys

DOC = pathlib.Path(__file__).parents[2] / "docs" / "parity.md"

# How many boxes each list of the specification has (00, sections 5 and 6), and defects each table (30, 22; 20, A).
BOXES = {"Device and memory": 8, "Compile": 11, "Run": 10, "Matmul variants": 6, "Steps by name": 15, "Diagnostics": 6, "Beyond the reference": 18}
DEFECTS = {"Kernels": [f"22.{i}" for i in range(1, 26)], "Passes and runtime": [f"D{i:02}" for i in range(1, 46)]}


def listed_tests(program):
    """{"Suite.Test"}; a parameter's value, which gtest writes behind a comment, is its name in ours."""
    text = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    suite, tests = "", set()
    for line in text.splitlines():
        name = line.split("#")[0].rstrip()
        if not name.startswith(" "):
            suite = name
        elif name:
            tests.add(suite + name.strip())
    return tests


def ctest_names(build):
    text = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, capture_output=True, text=True, check=True).stdout
    return {t["name"] for t in json.loads(text)["tests"]}


def references(text):
    """(program, test) of every `program: test` in code quotes."""
    return re.findall(r"`([a-z_]+): ([^`]+)`", text)


def main():
    known = {pathlib.Path(p).name: listed_tests(p) for p in sys.argv[2:]}
    known["ctest"] = ctest_names(sys.argv[1])
    wrong, section = [], ""
    boxes, defects = {}, {}
    for number, line in enumerate(DOC.read_text().splitlines(), 1):
        where = f"docs/parity.md:{number}"
        if line.startswith("#"):
            section = line.lstrip("# ")
        for program, test in references(line):
            if program not in known:
                wrong.append(f"{where}: there is no test program {program}")
            elif test not in known[program]:
                wrong.append(f"{where}: {program} has no test {test}")
        box = re.match(r"- \[([ x])\] (.+)", line)
        row = re.match(r"\| (D\d\d|22\.\d+) \|", line)
        if box:
            boxes[section] = boxes.get(section, 0) + 1
            if box[1] == "x" and not references(line):
                wrong.append(f"{where}: a ticked box names no test")
            if box[1] == " " and "open: " not in line:
                wrong.append(f"{where}: an open box has no reason")
        if row:
            defects.setdefault(section, []).append(row[1])
            if not references(line) and "open: " not in line:
                wrong.append(f"{where}: {row[1]} names no test")
    if boxes != BOXES:
        wrong.append(f"The numbers of boxes are {boxes} instead of {BOXES}.")
    if defects != DEFECTS:
        wrong.append(f"The defects are {defects} instead of {DEFECTS}.")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
