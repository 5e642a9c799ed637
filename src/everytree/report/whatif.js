// The what-if panel: one row's values in, its predictive distribution and its way through the tree out.

const row = []; // one value an input column: null is missing
const setters = []; // one function an input column, which writes a value into its field

function startPanel() {
  byId("no-whatif").hidden = Boolean(family);
  byId("panel").hidden = !family && !data.examples.length;
  if (!family) {
    startRows();
    return;
  }
  byId("way").hidden = Boolean(sums) || !svg;
  const off = data.left_out > 1e-10 ? ` No probability differs from Python's by more than ${nice(data.left_out, 2)}: the least probable nodes had no room.` : "";
  byId("exactness").textContent = off + family.note;
  byId("inputs").addEventListener("submit", (event) => event.preventDefault());
  byId("inputs").append(...data.inputs.map((input, k) => field(input, k)));
  startSettings();
}

// ---- one field an input column -----------------------------------------------------------------------------------------

function field(input, k) {
  const box = element("div", { class: input.range ? "field number" : "field", "data-input": k });
  const id = `value-${k}`;
  box.append(element("label", { for: id }, input.name));
  const entry = element("span", { class: "entry" });
  box.append(entry);
  if (input.range) box.append(...numberEntry(input, k, id, entry));
  else entry.append(choice(input, k, id));
  return box;
}

// Categories, yes or no, and numbers that nobody cut: what it may be, something new, nothing. A number that nobody cut
// keeps the value of the row that was loaded, and its one option is that of the table, if it has one alone.
function choice(input, k, id) {
  const select = element("select", { id });
  const isText = input.kind === "categorical", isNumber = !isText && input.kind !== "boolean";
  const [least, most] = input.seen ?? [0, 1];
  let number = least;
  const values = isText ? input.categories : isNumber ? [least === most ? valueText(k, least) : "any value"] : ["no", "yes"];
  const order = values.map((_, i) => i);
  if (isText) order.sort((a, b) => values[a].localeCompare(values[b], "en", { numeric: true }));
  for (const i of order) select.append(element("option", { value: i }, values[i]));
  if (isText && input.may_be_new) select.append(element("option", { value: "new" }, "— another one —"));
  if (input.may_miss) select.append(element("option", { value: "missing" }, "— missing —"));
  const read = () => {
    if (select.value === "missing") return null;
    if (select.value === "new") return NEW;
    return isText ? values[Number(select.value)] : isNumber ? number : Number(select.value);
  };
  select.value = values.length >> 1; // categories are in the order of their mean targets: start in the middle
  row[k] = read();
  select.addEventListener("input", () => change(k, read()));
  setters[k] = (value) => {
    const place = isText ? values.indexOf(value) : isNumber ? 0 : value;
    if (isNumber && value !== null) number = value;
    select.value = value === null ? "missing" : value === NEW || (isText && place < 0) ? "new" : place;
    change(k, read());
  };
  return select;
}

const NEW = Symbol("a category that is not listed");

// A number to type, a slider beside it, and a box for a missing value. What is no number counts as missing where that
// may be, and else as the last number that was there.
function numberEntry(input, k, id, entry) {
  const [low, high, middle, step] = input.range, isDate = input.kind === "datetime";
  const decimals = Math.min(100, Math.max(0, Math.round(-Math.log10(step))));
  const typed = element("input", input.days ? { id, type: "date" } : isDate ? { id, type: "datetime-local", step: "1" } : { id, type: "number", step: "any", inputmode: "decimal" });
  const slider = element("input", { type: "range", min: low, max: high, step, "aria-label": `${input.name}, slider` });
  const problem = element("small", { class: "problem", id: `problem-${k}`, role: "status" });
  const box = input.may_miss ? element("input", { type: "checkbox", id: `missing-${k}` }) : null;
  const write = (value) => (typed.value = isDate ? new Date(value / 1000).toISOString().slice(0, input.days ? 10 : 19) : String(value));
  const read = () => (isDate ? Date.parse(input.days ? typed.value : `${typed.value}Z`) * 1000 : typed.value === "" ? NaN : Number(typed.value));
  let last = middle;
  const use = (value) => {
    const isNumber = Number.isFinite(value);
    if (isNumber) slider.value = last = value;
    if (box) box.checked = !isNumber;
    entry.parentNode.classList.toggle("is-missing", Boolean(box) && !isNumber);
    typed.setAttribute("aria-invalid", !box && !isNumber);
    problem.textContent = !isNumber ? (box ? "" : `This is no ${isDate ? "date" : "number"}; the last one counts.`) : beyond(value);
    change(k, box && !isNumber ? null : last);
  };
  const [least, most] = input.seen ?? [-Infinity, Infinity];
  const told = (value) => (isDate ? new Date(value / 1000).toISOString().slice(0, 10) : nice(value, 6));
  const beyond = (value) =>
    value < least || value > most ? `Beyond ${told(least)} to ${told(most)}, which the model knows: it predicts as for the nearest value.` : "";
  setters[k] = (value) => {
    if (value !== null) write(value);
    use(value === null ? NaN : read());
  };
  typed.setAttribute("aria-describedby", problem.id);
  write(middle);
  slider.value = middle;
  row[k] = last = read();
  typed.addEventListener("input", () => use(read()));
  slider.addEventListener("input", () => {
    write(isDate ? Number(slider.value) : Number(Number(slider.value).toFixed(decimals)));
    use(read());
  });
  entry.append(typed);
  if (!box) return [slider, problem];
  const none = element("label", { class: "none" });
  none.append(box, "missing");
  box.addEventListener("input", () => {
    if (!box.checked && !Number.isFinite(read())) write(last);
    use(box.checked ? NaN : read());
  });
  entry.append(none);
  return [slider, problem];
}

