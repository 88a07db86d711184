// Draws the page from its data. Text from result files is inserted as text, never as markup.
"use strict";

/// An element with properties and children; strings become text.
const make = (tag, properties = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === "" || value === false) continue;
    if (name in element)
      element[name] = value;
    else
      element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
};
const byId = (id) => document.getElementById(id);

/// A number with three significant digits and no exponent, as in parts.py.
const digits = (value, figures = 3) => {
  if (value === 0) return "0";
  const places = Math.max(0, figures - 1 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(places, 20));
};

const say = (text) => {
  byId("said").textContent = text;
  byId("said").classList.add("shown");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => byId("said").classList.remove("shown"), 3500);
};

const copy = (text) =>
    navigator.clipboard.writeText(text).then(() => say(`Copied: ${text}`), () => say(`Copying is blocked: ${text}`));

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-run]");
  if (button) copy(button.dataset.run);
});

const copyButton = (command) =>
    make("button", {type: "button", className: "copy", "data-run": command, "aria-label": "copy the command"}, "copy");
/// A folded part of the page. Its content is built when the reader first opens it.
const folded = (title, content) => {
  const details = make("details", {}, make("summary", {}, title));
  const fill = () => details.childElementCount === 1 && details.append(...content());
  details.addEventListener("toggle", fill);
  return details;
};

/// A table with the values of a chart's tooltips. Columns of numbers come last.
const tableOfChart = ({title, spec, pick: [label, field]}) => {
  const tips = new Map([[field, {title: label, type: "nominal"}]]), records = new Set();
  for (const layer of spec.layer.filter((one) => one.encoding.tooltip)) {
    layer.encoding.tooltip.forEach((tip) => tips.set(tip.field, tip));
    spec.datasets[layer.data.name].forEach((record) => records.add(record));
  }
  const columns = [...tips].sort(([, a], [, b]) => Boolean(a.format) - Boolean(b.format));
  const textOf = (value, format) => {
    if (format.endsWith("%")) return `${digits(100 * value)} %`;
    if (format.endsWith("e")) return value.toExponential(1);
    return format.endsWith("f") ? value.toFixed(3) : digits(value);
  };
  const cellOf = (value, {format}) => {
    if (value === undefined || value === null) return "";
    if (typeof value === "string") return value;
    return {text: format ? textOf(value, format) : String(value), number: value};
  };
  return {
    caption: title,
    head: columns.map(([name, tip]) => tip.title.trim() || name),
    rows: [...records].map((one) => ({cells: columns.map(([name, tip]) => cellOf(one[name], tip)), rerun: one.run})),
    numeric: columns.findIndex(([, tip]) => tip.format)
  };
};

const chartOf = (its) => make(
    "figure", {}, make("figcaption", {}, its.title, make("span", {}, its.says)),
    make("div", {className: "chart", id: `chart-${its.name}`}),
    its.pick ? folded("As a table", () => [tableOf(tableOfChart(its))]) : null);

const ownParts = {};  // {name of a section: functions that make and start controls and tables of its own}

const sectionOf = (section) => {
  const charts = (section.charts || []).map(chartOf);
  const own = ownParts[section.name];
  return make(
      "section", {id: section.name, "aria-labelledby": `${section.name}-title`, "data-short": section.short},
      make("h2", {id: `${section.name}-title`}, section.title), section.lead ? make("p", {}, section.lead) : null,
      ...(own ? own.make(section.data, charts) : charts), ...(section.tables || []).map(tableOf),
      (section.folded || []).length ? folded(section.folded_title, () => section.folded.map(tableOf)) : null,
      make("ul", {className: "notes"}, ...(section.notes || []).map((note) => make("li", {}, note))));
};

const problemsOf = (problems) => (problems.length ?
    make(
        "div", {className: "problems", role: "note"}, make("h2", {}, "Left out"),
        make("ul", {}, ...problems.map((one) => make("li", {}, make("strong", {}, one.file), `: ${one.what}`)))) :
    null);

/// A line at the end of the page with the sections that have no results.
const missingOf = (sections) => make(
    "p", {id: "missing"}, "Not in these files (a click copies the command that measures it): ",
    ...sections.flatMap(({title, fill}, i) => [
      i ? ", " : "", make("button", {type: "button", className: "copy", "data-run": fill, title: fill}, title)]));

/// Reads the data, which are in the page as base64 of gzip.
const readData = () => {
  const bytes = Uint8Array.from(atob(byId("data").textContent.trim()), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
};

/// A promise that is fulfilled when every chart is drawn.
const drawn = (async () => {
  const data = await readData();
  const full = data.sections.filter((section) => !section.fill), missing = data.sections.filter((one) => one.fill);
  byId("machines").textContent = data.title;
  byId("files").textContent = data.files.join(", ");
  document.querySelector("nav ul").append(
      ...full.map((one) => make("li", {}, make("a", {href: `#${one.name}`}, one.short))));
  byId("main").append(...[
    problemsOf(data.problems), ...data.warnings.map((one) => make("p", {className: "bad"}, one)),
    ...full.map(sectionOf), missing.length ? missingOf(missing) : null
  ].filter(Boolean));
  for (const chart of full.flatMap((section) => section.charts || [])) await draw(chart.name, chart.spec);
  for (const section of full)
    if (ownParts[section.name]) ownParts[section.name].start();
  document.documentElement.dataset.drawn = "true";
  return data;
})();
