#!/usr/bin/env python3
"""Runs the commands that docs/performance.md names and puts their output into it.

usage: write_performance.py [PART OF A COMMAND]...    by default all of them

A block of the document that is measured looks like this; what stands between the fences is replaced:

    <!-- output of: build/release/bin/gemm_bench -->
    ```
    ...
    ```
"""
import os
import re
import subprocess
import sys

DOCUMENT = "docs/performance.md"
BLOCK = re.compile(r"(<!-- output of: (.+?) -->\n```\n)(.*?)(```\n)", re.S)


def measure(match):
    command = match.group(2)
    if len(sys.argv) > 1 and not any(part in command for part in sys.argv[1:]):
        return match.group(0)
    print(f"running {command}", file=sys.stderr, flush=True)
    done = subprocess.run(command.split(), stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"write_performance.py: '{command}' failed with exit code {done.returncode}; {DOCUMENT} is unchanged.")
    return match.group(1) + done.stdout.rstrip() + "\n" + match.group(4)


def machine():
    model, cores = "unknown", os.cpu_count()
    with open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
    return f"{model}, {cores} cores"


def main():
    with open(DOCUMENT) as file:
        text = file.read()
    text = BLOCK.sub(measure, text)
    text = re.sub(r"<!-- machine -->.*\n", f"<!-- machine -->{machine()}\n", text)
    with open(DOCUMENT, "w") as file:
        file.write(text)


main()
