"""The command that trains the same again."""

from page import again

OPTIONS = ("seed", "table_updates", "instruction_set", "optimiser", "learning_rate")


def of(training):
    key, differs = training.key, training.key.get("differs", {})
    if again.is_of_race(key):
        return again.peer_command(key, training.origin.context)
    return again.line(
        again.PROGRAM,
        "train",
        f"--onnx={training['onnx']}" if training.get("onnx") else key["network"],
        f"--backend={key['backend']}",
        f"--epochs={len(training['epochs'])}",
        *([f"--dtype={key['type']}"] if key["type"] == "f64" else []),
        *(f"--{what}={differs[what]}" for what in OPTIONS if what in differs),
        *([f"--batch={key['batch']}"] if training.get("is_network") else []),
        f"--share={differs['synthetic']}" if differs.get("synthetic") else "--data=DIR",
        *([f"--threads={training.origin.threads}"] if training.origin.threads.isdigit() else []),
        *(["--energy"] if any(epoch.get("joules") for epoch in training["epochs"]) else []),
        "--benchmark_out=training.json",
    )
