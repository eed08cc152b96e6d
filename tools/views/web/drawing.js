// Draws the maps: buffers as rectangles, and the curve of live bytes below.

function area(panel) {
  const width = panel.canvas.clientWidth - LEFT - RIGHT;
  const height = panel.canvas.clientHeight - TOP - GAP - CURVE - BOTTOM;
  return {width: Math.max(width, 10), height: Math.max(height, 10)};
}

function scales(panel) {
  const {width, height} = area(panel);
  const perStep = width / (steps * (view.x1 - view.x0));
  const low = lowest(panel), all = panel.extent - low;
  const perByte = height / (all * (view.y1 - view.y0));
  const left = first + steps * view.x0, bottom = low + all * view.y0;
  return {
    width, height, perStep, perByte,
    x: step => LEFT + (step - left) * perStep,
    y: address => TOP + height - (address - bottom) * perByte,
    step: x => left + (x - LEFT) / perStep,
    address: y => bottom + (TOP + height - y) / perByte,
  };
}

let wanted = false;
function draw() {
  if (wanted) return;
  wanted = true;
  requestAnimationFrame(() => {
    wanted = false;
    panels.forEach(drawPanel);
    performance.mark("drawn");
  });
}

function drawPanel(panel) {
  const {canvas} = panel, ratio = devicePixelRatio || 1;
  const wide = Math.round(canvas.clientWidth * ratio);
  const high = Math.round(canvas.clientHeight * ratio);
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const pen = canvas.getContext("2d"), to = scales(panel);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  pen.font = "11px system-ui, sans-serif";
  drawUnused(pen, panel, to);
  drawAxes(pen, panel, to);
  pen.save();
  pen.beginPath();
  pen.rect(LEFT, TOP, to.width, to.height);
  pen.clip();
  const labels = drawBuffers(pen, panel, to);
  drawBounds(pen, panel, to);
  pen.restore();
  drawCurve(pen, panel, to);
  pen.save();
  pen.beginPath();
  pen.rect(LEFT, TOP, to.width, to.height);
  pen.clip();
  drawChosen(pen, panel, to);
  drawLabels(pen, labels);
  pen.restore();
}

/** Draws the background: hatched in the arena, plain outside. */
function drawUnused(pen, panel, to) {
  pen.fillStyle = ink.field;
  pen.fillRect(LEFT, TOP, to.width, to.height);
  const top = Math.max(to.y(panel.size), TOP);
  const bottom = Math.min(to.y(0), TOP + to.height);
  if (bottom <= top) return;
  pen.save();
  pen.beginPath();
  pen.rect(LEFT, top, to.width, bottom - top);
  pen.clip();
  pen.strokeStyle = ink.line;
  pen.lineWidth = 0.5;
  pen.beginPath();
  for (let x = LEFT - to.height; x < LEFT + to.width; x += 7) {
    pen.moveTo(x, TOP + to.height);
    pen.lineTo(x + to.height, TOP);
  }
  pen.stroke();
  pen.restore();
}

function drawAxes(pen, panel, to) {
  pen.fillStyle = ink.faint;
  pen.strokeStyle = ink.line;
  pen.lineWidth = 1;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  const low = Math.max(to.address(TOP + to.height), 0), high = to.address(TOP);
  const unit = Math.max(1, 2 ** Math.ceil(Math.log2((high - low) * 26 / to.height)));
  for (let tick = Math.ceil(low / unit) * unit; tick <= high; tick += unit) {
    const y = to.y(tick);
    pen.fillText(tickText(tick, unit), LEFT - 6, y);
    pen.beginPath();
    pen.moveTo(LEFT, y);
    pen.lineTo(LEFT + to.width, y);
    pen.stroke();
  }
  pen.textAlign = "center";
  const least = 56 / to.perStep; // steps between labels
  const ten = 10 ** Math.floor(Math.log10(least));
  const nice = Math.max(1, [1, 2, 5, 10].map(n => n * ten).find(n => n >= least));
  const last = to.step(LEFT + to.width);
  const base = TOP + to.height + GAP + CURVE;
  for (let tick = Math.ceil(to.step(LEFT) / nice) * nice; tick < last; tick += nice) {
    pen.fillText(String(tick), to.x(tick), base + BOTTOM / 2);
  }
}

/** The text of a tick; four digits would not distinguish neighboring ticks. */
function tickText(tick, unit) {
  if (tick < unit * 1000) return readable(tick);
  const power = Math.min(Math.floor(Math.log2(unit) / 10), UNITS.length);
  return `${tick / 1024 ** power} ${power ? UNITS[power - 1] : "B"}`;
}

function boxes(buffer, to) {
  const top = to.y(buffer.top);
  const height = Math.max(to.y(buffer.offset) - top, buffer.size ? 0.5 : 1.5);
  return buffer.live.map(([start, end]) => {
    const left = to.x(start);
    return [left, top, Math.max(to.x(end) - left, 0.5), height];
  });
}

