"use strict";
(() => {
  const table = document.getElementById("board");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const form = document.getElementById("filters");
  const status = document.getElementById("status");
  const collator = new Intl.Collator("en", { numeric: true });

  function told() {
    const shown = rows.filter((row) => !row.hidden).length;
    status.textContent = `${shown} of ${rows.length} rows shown`;
  }

  function filter() {
    const k = form.elements.k.value;
    const corpus = form.elements.corpus.value;
    for (const row of rows) {
      row.hidden = (k !== "" && row.dataset.k !== k) ||
        (corpus !== "" && row.dataset.corpus !== corpus);
    }
    told();
  }

  // A row without the figure comes last whichever way the others go.
  function compare(a, b, column, text, sign) {
    const x = a.cells[column].dataset.v;
    const y = b.cells[column].dataset.v;
    if (x === "" || y === "") return (x === "") - (y === "");
    return sign * (text ? collator.compare(x, y) : Number(x) - Number(y));
  }

  function sortBy(header, column) {
    const first = header.dataset.first;
    const now = header.getAttribute("aria-sort");
    const other = first === "ascending" ? "descending" : "ascending";
    const order = now === first ? other : first;
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", order);
    const text = header.classList.contains("text");
    const sign = order === "ascending" ? 1 : -1;
    rows.sort((a, b) => compare(a, b, column, text, sign));
    body.append(...rows);
    told();
    status.textContent += `, sorted by ${header.dataset.title}, ${order}`;
  }

  [...table.tHead.rows[0].cells].forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => sortBy(header, column));
  });
  form.addEventListener("change", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  filter();  // a browser may have kept the choices of the last visit

  // Without this, a keyboard or a screen reader would stay where the link was.
  addEventListener("hashchange", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target) (target.querySelector("[tabindex='-1']") || target).focus();
  });
})();
