// Columns are sorted by a click on their head, and tables are copied as Markdown.
"use strict";

const valueOf = (cell) => (cell.dataset.sort !== undefined ? Number(cell.dataset.sort) : cell.textContent.trim());

/// Empty cells come last, whichever way.
const sortBy = (table, column, descending) => {
  const body = table.tBodies[0];
  const sign = descending ? -1 : 1;
  const rows = [...body.rows].map((row) => [valueOf(row.cells[column]), row]);
  rows.sort(([a], [b]) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  });
  body.append(...rows.map(([, row]) => row));
  [...table.tHead.rows[0].cells].forEach((cell, i) => {
    if (i === column)
      cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
    else
      cell.removeAttribute("aria-sort");
  });
};

const makeSortable = (table) => {
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    if (!cell.textContent.trim() || cell.classList.contains("plain") || cell.querySelector("button")) return;
    const button = make("button", {type: "button"}, cell.textContent.trim());
    cell.replaceChildren(button);
    button.addEventListener("click", () => sortBy(table, column, cell.getAttribute("aria-sort") === "ascending"));
  });
};

document.querySelectorAll("table.sortable").forEach(makeSortable);

/// As it is shown now, without the column of commands. What is small in a cell is in brackets.
const markdownOf = (table) => {
  const heads = [...table.tHead.rows[0].cells];
  const columns = heads.map((_, i) => i).filter((i) => !heads[i].classList.contains("plain"));
  const plain = (text) => text.trim().replace(/\s+/g, " ").replaceAll("|", "\\|");
  const textOf = (cell) => {
    const copied = cell.cloneNode(true), notes = [...copied.querySelectorAll("small")];
    notes.forEach((note) => note.remove());
    return [plain(copied.textContent), ...notes.map((note) => `(${plain(note.textContent)})`)].join(" ").trim();
  };
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [
    plain(table.caption.textContent), "", line(columns.map((i) => textOf(heads[i]))),
    `|${columns.map((i) => (heads[i].classList.contains("number") ? "---:" : "---")).join("|")}|`,
    ...[...table.tBodies[0].rows].map((row) => line(columns.map((i) => (row.cells[i] ? textOf(row.cells[i]) : "")))), ""
  ].join("\n");
};

document.querySelectorAll(".scroll > table").forEach((table) => {
  const name = () => table.caption.textContent.trim();
  const button = make("button", {type: "button", className: "copy markdown"}, "copy as Markdown");
  button.setAttribute("aria-label", "copy as Markdown: the table above");
  button.addEventListener("click", () => copy(markdownOf(table), `${name()}, as Markdown`));
  table.parentElement.after(button);
});
