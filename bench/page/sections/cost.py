"""Cost and energy: dollars for a million images or for an epoch, at prices that the reader sets."""

import altair

from page import again, charts, cost
from page.measured import IDLE
from page.parts import Cell, Chart, Row, Section, Sentence, Table
from page.text import digits, number


def make(model):
    found = cost.items(model)
    section = Section(
        "cost",
        "Cost and energy",
        short="Cost",
        template="cost.html",
        fill=""
        if any(one.ours for one in found)
        else "lamina_bench run --backend=eigen --passes=9 --benchmark_out=networks.json",
    )
    section.lead = (
        "Costs follow from the seconds and joules of the files and from prices by the hour. Choose a machine "
        "and move its price; "
        "its line has the price below which it is the cheapest. Prices change: each is dated."
    )
    listed = [
        {"label": price.label, "usd": price.usd_per_hour, "preemptible": price.preemptible, "file": price.file}
        for price in model.prices
    ]
    whats = list(dict.fromkeys(one.what for one in found))
    first = next((what for what in ("resnet50, training pass", "resnet18, training pass") if what in whats), whats[0])
    section.data = {
        "prices": listed,
        "files": list(dict.fromkeys(price.file for price in model.prices)),
        "whats": whats,
        "what": first,
        "imagenet": cost.IMAGENET,
        "energy": any(one.joules for one in found),
        "items": [
            {
                "what": one.what,
                "unit": one.unit,
                "who": one.who,
                "machine": one.machine,
                "seconds": one.seconds,
                "joules": one.joules,
                "idle_watts": one.idle_watts,
                "ours": one.ours,
                "lamina": one.lamina,
                "run": one.run,
                "prices": cost.fitting(model.prices, one),
            }
            for one in found
        ],
    }
    section.charts = [
        Chart("cost", "Ranking", "At the prices chosen above; machines without a price are in the table only.", drawn())
    ]
    if not section.data["energy"]:
        section.notes = [no_joules(model)]
    section.notes += idle(model)
    rankings = cost.by_file(model)
    measured = [what for what in whats if any(one.ours for one in found if one.what == what)]
    measured.sort(key=lambda what: ("training pass" not in what, "inference" not in what))
    section.tables = [cheapest(measured, rankings)] if measured else []
    section.answers = [short(first, file, its, len(rankings) > 1) for file, its in rankings.items() if measured]
    return section


def priced(ranking, what):
    """The lines with a price, the cheapest first, each machine once."""
    by_machine = {}
    for line in ranking[what]:
        if line[2] is not None:
            by_machine.setdefault(line[0].machine, line)
    return list(by_machine.values())


def cheapest(whats, rankings):
    """Of all that the files measured, the cheapest machine by the prices of each file."""
    lines = {what: [priced(its, what) for its in rankings.values()] for what in whats}
    rows = [Row([what, *map(winner, its)], runs(what, its)) for what, its in lines.items()]
    heads = [f"the cheapest by {file}" for file in rankings]
    return Table("The cheapest machine, for each file of prices", ["what", *heads], rows, numeric=99)


def winner(lines):
    if not lines:
        return Cell("no machine has a price", mark="tie")
    first, *others = lines
    next_one = f"; next: {others[0][0].who}, {digits(others[0][2] / first[2])} times as much" if others else ""
    return Cell(first[0].who, first[2], f"{digits(first[2])} USD / {first[0].unit}{next_one}")


def runs(what, lists):
    """What measures again those that `winner` names of each list; published machines have nothing that does."""
    return again.together((what, item.run) for lines in lists for item, *_ in lines[:2] if item.run)


def short(what, file, ranking, several):
    lines = priced(ranking, what)
    its = winner(lines)
    head = f"{what}, by {file}" if several else what
    text = f"{head}: the cheapest is {its.text} ({its.note})." if its.note else f"{head}: {its.text}."
    return Sentence(text, runs(what, [lines]))


def idle(model):
    """What each device takes when it is idle, or why that is not known where its joules are."""
    found = {}
    for origin in model.origins:
        for name, text in origin.context.items():
            backend = name.removeprefix(IDLE)
            counter = origin.context.get(f"energy_{backend}", "")
            if backend == name or counter.startswith("not available"):
                continue
            by = f" ({counter})" if counter else ""
            known = f"{text} W when idle{by}" if number(text) else f"power when idle: {text}"
            said = f"{origin.machine(backend)}: {known}."
            found[said] = Sentence(said, origin.context.get("command", ""))
    return list(found.values())


def no_joules(model):
    """With the reasons that the files have: of a whole run, then of epochs."""
    reasons = [
        reason
        for origin in model.origins
        for name, reason in origin.context.items()
        if name.startswith("energy_") and reason.startswith("not available")
    ]
    reasons += [epoch["joules_missing"] for its in model.trainings for epoch in its["epochs"]]
    said = list(dict.fromkeys(filter(None, reasons)))[:3]
    return ": ".join(["No joules of whole trainings or passes in these files", *said]) + ". Costs are of hours alone."


def drawn():
    """Its data come from the page's script, as prices change. Names stand above their bars: on a phone there is no room
    beside them."""
    drawing = charts.Drawing()
    y = altair.Y("who:N", title=None, sort=altair.EncodingSortField("usd", op="min"), axis=None)
    base = altair.Chart(altair.NamedData(name="ranking"))
    bars = base.mark_bar(cursor="pointer", size=14, yOffset=9).encode(
        x=altair.X("usd:Q", title="USD", axis=altair.Axis(tickCount=6)),
        y=y,
        color=altair.Color(
            "whose:N",
            title=None,
            scale=altair.Scale(domain=["measured", "published"], range=["var(--c1)", "var(--c7)"]),
        ),
        tooltip=[
            altair.Tooltip("who:N", title="machine"),
            altair.Tooltip("usd:Q", title="USD", format=".4~g"),
            altair.Tooltip("price:Q", title="USD/h", format=".4~g"),
        ],
    )
    names = base.mark_text(align="left", dx=2, dy=-7).encode(x=altair.value(0), y=y, text="who:N")
    values = base.mark_text(align="left", dx=4, dy=9).encode(x="usd:Q", y=y, text=altair.Text("usd:Q", format=".3~g"))
    return drawing.spec(
        altair.layer(bars, names, values).properties(width="container", height=120), "Dollars by machine, the cheapest first."
    )
