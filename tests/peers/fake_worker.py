"""Speaks the protocols of the peers' workers without computing anything: usage:
fake_worker.py SECONDS [die|refuse|unsupported|hang]
Every pass of a layer takes SECONDS, too; there is no variant `winograd`. The peak of memory is 1000 bytes for each
command that came before. Who hangs says so on standard error, answers after a minute, and as a script that is
interrupted would end: loudly."""

import json
import sys
import time

seconds, fault = float(sys.argv[1]), sys.argv[2:]
print(json.dumps({"torch": "0.0"}), flush=True)
for commands, line in enumerate(sys.stdin):
    if fault == ["die"]:
        sys.exit(3)
    if fault == ["refuse"]:
        print(json.dumps({"error": "no layout 'nhwc'"}), flush=True)
        continue
    if fault == ["hang"]:
        print("hanging", file=sys.stderr, flush=True)
        time.sleep(60)
    answer = {"forward": seconds, "forward_cpu": 0, "backward": 2 * seconds, "backward_cpu": 0}
    answer |= dict.fromkeys(("backward_params", "backward_data"), seconds)
    answer |= dict.fromkeys(("backward_params_cpu", "backward_data_cpu"), 0)
    if line.startswith("drop"):
        answer = {}
    elif line.startswith("memory") and fault == ["unsupported"]:
        answer = {"unsupported": "no such file"}
    elif line.startswith("memory"):
        answer = {"peak_bytes": 1000 * commands, "plan_bytes": 7}
    elif line.startswith("open"):
        answer = {"unsupported": "none such"} if "winograd" in line else {"implementation": "fake"}
    print(json.dumps(answer), flush=True)
