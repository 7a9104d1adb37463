"use strict";
// Adds up a scorecard (see "model" in this page) for one row that somebody types in. No request leaves the page.
const model = JSON.parse(document.getElementById("model").textContent);
const inputs = Object.fromEntries(model.inputs.map((column) => [column.name, column]));
const outputs = model.intercept.length;
const number = (value) => Number(value.toPrecision(4)).toString();

function readCell(column, text) {
  const isGap = (code) => code === text || (column.type === "number" && Number(code.replace(",", ".")) === Number(text));
  if (text === "" || (column.type !== "list" && column.codes.some(isGap)))
    return column.missing === "refuse" ? undefined : null;
  if (column.type === "list") return Number(text);
  if (column.type === "date") return Date.parse(text + "T00:00:00Z") / 86400000;
  return Number(text);
}

function position(cell, column) {
  const above = Math.min(Math.max(cell, column.lower), column.upper) - column.lower;
  if (column.period !== null) return above / column.period < 1 ? above / column.period : 0;
  const width = column.upper - column.lower;
  return column.scale === "log" ? Math.log1p(above) / Math.log1p(width) : above / width;
}

function added(terms) {
  return Array.from({ length: outputs }, (_, k) => terms.reduce((sum, [by, scores]) => sum + by * scores[k], 0));
}

function curve(piece, place) {
  const terms = [];
  let square = piece.square;
  if (piece.hats.length) {
    const intervals = piece.cyclic ? piece.hats.length : piece.hats.length - 1;
    const left = Math.min(Math.floor(place * intervals), intervals - 1);
    const part = place * intervals - left;
    terms.push([1 - part, piece.hats[left]], [part, piece.hats[(left + 1) % piece.hats.length]]);
    square += (1 - part) ** 2 + part ** 2;
  }
  if (piece.line.length) {
    terms.push([2 * place - 1, piece.line]);
    square += (2 * place - 1) ** 2;
  }
  if (piece.waves.length) {
    const angle = 2 * Math.PI * place;
    terms.push([Math.sin(angle), piece.waves[0]], [Math.cos(angle), piece.waves[1]]);
  }
  return [added(terms), square];
}

function coarse(piece, cell) {
  if (piece.type === "table") return [piece.scores[cell], piece.squares[cell]];
  if (piece.type === "slope") return [piece.scores.map((score) => score * cell), piece.square * cell * cell];
  return curve(piece, position(cell, inputs[piece.column]));
}

function binOf(axis, cell) {
  if (inputs[axis.column].type === "list") return axis.bins[cell];
  return axis.bins[axis.starts.filter((start) => start <= cell).length];
}

// Scores, and what each column and pair of columns adds to them.
function evaluate(cells) {
  const parts = [];
  let square = model.constant_square, fineSquare = 0;
  for (const piece of model.coarse) {
    if (cells[piece.column] === null) continue;
    const [scores, own] = coarse(piece, cells[piece.column]);
    parts.push({ name: piece.column, scores, coarse: true });
    square += own;
  }
  for (const grid of model.fine) {
    if (grid.axes.some((axis) => cells[axis.column] === null)) continue;
    const place = grid.axes.reduce((sum, axis) => sum * axis.size + binOf(axis, cells[axis.column]), 0);
    parts.push({ name: grid.axes.map((axis) => axis.column).join(" × "), scores: grid.scores[place], coarse: false });
    fineSquare += grid.square;
  }
  const share = square > 0 ? model.share : 0;
  const scale = square > 0 ? Math.sqrt(share) / Math.max(Math.sqrt(square), model.least) : 0;
  const length = Math.sqrt(share + fineSquare) || 1;
  const by = (part) => model.factor * (part.coarse ? scale : 1) / length;
  parts.unshift({ name: "start", scores: model.intercept, coarse: true });
  for (const part of parts) part.scores = part.scores.map((score) => by(part) * score);
  const centring = model.centring;
  if (centring !== null) {
    const mean = parts.reduce((sum, part) => sum + part.scores[outputs - 1], 0);
    const inside = (model.factor * scale) ** 2 * (square - model.constant_square);
    const distance = Math.sqrt(Math.max(inside - 2 * mean + centring.mean_square, 0));
    const stretch = centring.stretch / Math.max(distance, centring.radius);
    parts[0].scores = parts[0].scores.slice(0, -1).map((score, k) => score - centring.offsets[k]);
    for (const part of parts) part.scores = part.scores.slice(0, model.constant.length).map((score) => stretch * score);
  }
  parts[0].scores = parts[0].scores.map((score, k) => score + model.constant[k]);
  return { parts, scores: model.constant.map((_, k) => parts.reduce((sum, part) => sum + part.scores[k], 0)) };
}

