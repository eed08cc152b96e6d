// The table of all buffers of a pool: sorted by any column, single or in groups.

const ROWS = 300; // the largest number of rows in the page
const COLUMNS = [
  ["Name", buffer => buffer.id],
  ["Type", buffer => buffer.type],
  ["Bytes", buffer => buffer.size, readable],
  ["Steps", buffer => buffer.lasts, String],
  ["Bytes × steps", buffer => buffer.area, readable],
  ["Operation", buffer => buffer.op],
  ["Location", buffer => buffer.place],
];
const GROUPED = [
  ["", row => row.id],
  ["Buffers", row => row.count, String],
  ["At the peak", row => row.atPeak, readable],
  ["Bytes × steps", row => row.area, readable],
];
const sorted = {column: "Bytes × steps", down: true};
let together = -1; // index in data.modes of the grouping; -1: none, -2: by file and line

const lineOf = buffer => buffer.place.replace(/:\d+$/, "");

/** The group of a buffer: its source line, or the group by which it is colored. */
function groupOf(buffer) {
  return together === -2 ? lineOf(buffer) : data.modes[together].groups[buffer.groups[together]][0];
}

function grouped(panel) {
  const rows = new Map();
  for (const buffer of panel.buffers) {
    const id = groupOf(buffer) || "unknown";
    if (!rows.has(id)) rows.set(id, {id, count: 0, atPeak: 0, area: 0, first: buffer});
    const row = rows.get(id);
    row.count++;
    row.area += buffer.area;
    if (liveAt(buffer, panel.peakStep)) row.atPeak += buffer.size;
    if (buffer.area > row.first.area) row.first = buffer;
  }
  return [...rows.values()];
}

function compareBy(value, down) {
  return (a, b) => {
    const [x, y] = [value(a), value(b)];
    const order = typeof x === "number" ? x - y : x.localeCompare(y);
    return down ? -order : order;
  };
}

function showTable() {
  const pane = byId("table");
  if (pane.hidden || !active) return;
  const columns = together === -1 ? COLUMNS : GROUPED;
  const rows = together === -1 ? [...active.buffers] : grouped(active);
  const by = columns.find(([name]) => name === sorted.column) ?? columns.at(-1);
  rows.sort(compareBy(by[1], sorted.down));
  const table = make("table"), head = make("tr");
  for (const [name, value, write] of columns) {
    const cell = make("th"), button = make("button", name);
    button.type = "button";
    button.addEventListener("click", () => {
      sorted.down = sorted.column === name ? !sorted.down : Boolean(write);
      sorted.column = name;
      showTable();
    });
    if (name === by[0]) cell.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
    if (write) cell.className = "number";
    cell.append(button);
    head.append(cell);
  }
  table.append(head);
  for (const row of rows.slice(0, ROWS)) table.append(tableRow(row, columns));
  pane.replaceChildren(byId("together").parentElement, table);
  if (rows.length > ROWS) pane.append(make("p", `and ${rows.length - ROWS} more`, "faint"));
}

function tableRow(row, columns) {
  const line = make("tr"), buffer = row.first ?? row;
  for (const [, value, write] of columns) {
    const text = write ? write(value(row)) : value(row);
    line.append(make("td", text, write ? "number" : ""));
  }
  line.firstChild.prepend(chip(colorOf(buffer)));
  line.classList.toggle("chosen", buffer === selected);
  line.buffer = buffer;
  line.addEventListener("click", () => select(buffer, true));
  return line;
}

function showRow(buffer) {
  for (const line of byId("table").querySelectorAll("tr")) {
    line.classList.toggle("chosen", line.buffer === buffer);
  }
}

{
  const ways = data.modes.map(({name}, index) => [index, name]);
  const known = ways.filter(([, name]) => !["buffer", "source line"].includes(name));
  if (panels.some(panel => panel.buffers.some(lineOf))) known.push([-2, "source line"]);
  const choice = make("select"), around = make("label", "Group by ");
  choice.id = "together";
  for (const [value, name] of [[-1, "nothing"], ...known]) {
    const option = make("option", name);
    option.value = value;
    choice.append(option);
  }
  choice.addEventListener("change", () => {
    together = Number(choice.value);
    showTable();
  });
  around.append(choice);
  byId("table").append(around);
}
for (const tab of document.querySelectorAll("[data-shows]")) {
  tab.addEventListener("click", () => {
    byId("live").hidden = tab.dataset.shows !== "live";
    byId("table").hidden = tab.dataset.shows !== "table";
    for (const other of document.querySelectorAll("[data-shows]")) {
      other.setAttribute("aria-selected", other === tab);
    }
    showTable();
  });
}
