"""The command that trains the same again."""

from page import again


def of(training):
    key, differs = training.key, training.key.get("differs", {})
    return again.line(
        again.PROGRAM,
        "train",
        key["network"],
        f"--backend={key['backend']}",
        f"--epochs={len(training['epochs'])}",
        *([f"--seed={differs['seed']}"] if "seed" in differs else []),
        f"--share={differs['synthetic']}" if differs.get("synthetic") else "--data=DIR",
        "--benchmark_out=training.json",
    )