/** Draws the buffers; returns their labels: [text, x, y, background color]. */
function drawBuffers(pen, panel, to) {
  const right = LEFT + to.width, bottom = TOP + to.height, labels = [];
  pen.lineWidth = 1;
  const shown = isHeldShown ? [...panel.held, ...panel.buffers] : panel.buffers;
  for (const buffer of shown) {
    pen.globalAlpha = matches && !matches.has(buffer) ? 0.15 : 1;
    for (const [left, top, width, height] of boxes(buffer, to)) {
      if (left > right || left + width < LEFT || top > bottom || top + height < TOP) {
        continue;
      }
      const fill = colorOf(buffer);
      pen.fillStyle = fill;
      pen.fillRect(left, top, width, height);
      if (width < 4 || height < 4) continue;
      pen.strokeStyle = "#0006";
      pen.strokeRect(left + 0.5, top + 0.5, width - 1, height - 1);
      if (height < 12 || width < 14 || pen.globalAlpha < 1) continue;
      // Labels are centered in the visible part.
      const x0 = Math.max(left, LEFT), x1 = Math.min(left + width, right);
      const y0 = Math.max(top, TOP), y1 = Math.min(top + height, bottom);
      const has = text => pen.measureText(text).width < x1 - x0 - 4;
      if (y1 - y0 < 12 || x1 - x0 < 14 || !has(buffer.id)) continue;
      const size = readable(buffer.exactSize), x = (x0 + x1) / 2, y = (y0 + y1) / 2;
      const full = `${buffer.id}  ${buffer.type}  ${size}`;
      if (y1 - y0 <= 44 && buffer.type && has(full)) {
        labels.push([full, x, y, fill]);
        continue;
      }
      const below = [buffer.type, size].filter(text => text && has(text));
      const texts = [buffer.id, ...below].slice(0, Math.max(1, Math.floor((y1 - y0) / 15)));
      texts.forEach((text, line) =>
        labels.push([text, x, y + 14 * (line - (texts.length - 1) / 2), fill]));
    }
  }
  pen.globalAlpha = 1;
  return labels;
}

function drawLabels(pen, labels) {
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  pen.lineWidth = 4;
  pen.fillStyle = "#111";
  for (const [text, x, y, behind] of labels) {
    pen.strokeStyle = behind;
    pen.strokeText(text, x, y);
    pen.fillText(text, x, y);
  }
}

function drawChosen(pen, panel, to) {
  const current = hovered || selected;
  if (!current) return;
  if (current.panel === panel) {
    pen.setLineDash([4, 3]);
    for (const other of sharing(current)) frame(pen, other, to, ink.ink, 1.5);
    pen.setLineDash([]);
  }
  for (const chosen of new Set([selected, hovered])) {
    const here = chosen && counterpart(chosen, panel);
    if (here) frame(pen, here, to, ink.accent, 3);
  }
}

function frame(pen, buffer, to, color, width) {
  pen.strokeStyle = color;
  pen.lineWidth = width;
  for (const [left, top, wide, high] of boxes(buffer, to)) {
    pen.strokeRect(left, top, wide, high);
  }
}

function drawBounds(pen, panel, to) {
  pen.lineWidth = 1;
  pen.setLineDash([6, 4]);
  const bounds = [[panel.size, ink.alarm], [Number(panel.pool.bound), ink.ink]];
  if (isHeldShown) bounds.push([0, ink.ink]);
  for (const [address, color] of bounds) {
    pen.strokeStyle = color;
    pen.beginPath();
    pen.moveTo(LEFT, to.y(address) + 0.5);
    pen.lineTo(LEFT + to.width, to.y(address) + 0.5);
    pen.stroke();
  }
  pen.setLineDash([]);
}

function drawCurve(pen, panel, to) {
  const top = TOP + to.height + GAP, base = top + CURVE;
  const y = live => base - live * CURVE / panel.mostOfAll;
  pen.save();
  pen.beginPath();
  pen.rect(LEFT, TOP, to.width, base - TOP);
  pen.clip();
  pen.fillStyle = ink.field;
  pen.fillRect(LEFT, top, to.width, CURVE);
  pen.beginPath();
  pen.moveTo(to.x(panel.steps[0]), base);
  let height = base;
  for (const [step, live] of panel.curve) {
    const x = to.x(step);
    pen.lineTo(x, height);
    height = y(live);
    pen.lineTo(x, height);
  }
  pen.closePath();
  pen.globalAlpha = 0.55;
  pen.fillStyle = ink.accent;
  pen.fill();
  pen.globalAlpha = 1;
  drawStep(pen, to, panel.peakStep, ink.alarm, base);
  if (at.panel === panel && at.step !== panel.peakStep) {
    drawStep(pen, to, at.step, ink.accent, base);
  }
  pen.restore();
  pen.fillStyle = ink.faint;
  pen.textAlign = "right";
  pen.fillText("live", LEFT - 6, top + CURVE - 8);
  pen.fillText("step", LEFT - 30, base + BOTTOM / 2);
  const mark = Math.min(Math.max(y(panel.most), top + 6), top + CURVE - 21);
  if (panel.size > panel.extent && view.y1 === 1) {
    pen.textAlign = "center";
    pen.fillStyle = ink.alarm;
    pen.strokeStyle = ink.field;
    pen.lineWidth = 4;
    const more = [`continues to ${readable(panel.size)} \u2191`, LEFT + to.width / 2, TOP + 9];
    pen.strokeText(...more);
    pen.fillText(...more);
    pen.textAlign = "right";
    pen.fillStyle = ink.faint;
  }
  if (panel.most) pen.fillText(readable(panel.most), LEFT - 6, mark);
}

function drawStep(pen, to, step, color, base) {
  const x = (to.x(step) + to.x(step + 1)) / 2;
  pen.strokeStyle = color;
  pen.lineWidth = 1.5;
  pen.setLineDash([4, 3]);
  pen.beginPath();
  pen.moveTo(x, TOP);
  pen.lineTo(x, base);
  pen.stroke();
  pen.setLineDash([]);
}
