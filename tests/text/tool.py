"""Talks to text_tool, and counts what differs."""
import json
import subprocess


class Tool:
    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"The program died of {json.dumps(request)[:500]} (exit status {self.process.wait()}).")
        return json.loads(line)

    def must(self, **request):
        answer = self.ask(**request)
        if "error" in answer:
            raise SystemExit(f"{json.dumps(request)[:200]}: {answer['error']}")
        return answer


class Checks:
    def __init__(self):
        self.count, self.failed = 0, 0

    def equal(self, ours, theirs, what):
        self.count += 1
        if ours == theirs:
            return True
        self.failed += 1
        if self.failed <= 25:
            print(f"DIFFERS {what}\n  ours:   {str(ours)[:400]}\n  theirs: {str(theirs)[:400]}")
        return False

    def finish(self, what):
        print(f"{what}: {self.count} checks, {self.failed} failed")
        raise SystemExit(1 if self.failed else 0)
