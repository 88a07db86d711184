"""The command that trains the same again."""

from page import again


def of(training):
    seed = training["seed"]
    return again.line(again.PROGRAM, "train", training.key["network"], f"--backend={training.key['backend']}", f"--epochs={len(training['epochs'])}",
                      *([f"--seed={seed:.0f}"] if seed is not None else []), "--benchmark_out=training.json")
