"""The command that trains the same again."""

from page import again

OPTIONS = (*again.TRAIN_ALONE, "instruction_set", "onnx_extents", "onnx_output")


def of(training):
    key, differs = training.key, training.key.get("differs", {})
    if again.is_of_race(key):
        return again.peer_command(key, training.origin.context)
    if not is_of_train(key):
        return again.epochs_command(key, len(training["epochs"]), training.origin.context)
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
        f"{again.OUT}training.json",
    )


def is_of_train(key):
    """Whether `train` has flags for all that is set; `run` has more, of rows train/..."""
    known = {*OPTIONS, "synthetic"}
    return key["layout"] == "nchw" and key["type"] in ("f32", "f64") and key.get("differs", {}).keys() <= known
