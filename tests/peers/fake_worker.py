"""Speaks the protocol of a peer's worker without computing anything: usage: fake_worker.py SECONDS [die|refuse]"""

import json
import sys

seconds, fault = float(sys.argv[1]), sys.argv[2:]
print(json.dumps({"torch": "0.0"}), flush=True)
for line in sys.stdin:
    if fault == ["die"]:
        sys.exit(3)
    if fault == ["refuse"]:
        print(json.dumps({"error": "no layout 'nhwc'"}), flush=True)
        continue
    sample = {"forward": seconds, "forward_cpu": 0, "backward": 2 * seconds, "backward_cpu": 0}
    print(json.dumps({} if line.startswith("drop") else sample), flush=True)
