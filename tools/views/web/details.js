// The panes with details of a buffer and of a step.

/** The buffers of the same pool that share bytes with the buffer at other times. */
function sharing(buffer) {
  if (buffer.isHeld) return [];
  return buffer.panel.inTime.filter(other =>
    other !== buffer && other.offset < buffer.top && buffer.offset < other.top);
}

/** The buffer with the same name in another plan. */
function counterpart(buffer, panel) {
  if (buffer.panel === panel) return buffer;
  const same = buffer.panel.pool.name === panel.pool.name;
  return same ? panel.byName.get(buffer.id) : undefined;
}

const liveAt = (buffer, step) =>
  buffer.live.some(([start, end]) => start <= step && step < end);

function names(list) {
  const few = list.slice(0, 12).map(other => other.id).join(", ");
  return list.length > 12 ? `${few} and ${list.length - 12} more` : few;
}

function showDetails() {
  const buffer = hovered || selected, pane = byId("details");
  pane.replaceChildren();
  showAccesses(buffer);
  if (!buffer) {
    const hint = "Point at a buffer, or use the arrow keys.";
    pane.append(make("h2", "Buffer"), make("p", hint, "faint"));
    return;
  }
  const list = make("dl");
  const row = (what, value) =>
    value && list.append(make("dt", what), make("dd", value));
  const spans = buffer.live.map(([start, end]) =>
    end - start === 1 ? `${start}` : `${start} to ${end - 1}`).join(", ");
  const shared = sharing(buffer);
  row("Type", buffer.type);
  row("Role", buffer.role);
  row("Operation", buffer.op);
  row("Location", buffer.place);
  row("Size", exact(buffer.exactSize));
  if (buffer.isHeld) {
    row("Memory", "the caller's, outside the arena; live during the whole run");
    pane.append(make("h2", buffer.id), list);
    return;
  }
  row("Offset", `${buffer.exactOffset}`);
  row("Live", `step${spans.match(/^\d+$/) ? "" : "s"} ${spans}`);
  const others = `${buffers(shared.length)}: ${names(shared)}`;
  row("Shares with", shared.length ? others : "none");
  row("At the peak", reasons(buffer));
  for (const panel of panels) {
    const other = panel !== buffer.panel && counterpart(buffer, panel);
    if (!other) continue;
    row(`In ${panel.plan.title}`, `offset ${other.exactOffset}, ${exact(other.exactSize)}`);
  }
  pane.append(make("h2", buffer.id), list);
}

/** Why the buffer is live at the peak, and why it overwrites no operand. */
function reasons(buffer) {
  const waits = {"in use": "in use"}[buffer.waits] ?? `waits for ${buffer.waits}`;
  return buffer.waits && [waits, buffer.inPlace].filter(Boolean).join("; ");
}

function showLive() {
  const {panel, step} = at, pane = byId("live");
  pane.replaceChildren();
  if (!panel) return;
  const live = panel.buffers.filter(buffer => liveAt(buffer, step));
  live.sort((a, b) => b.size - a.size);
  const bytes = panel.curve.reduce((sum, point) => point[0] <= step ? point[1] : sum, 0);
  const isPeak = step === panel.peakStep, what = isPeak ? "Peak" : "Live";
  const where = panels.length > 1 ? `, ${place(panel)}` : "";
  pane.append(make("h2", `${what}: step ${step}${where}`));
  pane.append(make("div", `${readable(bytes)} in ${buffers(live.length)}`, "faint"));
  if (isPeak && panel.plan.explained) pane.append(advice(panel.plan.explained));
  const list = make("ol");
  for (const buffer of live.slice(0, LISTED)) {
    const item = make("li"), button = make("button");
    button.type = "button";
    button.append(
      make("span", readable(buffer.exactSize), "size"),
      chip(colorOf(buffer)),
      make("span", buffer.id, "name"),
      make("span", [buffer.type, buffer.op].filter(Boolean).join("  "), "op"),
    );
    button.classList.toggle("chosen", buffer === selected);
    button.title = buffer.place;
    button.addEventListener("click", () => select(buffer, true));
    button.addEventListener("pointerenter", () => hover(buffer));
    button.addEventListener("pointerleave", () => hover(null));
    button.buffer = buffer;
    item.append(button);
    if (isPeak && buffer.waits) item.append(make("div", reasons(buffer), "reasons"));
    list.append(item);
  }
  pane.append(list);
  if (live.length > LISTED) {
    const rest = live.slice(LISTED).reduce((sum, buffer) => sum + buffer.size, 0);
    const words = `and ${live.length - LISTED} smaller ones with ${readable(rest)}`;
    pane.append(make("div", words, "faint"));
  }
  if (isPeak) pane.append(...panel.pool.summary.map(line => make("p", line, "faint")));
}

