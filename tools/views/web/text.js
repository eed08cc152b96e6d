// The program's text: only the lines that are to be seen are in the page.

const pane = byId("text"), sheet = make("div", undefined, "lines");
let lines = null, marks = new Map(), ownerOf = new Map();

function showText(panel) {
  const text = data.texts[panel.plan.text];
  if (text !== lines) {
    lines = text;
    pane.replaceChildren();
    if (text.length) {
      sheet.style.height = `${text.length * LINE}px`;
      pane.append(sheet);
    }
    pane.hidden = !text.length;
  }
  ownerOf = new Map();
  for (const buffer of [...panel.inTime].reverse()) {
    for (const line of buffer.lines.slice(0, 2)) ownerOf.set(line, buffer);
  }
  showLines();
}

function showLines() {
  if (!lines) return;
  const from = Math.max(Math.floor(pane.scrollTop / LINE) - 10, 0);
  const to = Math.min(from + Math.ceil(pane.clientHeight / LINE) + 20, lines.length);
  sheet.replaceChildren();
  for (let index = from; index < to; index++) {
    const line = make("div", lines[index], `line ${marks.get(index + 1) ?? ""}`);
    line.dataset.number = index + 1;
    line.style.top = `${index * LINE}px`;
    sheet.append(line);
  }
}

/** Marks the buffer's definition and accesses; goes to the first access. */
function showAccesses(buffer) {
  marks = new Map();
  if (buffer && buffer.lines.length) {
    showText(buffer.panel);
    buffer.lines.forEach(line => marks.set(line, "access"));
    const line = buffer.lines[1] ?? buffer.lines[0];
    marks.set(line, "first");
    const top = (line - 1) * LINE;
    if (top < pane.scrollTop || top + 2 * LINE > pane.scrollTop + pane.clientHeight) {
      pane.scrollTop = Math.max(top - pane.clientHeight / 3, 0);
    }
  }
  showLines();
}

pane.addEventListener("scroll", showLines);
pane.addEventListener("click", event => {
  const line = event.target.closest(".line");
  const buffer = line && ownerOf.get(Number(line.dataset.number));
  if (buffer) select(buffer, true);
});
