// Columns are sorted by a click on their head.
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
