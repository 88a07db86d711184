"""Kills a training at random moments, again and again, until it ends. Every checkpoint must be readable, and results
must have the bits of a run without kills.

usage: kill_test.py CHILD KILLS SECONDS [SEED [all]]

It ends after KILLS kills or SECONDS seconds, whichever comes first. With `all`, fewer kills are a failure.
"""

import os
import random
import subprocess
import sys
import tempfile
import time

EPOCHS, PAUSE = "3", "0.002"


def start(child, checkpoint):
    return subprocess.Popen([child, checkpoint, EPOCHS, PAUSE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def main():
    child, kills, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    dice = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    begun = time.monotonic()
    wanted = subprocess.run([child, "-", EPOCHS, "0"], capture_output=True, text=True, check=True).stdout
    first = time.monotonic()
    length = None  # duration of a run with checkpoints and without kills
    done = runs = resumed = 0
    while done < kills and time.monotonic() - begun < seconds:
        with tempfile.TemporaryDirectory(prefix="lamina-kill-") as folder:
            checkpoint = os.path.join(folder, "run.safetensors")
            for attempt in range(40):
                resumed += os.path.exists(checkpoint)
                process = start(child, checkpoint)
                try:
                    # The moment is within 60 % of the length of a run, counted from the start of the process. The last
                    # attempt is not killed.
                    wait = None if length is None or attempt == 39 else dice.uniform(0, 0.6 * length)
                    out, err = process.communicate(timeout=wait)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
                    done += 1
                    continue
                if process.returncode != 0 or out != wanted:
                    print(f"run {runs}, attempt {attempt}: status {process.returncode}, {out!r} and not {wanted!r}\n{err}")
                    return 1
                if length is None:
                    length = time.monotonic() - first
                runs += 1
                break
            else:
                print("no attempt ended")
                return 1
            left = [name for name in os.listdir(folder) if name != "run.safetensors"]
            if left:
                print(f"files are left: {left}")
                return 1
    if sys.argv[5:] == ["all"] and (done < kills or resumed == 0):
        print(f"{done} of {kills} kills and {resumed} resumes in {seconds} s; give more seconds")
        return 1
    print(f"{done} kills, {resumed} resumes, {runs} runs that ended alike, {time.monotonic() - begun:.1f} s")
    if done == 0 or resumed == 0:
        print("nothing was killed")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
