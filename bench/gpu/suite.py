"""Runs the test cases of a pattern."""
# After a device error, every later case of the same process fails, too. So if a case fails, this case and all later
# cases are tried again, each in a process of its own.
# usage: suite.py LIMIT PROGRAM PATTERN; LIMIT: seconds for all cases together

import concurrent.futures
import contextlib
import re
import subprocess
import sys
import time

import text

LISTING_SECONDS, ALONE_SECONDS, AT_ONCE = 20, 30, 4  # for the cases that are tried again
TIMED_OUT = (124, 137, -9)                               # statuses of the program `timeout` at its limit


def run(command):
    """Runs a command and shows its output as it comes. Returns (status, output)."""
    printed = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                          errors="replace") as child:
        for line in child.stdout:
            print(line, end="", flush=True)
            printed.append(line)
    return child.returncode, "".join(printed)


def listed(program, pattern):
    """The names of the cases, as Catch2 lists them (version 2 or 3); none if the program hangs."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        for flags in (["--list-test-names-only"], ["--list-tests", "--verbosity", "quiet"]):
            done = subprocess.run([program, "-#", pattern, *flags], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  encoding="utf-8", errors="replace", timeout=LISTING_SECONDS, check=False)
            names = [line.strip() for line in done.stdout.splitlines() if line.strip()]
            if names and "unrecognised" not in done.stdout.lower():
                return names
    return []


def from_the_failing_one(names, printed):
    """The cases that had not ended when the first check failed."""
    until = re.split(r"^\S+:\d+: FAILED", printed, maxsplit=1, flags=re.MULTILINE)[0]
    ended = set(re.findall(r"^\d+\.\d+ s: (.*)$", until, re.MULTILINE))
    return [name for name in names if name not in ended]


def alone(program, names):
    """Tries each case in a process of its own. Returns a line with the number of failures, and a line for each."""
    deadline, bad, untried = time.monotonic() + ALONE_SECONDS, [], []

    def attempt(name):
        left = deadline - time.monotonic()
        if left < 0.5:
            return untried.append(name)
        try:
            done = subprocess.run([program, re.sub(r"([\\,\[])", r"\\\1", name)], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=left, check=False)
            if done.returncode != 0:
                said = text.first_error(done.stdout.decode(errors="replace"))
                bad.append(f"{name}: {text.ended(done.returncode)}: {said}")
        except subprocess.TimeoutExpired:
            bad.append(f"{name}: it had not ended after {left:.0f} s")

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(attempt, names))
    more = f"; {len(untried)} were not tried in {ALONE_SECONDS} s" if untried else ""
    return f"{len(bad)} of {len(names) - len(untried)} cases fail alone{more}" + "".join("\n  " + line for line in bad)


def main(limit, program, pattern):
    status, printed = run(["timeout", "--foreground", "-k", "2", limit, program, "-d", "yes", "-#", pattern])
    if status != 0 and "No tests ran" not in printed:
        left, said = from_the_failing_one(listed(program, pattern), printed), text.first_error(printed)
        how = f"not ended after {limit} s, in '{(left or '?')[0]}'" if status in TIMED_OUT else text.ended(status)
        said = "" if status in TIMED_OUT and "SIGTERM" in said else said  # a SIGTERM of timeout itself
        print(f"\nsuite: {how}, {alone(program, left) if left else 'no case listed to try alone'}\n{said}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
