// Starts the page, after the other parts have defined their functions.

function figures(panel) {
  const {size, bound, total} = panel.pool;
  const over = Number(bound) ? (Number(size) / Number(bound) - 1) * 100 : 0;
  const least = over > 0
    ? `${over.toFixed(2)}% above the lower bound ${readable(bound)}`
    : "the lower bound";
  const alone = `without reuse ${readable(total)}`;
  const most = [least, alone, buffers(panel.buffers.length), panel.pool.unused];
  return ` ${readable(size)}: ${most.filter(Boolean).join("; ")}`;
}

for (const panel of panels) {
  const figure = make("figure", undefined, panel.pool.isCallers ? "callers" : "");
  const caption = make("figcaption");
  const stage = make("div", undefined, "stage");
  caption.append(make("b", label(panel)), make("span", figures(panel)));
  if (panel.pool.process) caption.append(make("div", panel.pool.process, "process"));
  panel.canvas = make("canvas");
  panel.canvas.tabIndex = 0;
  panel.canvas.setAttribute("role", "application");
  const what = `map of ${label(panel)}: ${figures(panel)}`;
  panel.canvas.setAttribute("aria-label", `${what}. The arrow keys select buffers.`);
  stage.append(panel.canvas);
  figure.append(caption, stage);
  byId("maps").append(figure);
  listen(panel);
  new ResizeObserver(draw).observe(panel.canvas);
}

for (const [index, {name}] of data.modes.entries()) {
  const option = make("option", name);
  option.value = index;
  byId("mode").append(option);
}
byId("colors").hidden = data.modes.length < 2;
byId("mode").addEventListener("change", event => {
  mode = Number(event.target.value);
  showLegend();
  showLive();
  draw();
});
byId("held").hidden = !panels.some(panel => panel.heldBytes);
byId("held").setAttribute("aria-pressed", isHeldShown);

function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["field", "line", "ink", "faint", "accent", "alarm"]) {
    ink[name] = style.getPropertyValue(`--${name}`).trim();
  }
  draw();
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readColors);
new ResizeObserver(showLines).observe(pane);
readColors();
showLegend();
showTable();
if (active) {
  showText(active);
  look(active, active.peakStep);
}
showDetails();