/** The changes that were tried to lower the peak: the best one, the others folded. */
function advice({tables, head, remarks}) {
  const pane = make("details"), [title, [best]] = tables[0] ?? ["no change was tried", []];
  const most = best ? `: ${best[0]} less by ${best.at(-1)}` : "";
  pane.append(make("summary", capital(title) + most));
  for (const [title, rows] of tables) {
    if (!rows.length) continue;
    const table = make("table");
    table.append(make("caption", capital(title)));
    for (const cells of [head, ...rows]) {
      const line = make("tr"), kind = cells === head ? "th" : "td";
      line.append(...cells.map(cell => make(kind, cell)));
      table.append(line);
    }
    pane.append(table);
  }
  pane.append(...remarks.map(line => make("p", line, "faint")));
  return pane;
}

function chip(color) {
  const square = make("span", undefined, "chip");
  square.style.background = color;
  return square;
}

/** Shows the meaning of the colors, with the bytes that are live at the peaks. */
function showLegend() {
  const pane = byId("legend"), {groups} = data.modes[mode];
  const bytes = groups.map(() => 0), drawn = new Set();
  for (const panel of panels.filter(panel => panel.plan === active?.plan)) {
    for (const buffer of panel.buffers) {
      const group = buffer.groups[mode];
      drawn.add(group);
      const isHeld = isHeldShown && buffer.role === "result";
      if (liveAt(buffer, panel.peakStep) && !isHeld) bytes[group] += buffer.size;
    }
  }
  const item = (label, color, size) => {
    const one = make("span", undefined, "group");
    one.append(chip(color), make("span", label), make("span", readable(size), "faint"));
    return one;
  };
  const roles = new Map();
  for (const {role, size} of isHeldShown && active ? active.held : []) {
    const label = data.modes[mode].name === "role" ? role : "caller's memory";
    roles.set(label, (roles.get(label) ?? 0) + size);
  }
  const items = groups.flatMap(([label, color], index) =>
    label && drawn.has(index) && !roles.has(label) ? [item(label, color, bytes[index])] : []);
  for (const [role, size] of roles) items.push(item(role, heldColor(role), size));
  pane.replaceChildren(...items);
}

const capital = text => text[0].toUpperCase() + text.slice(1);

/** The label of a panel, without the plan's title if there is only one plan. */
function place(panel) {
  return data.plans.length > 1 ? label(panel) : panel.pool.name;
}

function label(panel) {
  return panel.pool.name ? `${panel.plan.title}: ${panel.pool.name}` : panel.plan.title;
}

function hover(buffer) {
  if (hovered === buffer) return;
  hovered = buffer;
  showDetails();
  draw();
}

function select(buffer, reveal) {
  selected = buffer;
  hovered = null;
  if (buffer) {
    setActive(buffer.panel);
    showRow(buffer);
    if (reveal) bringIntoView(buffer);
  }
  for (const button of byId("live").querySelectorAll("button")) {
    button.classList.toggle("chosen", button.buffer === buffer);
  }
  showDetails();
  draw();
}

function setActive(panel) {
  if (active !== panel) {
    active = panel;
    showTable();
  }
  showText(panel);
}

function look(panel, step) {
  at = {panel, step};
  setActive(panel);
  showLive();
  draw();
}
