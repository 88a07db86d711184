"""Speaks the protocols of the peers' workers without computing anything: usage:
fake_worker.py SECONDS [die|refuse|hang|die-open|unable-open|hang-open|fail-late|babble|ours|LISTINGS]
LISTINGS is a file of {network: its convolutions}. Every pass of a layer takes SECONDS, too; there is no variant
`winograd`. Its commit is called after SECONDS. The peak of memory on a GPU is 10 MiB, and of `ours` a plan of 5. Who hangs says so on standard error, answers after
a minute, and as a script that is interrupted would end: loudly. Who fails late does so at its fifth pass."""

import json
import sys
import time

seconds, fault = float(sys.argv[1]), (sys.argv[2:3] or [None])[0]
print(json.dumps({"torch": "0.0", "device": "Fake H200, of nothing", "commit": f"c{seconds}"}), flush=True)
passes = 0
for line in sys.stdin:
    opening = line.startswith("open")
    passes += line.startswith("pass")
    if fault == "die" or (fault == "die-open" and opening):
        sys.exit(3)
    if fault == "refuse" or (fault == "fail-late" and passes == 5):
        print(json.dumps({"error": "no layout 'nhwc'"}), flush=True)
        continue
    if fault == "unable-open" and opening:
        print(json.dumps({"error": "no tf32 products", "refused": True}), flush=True)
        continue
    if fault == "hang" or (fault == "hang-open" and opening):
        print("hanging", file=sys.stderr, flush=True)
        time.sleep(60)
    if fault == "babble":
        print("compiling ...", flush=True)
        continue
    answer = {"forward": seconds, "forward_cpu": seconds, "backward": 2 * seconds, "backward_cpu": 2 * seconds}
    answer |= {"inference": seconds, "inference_cpu": seconds}
    answer |= dict.fromkeys(("backward_params", "backward_data"), seconds)
    answer |= dict.fromkeys(("backward_params_cpu", "backward_data_cpu"), 0)
    if line.startswith("drop"):
        answer = {}
    elif line.startswith("check"):
        answer = {"difference": 1e-6}
    elif line.startswith("state"):
        answer = {"sm_mhz": 1980, "throttled": "power cap"}
    elif line.startswith("facts"):
        answer = {"plan_bytes": 7}
    elif opening and len(line.split()) == 3:  # of a network on a GPU
        answer = {"first_pass_seconds": 30 * seconds, "last_warm_up_seconds": seconds}
        answer |= {"plan_bytes": 5 << 20} if fault == "ours" else {"peak_bytes": 10 << 20, "compile_seconds": 29.0}
    elif opening:
        answer = {"error": "none such", "refused": True} if "winograd" in line else {"implementation": "fake"}
    elif line.startswith("list"):
        with open(fault) as file:
            answer = {"convolutions": json.load(file)[line.split()[1]]}
    print(json.dumps(answer), flush=True)
