"""What a file of `lamina_bench compare` or bench/race/versions says of two versions of each row."""

import os

from page.fields import key_of
from page.measured import Comparison


def names_of(files):
    """Of two files or folders as short as they differ."""
    files = [os.path.normpath(file).removesuffix(".json") for file in files]
    names = [os.path.basename(file) for file in files]
    return names if names[0] != names[1] else files


def take(root, origin, its):
    files = root.texts("files", [])
    first, second = names_of(files) if len(files) == 2 else ("the first", "the second")
    for one in root.objects("comparisons"):
        numbers = {
            name: one.positive(name, None) if one.value.get(name) else None
            for name in ("ratio", "low", "high", "first_seconds", "seconds")
        }
        if 0 in (one.value.get("first_seconds"), one.value.get("seconds")):  # a side without a time has no ratio
            numbers |= {"ratio": None, "low": None, "high": None}
        key = key_of(one, ()) if one.has("key") and one.value["key"] else {}
        why = one.text("reason", "") or one.text("evidence", "")
        its.comparisons.append(
            Comparison(
                origin,
                one.text("name"),
                key,
                one.text("verdict"),
                one.text("against", first),
                one.text("variant", second),
                **numbers,
                why=why,
            )
        )
