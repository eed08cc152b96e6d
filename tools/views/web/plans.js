// The plans, and the state of the page.

// Margins of a map, in pixels:
const LEFT = 76, RIGHT = 18, TOP = 8, GAP = 8, CURVE = 56, BOTTOM = 20;
const LISTED = 200; // the largest number of buffers in the list of live buffers
const LINE = 18; // pixels, as in page.css
const MOST = 1.5; // the common scale ends at most at this multiple of the smallest plan

const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

const byId = id => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);

/** An element that contains text, never HTML. */
function make(tag, text, kind) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

function readable(bytes) {
  let scaled = Number(bytes);
  if (scaled < 1024) return `${scaled} B`;
  for (const unit of UNITS) {
    scaled /= 1024;
    if (scaled < 1024 || unit === UNITS.at(-1)) {
      return `${Number(scaled.toPrecision(4))} ${unit}`;
    }
  }
}

const exact = bytes =>
  Number(bytes) < 1024 ? `${bytes} bytes` : `${readable(bytes)} (${bytes} bytes)`;
const buffers = count => `${count} buffer${count === 1 ? "" : "s"}`;

/** The caller's memory on the pool's device, below the arena and live in all steps. */
function heldBelow(panel) {
  const [start, end] = panel.steps;
  let offset = 0;
  return panel.pool.held.map(([id, exactSize, type, role]) => {
    const size = Number(exactSize), top = offset;
    offset -= size;
    return {
      panel, id, type, role, size, exactSize, offset, top, start, end, live: [[start, end]],
      op: "", place: "", lines: [], isHeld: true,
    };
  });
}

const panels = data.plans.flatMap(plan => plan.pools.map(pool => {
  const panel = {plan, pool, size: Number(pool.size), peakStep: Number(pool.peakStep)};
  panel.steps = pool.steps.map(Number);
  panel.curve = pool.curve.map(point => point.map(Number));
  panel.most = panel.curve.reduce((most, point) => Math.max(most, point[1]), 0);
  panel.buffers = pool.buffers.map((row, index) => {
    const [
      id, offset, size, live, type, role, op, place, lines, groups, waits, inPlace,
    ] = row;
    return {
      panel, index, id, type, role, op, place, lines, groups, waits, inPlace,
      exactOffset: offset, exactSize: size,
      offset: Number(offset), size: Number(size), top: Number(offset) + Number(size),
      live: live.map(span => span.map(Number)),
      start: Number(live[0][0]), end: Number(live.at(-1)[1]),
      words: `${id}\n${type}\n${role}\n${op}\n${place}`.toLowerCase(),
    };
  });
  for (const buffer of panel.buffers) {
    buffer.lasts = buffer.live.reduce((sum, [start, end]) => sum + end - start, 0);
    buffer.area = buffer.size * buffer.lasts;
  }
  panel.held = heldBelow(panel);
  panel.inTime = [...panel.buffers];
  panel.inTime.sort((a, b) => a.start - b.start || a.offset - b.offset);
  panel.byName = new Map(panel.buffers.map(buffer => [buffer.id, buffer]));
  return panel;
}));
// All maps have the same range of steps. Maps of pools with the same name have the
// same range of addresses.
const first = Math.min(...panels.map(panel => panel.steps[0]));
const steps = Math.max(...panels.map(panel => panel.steps[1])) - first;
for (const panel of panels) {
  for (const held of panel.held) held.live = [[first, first + steps]];
  const same = panels.filter(other => other.pool.name === panel.pool.name);
  const least = Math.min(...same.map(other => other.size));
  const most = Math.max(...same.map(other => other.size));
  panel.extent = Math.max(1, Math.min(most, MOST * least || most));
  panel.heldBytes = panel.held.length ? -panel.held.at(-1).offset : 0;
  panel.mostOfAll = Math.max(1, ...same.map(other => other.most));
}

const view = {x0: 0, x1: 1, y0: 0, y1: 1}; // the visible part of all maps, as fractions
let active = panels[0];
let selected = null, hovered = null;
let at = {panel: active, step: active?.peakStep ?? 0}; // the step that the list shows
let matches = null; // the Set of found buffers during a search
let ink = {};
let mode = 0; // index in data.modes: the meaning of the colors
let isHeldShown = panels.some(panel => panel.heldBytes) &&
  panels.every(panel => panel.heldBytes <= data.held * panel.extent);

/** The lowest address that a map shows: the caller's memory is below 0. */
const lowest = panel => isHeldShown ? -panel.heldBytes : 0;

const heldColor = role => data.modes[mode].name === "role" ? data.roles[role] : data.others;
const colorOf = buffer => buffer.isHeld
  ? heldColor(buffer.role)
  : data.modes[mode].groups[buffer.groups[mode]][1];
