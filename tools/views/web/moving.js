// Navigation by mouse and keys, and search.

function setSpan(low, high, from, span) {
  span = Math.min(Math.max(span, 1e-9), 1);
  view[low] = Math.min(Math.max(from, 0), 1 - span);
  view[high] = view[low] + span;
}

/** Zooms about a point, given as fractions of the visible part. */
function zoom(factor, x = 0.5, y = 0.5, stepsOnly = false) {
  const wide = view.x1 - view.x0, high = view.y1 - view.y0;
  const least = Math.min(1, 2 / steps); // two steps stay visible
  const wider = Math.max(wide * factor, least);
  setSpan("x0", "x1", view.x0 + (wide - Math.min(wider, 1)) * x, wider);
  if (!stepsOnly) {
    setSpan("y0", "y1", view.y0 + (high - Math.min(high * factor, 1)) * y, high * factor);
  }
  draw();
}

function pan(x, y) {
  const wide = view.x1 - view.x0, high = view.y1 - view.y0;
  setSpan("x0", "x1", view.x0 + x * wide, wide);
  setSpan("y0", "y1", view.y0 + y * high, high);
  draw();
}

function showAll() {
  setSpan("x0", "x1", 0, 1);
  setSpan("y0", "y1", 0, 1);
  draw();
}

function extentOf(buffer) {
  const low = lowest(buffer.panel), all = buffer.panel.extent - low;
  return [(buffer.start - first) / steps, (buffer.end - first) / steps,
    (buffer.offset - low) / all, (buffer.top - low) / all];
}

function bringIntoView(buffer) {
  const [x0, x1, y0, y1] = extentOf(buffer);
  const wide = view.x1 - view.x0, high = view.y1 - view.y0;
  if (x1 <= view.x0 || x0 >= view.x1) setSpan("x0", "x1", (x0 + x1 - wide) / 2, wide);
  if (y1 <= view.y0 || y0 >= view.y1) setSpan("y0", "y1", (y0 + y1 - high) / 2, high);
  buffer.panel.canvas.scrollIntoView({block: "nearest"});
}

function zoomTo(buffer) {
  const [x0, x1, y0, y1] = extentOf(buffer);
  const wide = Math.max((x1 - x0) * 1.5, 4 / steps), high = Math.max((y1 - y0) * 1.5, 1e-6);
  setSpan("x0", "x1", (x0 + x1 - wide) / 2, wide);
  setSpan("y0", "y1", (y0 + y1 - high) / 2, high);
  draw();
}

/** The nearest buffer in a direction; the first one if none is selected. */
function neighbor(key) {
  const {inTime} = active;
  if (!selected || selected.panel !== active) return inTime[0];
  if (key === "ArrowLeft" || key === "ArrowRight") {
    return inTime[inTime.indexOf(selected) + (key === "ArrowRight" ? 1 : -1)];
  }
  const up = key === "ArrowUp" ? 1 : -1;
  let best, least = Infinity;
  for (const other of inTime) {
    const together = other.start < selected.end && selected.start < other.end;
    const distance = up * (other.offset - selected.offset);
    if (together && distance > 0 && distance < least) [best, least] = [other, distance];
  }
  return best;
}

function hit(panel, x, y) {
  const to = scales(panel);
  if (x < LEFT || y < TOP || x > LEFT + to.width || y > TOP + to.height) return null;
  let nearest = null, distance = 3; // pixels of tolerance
  for (const buffer of isHeldShown ? [...panel.buffers, ...panel.held] : panel.buffers) {
    for (const [left, top, width, height] of boxes(buffer, to)) {
      const away = Math.max(left - x, x - left - width, top - y, y - top - height, 0);
      if (away < distance) [nearest, distance] = [buffer, away];
    }
  }
  return nearest;
}

function listen(panel) {
  const {canvas} = panel;
  let drag = null;
  canvas.addEventListener("focus", () => {
    if (at.panel === panel) setActive(panel);
    else look(panel, panel.peakStep);
  });
  canvas.addEventListener("keydown", event => pressed(event, panel));
  canvas.addEventListener("pointerdown", event => {
    drag = {x: event.offsetX, y: event.offsetY, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => {
    const {offsetX: x, offsetY: y} = event, {width, height} = area(panel);
    if (!drag) {
      hover(hit(panel, x, y));
    } else if (drag.moved || Math.hypot(x - drag.x, y - drag.y) > 4) {
      pan((drag.x - x) / width, (y - drag.y) / height);
      drag = {x, y, moved: true};
    }
  });
  canvas.addEventListener("pointerup", event => {
    if (drag && !drag.moved) clicked(panel, event.offsetX, event.offsetY);
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("dblclick", () => selected && zoomTo(selected));
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    const {width, height} = area(panel);
    const amount = (event.deltaY || event.deltaX) * (event.deltaMode ? 16 : 1);
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      pan((event.deltaX || amount) / width, 0);
      return;
    }
    const below = event.offsetY > TOP + height; // on the curve
    const up = 1 - (event.offsetY - TOP) / height;
    zoom(Math.exp(amount / 400), (event.offsetX - LEFT) / width, up, below);
  }, {passive: false});
}

function clicked(panel, x, y) {
  const buffer = hit(panel, x, y), step = Math.floor(scales(panel).step(x));
  select(buffer, false);
  const [start, end] = panel.steps;
  if (!buffer && x >= LEFT && step >= start && step < end) look(panel, step);
}

function pressed(event, panel) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const moves = {
    ArrowLeft: [-0.2, 0], ArrowRight: [0.2, 0], ArrowUp: [0, 0.2], ArrowDown: [0, -0.2],
  };
  if (event.key in moves) {
    if (event.shiftKey) pan(...moves[event.key]);
    else select(neighbor(event.key) ?? selected, true);
  } else if (event.key === "Enter" && selected) zoomTo(selected);
  else if (event.key === "Escape") select(null);
  else return;
  event.preventDefault();
}

const commands = {
  "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1 / 0.7), "0": showAll,
  c: () => {
    if (!panels.some(panel => panel.heldBytes)) return;
    isHeldShown = !isHeldShown;
    byId("held").setAttribute("aria-pressed", isHeldShown);
    showLegend();
    showAll();
  },
  p: () => active && look(active, active.peakStep), "/": () => byId("search").focus(),
};
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, select") || !Object.hasOwn(commands, event.key)) return;
  event.preventDefault();
  commands[event.key]();
});
for (const [id, key] of [["in", "+"], ["out", "-"], ["all", "0"], ["peak", "p"], ["held", "c"]]) {
  byId(id).addEventListener("click", commands[key]);
}

let found = [];
byId("search").addEventListener("input", event => {
  const word = event.target.value.trim().toLowerCase();
  const all = panels.flatMap(panel => panel.inTime);
  found = word ? all.filter(buffer => buffer.words.includes(word)) : [];
  matches = word ? new Set(found) : null;
  byId("found").textContent = word ? `${found.length} of ${all.length}` : "";
  draw();
});
byId("search").addEventListener("keydown", event => {
  if (event.key === "Enter" && found.length) {
    const now = found.indexOf(selected);
    const step = event.shiftKey ? found.length - 1 : 1;
    const next = now < 0 ? 0 : (now + step) % found.length;
    select(found[next], true);
    byId("found").textContent = `${next + 1} of ${found.length}`;
  } else if (event.key === "Escape") active?.canvas.focus();
});