const logistic = (score) => 1 / (1 + Math.exp(-score));

function interpolate(x, corners) {
  const right = corners.x.filter((corner) => corner <= x).length;
  if (right === 0) return corners.y[0];
  if (right === corners.x.length) return corners.y[right - 1];
  const [a, b, c, d] = [corners.x[right - 1], corners.x[right], corners.y[right - 1], corners.y[right]];
  return c + ((d - c) * (x - a)) / (b - a);
}

function probabilities(scores) {
  const outcome = model.outcome;
  if (outcome.calibration !== null) {
    const likely = interpolate(outcome.link === "none" ? scores[0] : logistic(scores[0]), outcome.calibration);
    return [1 - likely, likely];
  }
  if (outcome.log_odds !== null) {
    const odds = interpolate(scores[0], outcome.log_odds);
    return [logistic(-odds), logistic(odds)];
  }
  if (outcome.link === "none") return null;
  if (scores.length === 1) return [logistic(-scores[0]), logistic(scores[0])];
  const largest = Math.max(...scores);
  const odds = scores.map((score) =>
    outcome.link === "softmax" ? Math.exp(score - largest) : logistic(score) + 2.2250738585072014e-308);
  const sum = odds.reduce((one, other) => one + other, 0);
  return odds.map((one) => one / sum);
}

// What the form says: prediction, probabilities, and the parts of the score that is explained.
function predict(cells) {
  const { parts, scores } = evaluate(cells);
  const outcome = model.outcome;
  if (outcome.type === "numbers") {
    const values = scores.map((score, k) => {
      const [lower, upper] = outcome.bounds[k];
      return lower + ((upper - lower) * (Math.min(Math.max(score, -1), 1) + 1)) / 2;
    });
    const unit = (outcome.bounds[0][1] - outcome.bounds[0][0]) / 2;
    return { prediction: values.length === 1 ? values[0] : values, probabilities: null, parts, explained: 0, unit };
  }
  const two = outcome.labels.length === 2;
  const chosen = two ? Number(scores[0] > outcome.threshold) : scores.indexOf(Math.max(...scores));
  return { prediction: outcome.labels[chosen], probabilities: probabilities(scores), parts,
    explained: two ? 0 : chosen, unit: 1 };
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function showBars(found) {
  const sums = {};
  for (const part of found.parts)
    sums[part.name] = (sums[part.name] || 0) + part.scores[found.explained] * found.unit;
  const largest = Math.max(...Object.values(sums).map(Math.abs), 1e-12);
  const rows = Object.entries(sums).sort((one, other) => Math.abs(other[1]) - Math.abs(one[1])).map(([name, sum]) => {
    const row = element("tr", null);
    row.append(element("th", name === "start" ? "before any column" : name, { scope: "row" }));
    row.append(element("td", (sum >= 0 ? "+" : "−") + number(Math.abs(sum))));
    const bar = element("span", null, { class: sum >= 0 ? "bar up" : "bar down" });
    bar.style.width = `${(9 * Math.abs(sum)) / largest}rem`;
    const cell = element("td", null);
    cell.append(bar);
    row.append(cell);
    return row;
  });
  document.getElementById("parts").replaceChildren(...rows);
}

function update() {
  const cells = {}, problems = [];
  for (const field of document.querySelectorAll("[data-column]")) {
    const column = inputs[field.dataset.column];
    const cell = readCell(column, field.value);
    if (cell === undefined || Number.isNaN(cell)) problems.push(column.name);
    cells[column.name] = cell;
  }
  const message = document.getElementById("message");
  document.getElementById("result").hidden = problems.length > 0;
  if (problems.length) {
    message.textContent = `Fill in: ${problems.join(", ")}.`;
    return null;
  }
  const found = predict(cells);
  const shown = [found.prediction].flat().map((one) => (typeof one === "number" ? number(one) : String(one)));
  message.textContent = `Prediction: ${shown.join(", ")}`;
  const list = found.probabilities === null ? [] : model.outcome.labels.map((label, k) =>
    element("li", `${label}: ${(100 * found.probabilities[k]).toFixed(1)} %`));
  document.getElementById("chances").replaceChildren(...list);
  showBars(found);
  return found;
}

document.getElementById("form").addEventListener("input", update);
update();
