"""Fields of a JSON document that somebody else wrote: each is of the kind that is asked for, or the file is damaged."""

MISSING = object()
LARGEST = 1e30  # no time, count or rate comes near; of larger ones products have no place in a float


class Damaged(Exception):
    """What in a file is not as it must be, with the path of the field."""


class Fields:
    """An object of the document and where it is in it."""

    def __init__(self, value, path=""):
        if not isinstance(value, dict):
            raise Damaged(f"{path or 'the document'} is {kind_of(value)}; an object is needed")
        self.value, self.path = value, path

    def _get(self, name, default):
        if name not in self.value and default is MISSING:
            raise Damaged(f'{self.path or "the document"} has no "{name}"')
        return self.value.get(name, default)

    def _typed(self, name, default, fits, wanted):
        value = self._get(name, default)
        if value is default and name not in self.value or fits(value):
            return value
        raise Damaged(f"{self.where(name)} is {kind_of(value)}; {wanted} is needed")

    def where(self, name):
        return f"{self.path}.{name}" if self.path else name

    def has(self, name):
        return name in self.value

    def text(self, name, default=MISSING):
        return self._typed(name, default, lambda value: isinstance(value, str), "a text")

    def flag(self, name, default=MISSING):
        return self._typed(name, default, lambda value: isinstance(value, bool), "true or false")

    def number(self, name, default=MISSING):
        return self._typed(name, default, is_number, "a number")

    def positive(self, name, default=MISSING):
        return self._typed(name, default, lambda value: is_number(value) and value > 1 / LARGEST, "a number above 0")

    def amount(self, name, default=MISSING):
        return self._typed(name, default, is_amount, "0 or a number above it")

    def whole(self, name, default=MISSING):
        """Also as 16.0 or 1.6e1, as some writers of JSON have it; what is returned is an int."""
        value = self._typed(name, default, lambda value: is_number(value) and value == int(value), "a whole number")
        return int(value) if is_number(value) else value

    def numbers(self, name, default=MISSING):
        return self._typed(
            name, default, lambda value: isinstance(value, list) and all(map(is_number, value)), "a list of numbers"
        )

    def times(self, name):
        return self._typed(
            name,
            MISSING,
            lambda value: isinstance(value, list)
            and bool(value)
            and all(is_number(one) and one > 1 / LARGEST for one in value),
            "a list of numbers above 0",
        )

    def texts(self, name, default=MISSING):
        return self._typed(
            name,
            default,
            lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
            "a list of texts",
        )

    def object(self, name, default=MISSING):
        return Fields(self._get(name, default), self.where(name))

    def objects(self, name):
        """Of a list; of none, where there is no such list."""
        values = self._typed(name, [], lambda value: isinstance(value, list), "a list")
        return [Fields(value, f"{self.where(name)}[{i}]") for i, value in enumerate(values)]


def is_number(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return -LARGEST < value < LARGEST  # which NaN is not


def is_amount(value):
    """No sum or ratio of such numbers is too small for a float."""
    return is_number(value) and (value == 0 or value > 1 / LARGEST)


def kind_of(value):
    for kind, name in (
        (bool, "true or false"),
        ((int, float), f"the number {str(value)[:30]}"),
        (list, "a list"),
        (dict, "an object"),
    ):
        if isinstance(value, kind):
            return name
    return "null" if value is None else f'the text "{str(value)[:40]}"'


def key_of(fields, needed):
    """A row's key, checked: texts, but a whole number of images and texts by name of what differs."""
    key = fields.object("key")
    found = {}
    for name in ("what", "network", "layer", "part", "backend", "algorithm", "type", "layout", "mode"):
        if key.has(name) or name in needed:
            found[name] = key.text(name)
    if key.has("batch") or "batch" in needed:
        found["batch"] = key.whole("batch")
        if found["batch"] < 1:
            raise Damaged(f"{key.where('batch')} is below 1")
    if key.has("differs"):
        differs = key.object("differs")
        found["differs"] = {name: str(value) for name, value in differs.value.items()}
    return found
