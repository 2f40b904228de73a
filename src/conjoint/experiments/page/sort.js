// Tables sort when the name of a column is pressed: first upwards, then downwards. "-" always comes last.
for (const table of document.querySelectorAll("table.sortable")) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    header.querySelector("button").addEventListener("click", () => {
      const down = header.getAttribute("aria-sort") === "ascending";
      for (const other of headers) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = table.tBodies[0];
      const key = (row) => row.cells[column].dataset.value;
      const rows = [...body.rows].sort((a, b) => compare(key(a), key(b), a.cells[column], b.cells[column], down));
      body.append(...rows);
    });
  });
}

function compare(a, b, cellA, cellB, down) {
  const wordA = cellA.textContent, wordB = cellB.textContent;
  if (a === undefined && b === undefined) {
    if (wordA === "-" || wordB === "-") return (wordA === "-") - (wordB === "-");
    return down ? wordB.localeCompare(wordA) : wordA.localeCompare(wordB);
  }
  if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
  return down ? b - a : a - b;
}
