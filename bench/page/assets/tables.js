// Tables. A click on the head of a column sorts by it.
"use strict";

const cellOf = (value, numeric) => {
  if (value instanceof Node) return value;
  if (typeof value === "string") return make("td", {className: numeric ? "number" : ""}, value);
  const {text, number, note, title, mark, rerun} = value;
  const small = note && make("small", {className: numeric && !value.under ? "" : "under"}, note);
  const content = [text, small ? " " : null, small || null];
  const its = {className: `${numeric ? "number " : ""}${mark || ""}`.trim(), "data-sort": number, title};
  if (rerun)
    return make("td", its, make("button", {type: "button", className: "number", "data-run": rerun, title}, ...content));
  return make("td", its, ...content);
};

/// Text whose lines may break after _ and /, as in names of files.
const breakable = (text) => text.split(/(?<=[_/])/).flatMap((part) => [part, make("wbr")]);

const rowOf = ({cells, rerun, mark, head}, numeric, copied) => make(
    "tr", {className: mark},
    ...cells.map((value, i) => (head && i === 0 ? make("th", {scope: "row", title: head}, ...breakable(value)) :
                                                  cellOf(value, i >= numeric))),
    copied ? make("td", {}, rerun ? copyButton(rerun) : null) : null);

/// Replaces the head and the rows of a table.
const fillTable = (table, {caption, head, rows, numeric = 1}) => {
  const copied = rows.some((row) => row.rerun);
  const heads = head.map((text, i) => make("th", {scope: "col", className: i >= numeric ? "number" : ""}, text));
  if (copied) heads.push(make("th", {scope: "col", className: "plain"}, "again"));
  table.caption.replaceChildren(make("span", {}, caption));
  table.tHead.replaceChildren(make("tr", {}, ...heads));
  table.tBodies[0].replaceChildren(...rows.map((row) => rowOf(row, numeric, copied)));
  heads.forEach((cell, column) => {
    if (!cell.textContent.trim() || cell.classList.contains("plain")) return;
    const button = make("button", {type: "button"}, cell.textContent);
    cell.replaceChildren(button);
    button.addEventListener("click", () => sortBy(table, column, cell.getAttribute("aria-sort") === "ascending"));
  });
};

/// A table in a box that scrolls.
const tableOf = (its, properties = {}) => {
  const table = make("table", properties, make("caption"), make("thead"), make("tbody"));
  if (its) fillTable(table, its);
  const label = `Table: ${its ? its.caption : properties.id}`;
  const className = `scroll${properties.id ? " sticky" : ""}`;
  return make("div", {className, role: "region", tabIndex: 0, "aria-label": label}, table);
};

/// Sorts rows by a column. Empty cells come last in either order.
const sortBy = (table, column, descending) => {
  const valueOf = (cell) => (cell.dataset.sort !== undefined ? Number(cell.dataset.sort) : cell.textContent.trim());
  const rows = [...table.tBodies[0].rows].map((row) => [valueOf(row.cells[column]), row]);
  rows.sort(([a], [b]) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    return descending ? -order : order;
  });
  table.tBodies[0].append(...rows.map(([, row]) => row));
  [...table.tHead.rows[0].cells].forEach((cell, i) => {
    cell.removeAttribute("aria-sort");
    if (i === column) cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
  });
};