let waiting = false;
function change(k, value) {
  row[k] = value;
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    answer();
  });
}

// ---- the answer ----------------------------------------------------------------------------------------------------------

function answer() {
  if (!family) return;
  const codes = encode(row);
  tellSettings();
  if (sums) {
    if (family.hasClasses) showClasses(boostedProbs(codes));
    else showNumbers(boostedDistribution(codes));
    return;
  }
  const parts = components(codes);
  if (family.hasClasses) showClasses(classProbs(parts));
  else showNumbers(numberDistribution(parts));
  if (svg) showPath(codes);
}

function meter(share, colour = null) {
  const track = element("div", { class: "meter" });
  const bar = element("span", { style: `width:${(100 * share).toFixed(2)}%` + (colour ? `;--of:${colour}` : "") });
  track.append(bar);
  return track;
}

function showClasses(probs) {
  const best = probs.indexOf(Math.max(...probs));
  byId("said").textContent = `${data.classes[best]} with probability ${percent(probs[best])}`;
  const table = element("table", { class: "odds" });
  const order = probs.map((_, c) => c);
  if (probs.length > 8) order.sort((a, b) => probs[b] - probs[a]);
  for (const c of order.slice(0, 20)) {
    const line = element("tr", { "data-class": c, "data-value": probs[c] });
    const bar = element("td");
    bar.append(meter(probs[c], classColour(c)));
    line.append(element("th", { scope: "row" }, data.classes[c]), bar, element("td", {}, percent(probs[c])));
    table.append(line);
  }
  byId("prediction").replaceChildren(table);
}

function showNumbers(dist) {
  const [low, middle, high] = [0.05, 0.5, 0.95].map(dist.quantile);
  const isTime = LAST_TIME !== null, told = isTime ? timeText : nice;
  const ends = high > LAST_TIME ? `longer than ${nice(low)} with probability 95%` : `between ${nice(low)} and ${nice(high)} with probability 90%`;
  byId("said").textContent = isTime ? `Median ${told(middle)}; ${ends}` : `${nice(dist.mean)}; between ${nice(low)} and ${nice(high)} with probability 90%`;
  const list = element("dl", { class: "numbers" });
  const moments = isTime ? { [upToLast()]: dist.meanUpTo(LAST_TIME) } : { mean: dist.mean, std: dist.std };
  const facts = { ...moments, "5%": low, median: middle, "95%": high };
  for (const [name, value] of Object.entries(facts)) {
    const item = element("div", { "data-name": name, "data-value": value });
    item.append(element("dt", {}, name), element("dd", {}, told(value, 5)));
    list.append(item);
  }
  const most = isTime ? LAST_TIME : Infinity;
  byId("prediction").replaceChildren(densityChart(dist, Math.min(low, most), Math.min(high, most), most), list);
}

