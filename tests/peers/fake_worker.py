"""A fake of the workers of a race and of its judge, which computes nothing. It plays the program that has the name of
its file: lamina_bench, onednn_worker, python or python3.

The environment variable FAKE names a JSON file with "log", the file for its start and requests; "judge", the exit
status of the judge; "convolutions" by network; and settings by worker, such as torch:tf32+compiled: "seconds" of a
pass, "cpu" seconds, "difference", "rounding", "fault" (die:open, or error:pass:3 for the third pass), "only" (the
network that has the fault). A worker that hangs says so on standard error, and answers after a minute."""

import json
import os
import sys
import time

program, words = os.path.basename(sys.argv[0]), sys.argv[1:]
with open(os.environ["FAKE"]) as file:
    told = json.load(file)


def log(*what):
    with open(told["log"], "a") as its:
        its.write(json.dumps(what) + "\n")


def who():
    """The worker's name and its network."""
    if program == "onednn_worker":
        return "onednn" + f":{words[1]}" * (words[1] != "f32"), ""
    if program == "lamina_bench":
        given = dict(word[2:].partition("=")[::2] for word in words if word.startswith("--"))
        precision = "tf32" if given.get("math") == "tf32" else given.get("dtype", "f32")
        flags = f":{precision}" * (precision != "f32") + "+graph" * ("cuda_graph" in given)
        flags += "+measured" * ("measure" in given)
        nets = [word for word in words[1:] if not word.startswith("--")]
        return given.get("backend", "writer") + flags, (nets or [given.get("training") or given.get("onnx", "")])[0]
    config = json.loads(words[1])
    engine, precision = config["engine"], config["precision"]
    scripts = ("torch_worker.py", "torch_training.py") if engine == "torch" else ("runtimes.py",)
    if os.path.basename(words[0]) not in scripts:
        sys.exit(f"{engine} is no worker of {words[0]}")
    return "+".join([engine + f":{precision}" * (precision != "f32"), *config["flags"]]), config["net"]


if words[:1] == ["-c"]:  # the version of a peer: any peer except openvino can be imported
    print("9.9")
    sys.exit("openvino" in words[1])
if words[:1] == ["compare"]:
    log("judge", words)
    print("judged")
    sys.exit(told.get("judge", 0))
name, network = who()
its = told.get(name, {})
seconds, counts = its.get("seconds", 0.125), {}
kind, place, number = (its.get("fault", "") + "::").split(":")[:3]
environment = {key: os.environ.get(key) for key in ("OMP_WAIT_POLICY", "MALLOC_TOP_PAD_", "LAMINA_BENCH")}
log(name, "start", words, environment)


def fails(command):
    """Carries out the fault, if it is for this command. Returns whether the fault has answered the command."""
    counts[command] = counts.get(command, 0) + 1
    if command != place or its.get("only", network) != network or counts[command] != int(number or counts[command]):
        return False
    if kind == "die":
        sys.exit(3)
    if kind == "hang":
        print("hanging", file=sys.stderr, flush=True)
        time.sleep(60)
        return False
    print({"babble": "compiling ...", "refuse": json.dumps({"error": "no such thing here", "refused": True}),
           "error": json.dumps({"error": "out of memory"})}[kind], flush=True)
    return True


def answer(command, line):
    if command == "pass":
        names = ("forward", "backward", "inference", "epoch", "backward_params", "backward_data")
        cpu = its.get("cpu", 2 * seconds)
        return dict.fromkeys(names, seconds) | {f"{name}_cpu": cpu for name in names} | (
            {"loss": 0.5} if line[1] == "epoch" else {})
    if command == "open" and line[2] == "winograd":
        return {"error": "oneDNN has none such", "refused": True}
    if command == "list":
        return {"convolutions": told["convolutions"][line[1]]}
    return {"check": {"difference": its.get("difference", 1e-6)}, "rounding": {"rounding": its.get("rounding", 0.0)},
            "facts": {"plan_bytes": 5 << 20, "batch": 32, "samples": 320, "data": "synthetic nothing"},
            "state": {"sm_mhz": 1980},
            "open": {"implementation": f"{name}'s", "plan_bytes": 5 << 20} if not program.startswith("python") else
                    {"peak_bytes": 10 << 20}}.get(command, {})


if not fails("greeting"):
    print(json.dumps({"device": "Fake H200, of nothing", "commit": f"c{seconds}"}), flush=True)
for line in sys.stdin:
    command = line.split()[0]
    log(name, command, line.split()[1:])
    if not fails(command):
        print(json.dumps(answer(command, line.split())), flush=True)
