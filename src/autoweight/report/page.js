"use strict";
// Values under the pointer or the arrow keys, lines that can be switched off, and tables that sort.
const tip = document.getElementById("tip");

function place(x, y) {
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 14, innerHeight - box.height - 8))}px`;
}

function show(svg, chart, at, x, y) {
  const own = svg.parentElement.querySelectorAll("[data-toggle]");
  const off = new Set([...own].filter((b) => b.getAttribute("aria-pressed") === "false").map((b) => +b.dataset.toggle));
  tip.replaceChildren();
  const head = document.createElement("b");
  head.textContent = `${chart.x_name} ${+chart.x[at].toFixed(2)}`;
  tip.append(head);
  chart.series.forEach((one, number) => {
    if (off.has(number) || one.y[at] === null) return;
    const row = document.createElement("span");
    for (const text of [one.name, String(one.y[at])]) row.append(Object.assign(document.createElement("i"), { textContent: text }));
    tip.append(row);
  });
  let cursor = svg.querySelector(".cursor");
  if (!cursor) {
    cursor = document.createElementNS("http://www.w3.org/2000/svg", "path");
    cursor.setAttribute("class", "cursor");
    svg.append(cursor);
  }
  cursor.setAttribute("d", `M${chart.at[at]} 12V${svg.viewBox.baseVal.height - 42}`);
  place(x, y);
}

function hide(svg) {
  tip.hidden = true;
  svg.querySelector(".cursor")?.remove();
  svg.querySelector(".chosen")?.classList.remove("chosen");
}

// What a tap shows stays until another: a finger that is lifted leaves at once. With the focus, it goes by itself.
function leave(svg) {
  svg.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && hide(svg));
  svg.addEventListener("pointercancel", () => hide(svg)); // the page is being scrolled
  svg.addEventListener("blur", () => hide(svg));
}

for (const svg of document.querySelectorAll("svg[data-chart]")) {
  const chart = JSON.parse(svg.dataset.chart);
  if (!chart.x.length) continue;
  let at = chart.x.length - 1;
  const point = (event) => {
    const box = svg.getBoundingClientRect();
    const across = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    at = chart.at.reduce((best, x, k) => (Math.abs(x - across) < Math.abs(chart.at[best] - across) ? k : best), 0);
    if (event.type === "pointerdown") svg.focus({ preventScroll: true });
    show(svg, chart, at, event.clientX, event.clientY);
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  leave(svg);
  svg.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") hide(svg);
    if (!move) return;
    event.preventDefault();
    at = Math.max(0, Math.min(chart.x.length - 1, at + move));
    const box = svg.getBoundingClientRect();
    show(svg, chart, at, box.left + (chart.at[at] / svg.viewBox.baseVal.width) * box.width, box.top + box.height / 3);
  });
}

for (const svg of document.querySelectorAll("svg[data-cells]")) {
  const cells = [...svg.querySelectorAll("rect")];
  const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -svg.dataset.cells, ArrowDown: +svg.dataset.cells };
  let at = 0;
  const choose = (next, x, y) => {
    if (!cells[next]) return;
    hide(svg);
    at = next;
    cells[at].classList.add("chosen");
    tip.textContent = cells[at].textContent;
    const box = cells[at].getBoundingClientRect();
    place(x ?? box.right, y ?? box.bottom);
  };
  svg.addEventListener("pointerdown", (event) => {
    svg.focus({ preventScroll: true });
    choose(cells.indexOf(event.target.closest("rect")), event.clientX, event.clientY);
  });
  leave(svg);
  svg.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide(svg);
    if (!(event.key in moves)) return;
    event.preventDefault();
    choose(tip.hidden ? at : at + moves[event.key]);
  });
}

for (const button of document.querySelectorAll("[data-toggle]")) {
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    button.closest("figure").querySelector(`[data-series="${button.dataset.toggle}"]`)?.classList.toggle("off", !on);
  });
}

// Of several methods' figures those of one are shown, and printed.
for (const pick of document.querySelectorAll("[data-pick]")) {
  const parts = [...document.querySelectorAll(`[data-of="${pick.dataset.pick}"]`)];
  const choose = () => {
    const chosen = pick.querySelector("input:checked").value;
    for (const part of parts) part.hidden = part.dataset.method !== chosen;
  };
  pick.hidden = false;
  pick.addEventListener("change", choose);
  choose();
}

function value(row, column) {
  const cell = row.cells[column];
  const text = cell.dataset.value ?? cell.textContent.trim();
  const plain = text.replace(/,| %$/g, "");
  return plain === "" || Number.isNaN(+plain) ? text : +plain;
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: head.textContent });
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down < 0 ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((one, two) => {
        const [a, b] = [value(one, column), value(two, column)];
        if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
        return down * (a < b ? -1 : a > b ? 1 : 0);
      });
      table.tBodies[0].append(...rows);
    });
  });
}

addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => (one.open = true)));

// Tables that are wider than their place say that they can be swiped.
new ResizeObserver(() => {
  for (const hint of document.querySelectorAll(".hint")) {
    const table = hint.nextElementSibling;
    hint.classList.toggle("needed", table.scrollWidth > table.clientWidth);
  }
}).observe(document.body);