// The density, or a stick for each count, from a little below the 5% quantile to a little above the 95% one.
function densityChart(dist, low, high, most = Infinity) {
  const width = 440, height = 170, base = height - 24, reach = 0.6 * Math.max(high - low, IS_COUNT ? 4 : 1e-12);
  const [from, to] = [IS_POSITIVE ? Math.max(IS_COUNT ? -0.5 : 0, low - reach) : low - reach, Math.min(high + reach, most)];
  const x = (y) => ((y - from) / (to - from)) * width;
  const chart = shape("svg", { class: "density", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Predictive distribution; the middle 90% is shaded" });
  const points = [];
  if (IS_COUNT) {
    const step = Math.max(1, Math.ceil((to - from) / 150));
    for (let k = Math.max(0, Math.ceil(from)); k <= to; k += step) points.push([k, dist.density(k)]);
  } else for (let i = 0; i <= 120; i++) points.push([from + ((to - from) * i) / 120, dist.density(from + ((to - from) * i) / 120)]);
  const top = Math.max(...points.map((p) => p[1])), y = (d) => base - (d / top) * (base - 10);
  if (IS_COUNT) {
    for (const [k, d] of points) {
      const isInside = k >= low && k <= high;
      chart.append(shape("path", { class: "stick", opacity: isInside ? 1 : 0.4, d: `M${x(k)} ${base}V${y(d)}` }));
    }
  } else {
    const path = (some) => some.map(([a, d]) => `${x(a).toFixed(1)} ${y(d).toFixed(1)}`).join("L");
    const inside = points.filter(([a]) => a > low && a < high);
    chart.append(shape("path", { class: "area", d: `M${x(from)} ${base}L${path(points)}L${x(to)} ${base}Z` }));
    if (inside.length) {
      const ends = [[low, dist.density(low)], ...inside, [high, dist.density(high)]];
      chart.append(shape("path", { class: "inside", d: `M${x(low)} ${base}L${path(ends)}L${x(high)} ${base}Z` }));
    }
    chart.append(shape("path", { class: "curve", d: `M${path(points)}` }));
  }
  if (Number.isFinite(dist.mean) && most === Infinity) chart.append(shape("path", { class: "at-mean", d: `M${x(dist.mean)} ${base}V8` }));
  chart.append(shape("path", { class: "grid", d: `M0 ${base}H${width}` }));
  for (const value of [low, high]) {
    const text = nice(value, 3), half = 4 * text.length; // so that no end of it is cut off
    chart.append(shape("text", { x: Math.min(Math.max(x(value), half), width - half), y: height - 8, "text-anchor": "middle" }, text));
  }
  return chart;
}

// ---- the way ---------------------------------------------------------------------------------------------------------------

function showPath(codes) {
  const path = walk(view.tree, codes);
  view.path = new Set(path.map((step) => step.node));
  markPath();
  const steps = leaves ? heaviestRegions(codes) : path.map(treeStep);
  byId("path-title").textContent = leaves ? "The regions that weigh most" : trees.length > 1 ? `On its way through tree ${view.tree.number + 1}` : "On its way through the tree";
  byId("path-hint").textContent = leaves
    ? "Sets of conditions that the row fulfils, and the share of the prediction that each has."
    : "How probable it is that each node is the row's leaf; the picture above marks the way.";
  byId("path").replaceChildren(...steps.map(pathItem));
}

function treeStep({ tree, node, weight }) {
  const said = node ? `${question(tree, tree.parent[node])} ${nodeAnswer(tree, node)}` : "all rows";
  return { said, weight, outcome: leafOutcome(tree.statistics, node), rows: weightText(tree.statistics, node), node };
}

function heaviestRegions(codes) {
  const found = regions(codes).sort((a, b) => b.weight - a.weight);
  return found.slice(0, 10).map(({ leaf, first, stop, weight }) => {
    const said = [];
    for (let j = first; j < stop; j++) said.push(conditionText(leaves.column[j], leaves.low[j], leaves.high[j]));
    const outcome = leafOutcome(leaves.statistics, leaf);
    return { said: said.join(" and ") || "all rows", weight, outcome, rows: weightText(leaves.statistics, leaf), node: leaf };
  });
}

function conditionText(k, low, high) {
  const column = data.columns[k], name = data.features[k], last = column.n_codes - 1;
  if (low > last) return `${name} missing`;
  if (low === 0 && high === last) return `${name} known`;
  const orMissing = high > last ? " or missing" : "";
  if (!isOrdered(column)) {
    const names = namesOf(column, low, Math.min(high, last));
    const others = namesOf(column, 0, last).filter((one) => !names.includes(one));
    return `${name} ${setText(names, others)}${orMissing}`;
  }
  const above = low > 0 ? codeName(column, low - 1) + " < " : "";
  const upTo = high < last ? ` ≤ ${codeName(column, high)}` : "";
  return `${above}${name}${upTo}${orMissing}`;
}

function pathItem({ said, weight, outcome, rows, node }) {
  const item = element("li", { "data-node": node, "data-value": weight });
  const where = element("span", { class: "where" }, said);
  where.append(element("small", {}, [outcomeText(outcome), rows].filter(Boolean).join(" · ")));
  item.append(where, meter(weight), element("span", { class: "share" }, percent(weight)));
  return item;
}
