"""The command that trains the same again."""

from page import again, measured


def of(training):
    key, differs = training.key, training.key.get("differs", {})
    if key["backend"] not in measured.OURS:
        share = [f"--share={differs['synthetic']}"] if differs.get("synthetic") else []
        return again.line("bench/race/compare", f"--trainings={key['network']}", *share)
    return again.line(
        again.PROGRAM,
        "train",
        key["network"],
        f"--backend={key['backend']}",
        f"--epochs={len(training['epochs'])}",
        *([f"--dtype={key['type']}"] if key["type"] == "f64" else []),
        *(f"--{what}={differs[what]}" for what in ("seed", "table_updates", "instruction_set") if what in differs),
        *([f"--batch={key['batch']}"] if training.get("is_network") else []),
        f"--share={differs['synthetic']}" if differs.get("synthetic") else "--data=DIR",
        "--benchmark_out=training.json",
    )
