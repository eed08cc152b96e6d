// The user's source, if it is available, and the planned program. Only visible lines
// are elements of the page.

const pane = byId("text"), sheet = make("div", undefined, "lines");
const PLANNED = ""; // the name of the planned program among the files
let file = null, lines = null, marks = new Map(), ownerOf = new Map(), bytesOf = new Map();
let wishes = Object.keys(data.sources); // the files to show, in order of preference

const sourceOf = buffer => buffer.place.replace(/:\d+:\d+$/, "");
const lineIn = buffer => Number(buffer.place.match(/:(\d+):\d+$/)?.[1]);

/** The lines in the current file that define and access a buffer. */
function linesOf(buffer) {
  if (file === PLANNED) return buffer.lines;
  return sourceOf(buffer) === file ? [lineIn(buffer)] : [];
}

function showFiles(panel) {
  const plan = data.texts[panel.plan.text], names = Object.keys(data.sources);
  const files = plan.length ? [...names, PLANNED] : names;
  const tabs = files.map(name => {
    const tab = make("button", name.replace(/.*\//, "") || "planned program");
    tab.type = "button";
    tab.title = name;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-selected", name === file);
    tab.addEventListener("click", () => {
      wishes = [name];
      showText(panel);
      showAccesses(hovered || selected);
    });
    return tab;
  });
  byId("files").replaceChildren(...tabs);
  return files;
}

function showText(panel) {
  const files = showFiles(panel);
  const chosen = wishes.find(name => files.includes(name)) ?? files[0];
  const text = chosen === PLANNED ? data.texts[panel.plan.text] : data.sources[chosen] ?? [];
  sheet.classList.toggle("source", chosen !== PLANNED);
  if (text !== lines) {
    [file, lines] = [chosen, text];
    showFiles(panel);
    pane.replaceChildren();
    if (text.length) {
      sheet.style.height = `${text.length * LINE}px`;
      pane.append(sheet);
    }
    pane.hidden = !text.length;
  }
  ownerOf = new Map();
  bytesOf = new Map();
  for (const buffer of [...panel.inTime].reverse()) {
    for (const line of linesOf(buffer).slice(0, 2)) ownerOf.set(line, buffer);
    if (file !== PLANNED && liveAt(buffer, panel.peakStep)) {
      const [line] = linesOf(buffer);
      if (line) bytesOf.set(line, (bytesOf.get(line) ?? 0) + buffer.size);
    }
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
    const bytes = bytesOf.get(index + 1);
    line.dataset.bytes = bytes ? `${readable(bytes)}  ` : "";
    line.style.top = `${index * LINE}px`;
    sheet.append(line);
  }
}

/** Marks the buffer's definition and accesses; scrolls to the first access. */
function showAccesses(buffer) {
  marks = new Map();
  if (buffer && !buffer.isHeld) {
    showText(buffer.panel);
    const found = linesOf(buffer);
    found.forEach(line => marks.set(line, "access"));
    const line = found[1] ?? found[0];
    if (line) goTo(line);
  }
  showLines();
}

function goTo(line) {
  marks.set(line, "first");
  const top = (line - 1) * LINE;
  if (top < pane.scrollTop || top + 2 * LINE > pane.scrollTop + pane.clientHeight) {
    pane.scrollTop = Math.max(top - pane.clientHeight / 3, 0);
  }
}

pane.addEventListener("scroll", showLines);
pane.addEventListener("click", event => {
  const line = event.target.closest(".line");
  const buffer = line && ownerOf.get(Number(line.dataset.number));
  if (buffer) select(buffer, true);
});
