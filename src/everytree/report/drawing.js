// The tree as a picture: from the most probable pruning to the whole meta-tree, folded and moved by the visitor.

const SVG = "http://www.w3.org/2000/svg";
const NARROW = 600; // pixels: below, boxes are smaller and closer
const BOX = { width: 190, height: 52, across: 248, down: 66 };
const CHIP = { width: 43 };
const MOST_DRAWN = 1000; // more could not be read, and would make the page slow
const READABLE = 0.68; // zoom from which the words in a box can be read: the tree opens with as many nodes as that allows
const FIRST_UNFOLDED = 31;
const LEAST_HELP = 0.5; // splits that are less likely to help other rows are not shown at first
const MOST_ZOOM = 1.6;

const byId = (id) => document.getElementById(id);
const percent = (share) => (share < 0.0005 ? "<0.1%" : share > 0.9995 && share < 1 ? ">99.9%" : `${(100 * share).toFixed(1)}%`);
function nice(value, digits = 4) {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "?";
  const rounded = Number(value.toPrecision(digits)), size = Math.abs(rounded);
  return size >= 1e4 && size < 1e9 ? rounded.toLocaleString("en", { maximumFractionDigits: digits }) : String(rounded);
}

function element(tag, attributes = {}, text = null) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== null) made.textContent = text;
  return made;
}

function shape(tag, attributes, text = null) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== null) made.textContent = text;
  return made;
}

// ---- words -----------------------------------------------------------------------------------------------------------

function codeName(column, code) {
  if (code >= column.n_codes) return "missing";
  if (!isOrdered(column)) return namesOf(column, code, code).join(", ");
  const place = column.groups.length ? column.groups.lastIndexOf(code) : code;
  return column.cut_names[place] ?? String(column.cuts[place]);
}

// Categories are numbered by their mean targets, an order that nobody sees: they are told as sets.
const isOrdered = (column) => column.kind !== "categorical" && column.kind !== "boolean";

// The categories of some codes in a row.
function namesOf(column, from, to) {
  const all = column.kind === "boolean" ? ["no", "yes"] : column.categories;
  const coded = all.map((name, i) => [column.groups.length ? column.groups[i] : i, name]);
  return coded.filter(([code]) => code >= from && code <= to).sort((a, b) => a[0] - b[0]).map(([, name]) => name);
}

const MOST_NAMED = 4, MOST_IN_TIP = 12;

// A set of categories: its members, or the others if these are few and it is large, or some and how many more.
function setText(names, others, most = MOST_NAMED) {
  if (names.length === 1) return `= ${names[0]}`;
  const isSmall = names.length > 0 && names.length <= most;
  const [word, listed] = isSmall || others.length > most ? ["in", names] : ["not in", others];
  if (listed.length <= most) return `${word} ${listed.join(", ")}`;
  return `${word} ${listed.slice(0, most - 1).join(", ")} and ${listed.length - most + 1} more`;
}

// The codes that go on to a child of a split, of those that reach it: from low to high, and perhaps a missing value.
function codesOfChild(tree, s, offset, { low, high, missing }) {
  const threshold = tree.threshold[s], takesMissing = tree.missingChild[s] === offset;
  if (takesMissing && (threshold < 0 || offset === 2)) return { low: 1, high: 0, missing };
  const [first, last] = threshold < 0 ? [offset, offset] : offset === 0 ? [0, threshold] : [threshold + 1, high];
  return { low: Math.max(low, first), high: Math.min(high, last), missing: missing && takesMissing };
}

// The codes of a column with which a row can reach a node.
function codesReaching(tree, s, feature) {
  if (!s) return { low: 0, high: Infinity, missing: true };
  const above = tree.parent[s], codes = codesReaching(tree, above, feature);
  return tree.feature[above] === feature ? codesOfChild(tree, above, s - tree.firstChild[above], codes) : codes;
}

// The codes of a column among those with names, and whether a missing value is among them.
function reachedCodes(column, { low, high, missing }) {
  const last = column.n_codes - 1;
  return [low, Math.min(high, last), missing || (data.missing_is_code && column.has_missing && low <= last + 1 && high > last)];
}

// The other columns above a node that code the same input of categories: their categories, and whether a missing value
// can reach the node.
function columnsBeside(tree, s, feature) {
  const input = data.columns[feature].input, features = new Set();
  for (let above = s; above; above = tree.parent[above]) features.add(tree.feature[tree.parent[above]]);
  const same = [...features].filter((other) => other !== feature && data.columns[other].input === input);
  return same.filter((other) => !isOrdered(data.columns[other])).map((other) => {
    const [low, high, missing] = reachedCodes(data.columns[other], codesReaching(tree, s, other));
    return { names: new Set(namesOf(data.columns[other], low, high)), missing };
  });
}

// The condition of the branch from a node to a child of it, as far as the path to the node leaves it open.
function answerText(tree, s, offset, most = MOST_NAMED) {
  const feature = tree.feature[s], column = data.columns[feature], last = column.n_codes - 1;
  const above = codesReaching(tree, s, feature), beside = isOrdered(column) ? [] : columnsBeside(tree, s, feature);
  const isLeft = (name) => beside.every((other) => other.names.has(name));
  const [low, high, ownMissing] = reachedCodes(column, codesOfChild(tree, s, offset, above));
  const missing = ownMissing && beside.every((other) => other.missing);
  const names = isOrdered(column) ? [] : namesOf(column, low, high).filter(isLeft);
  if (low > high || (beside.length && !names.length)) return missing ? "missing" : "no value";
  const orMissing = missing ? " or missing" : "";
  if (isOrdered(column)) {
    const bounds = [...(low > 0 ? [`> ${codeName(column, low - 1)}`] : []), ...(high < last ? [`≤ ${codeName(column, high)}`] : [])];
    return (bounds.join(", ") || "known") + orMissing;
  }
  const [first, end, missingBefore] = reachedCodes(column, above);
  const others = [...namesOf(column, first, low - 1), ...namesOf(column, high + 1, end)].filter(isLeft);
  if (!others.length && ((missingBefore && beside.every((other) => other.missing) && !missing) || names.length > most)) return `known${orMissing}`;
  return setText(names, others, most) + orMissing;
}

const question = (tree, s) => data.features[tree.feature[s]];
const nodeAnswer = (tree, s, most) => (s ? answerText(tree, tree.parent[s], s - tree.firstChild[tree.parent[s]], most) : "");

function weightText(statistics, i) {
  if (!family) return "";
  const weight = family.seen(statistics, i);
  const amount = Math.abs(weight - Math.round(weight)) < 1e-9 * Math.max(1, weight) ? Math.round(weight).toLocaleString("en") : weight.toFixed(1);
  return `${amount} ${amount === "1" ? family.unit.replace(/s$/, "") : family.unit}`;
}

function leafOutcome(statistics, i) {
  return family ? family.predict(family.parameters(statistics, i)) : {};
}

// Times of which some were cut short: what is beyond the longest that was seen is not known.
const LAST_TIME = data.last_time ?? null;
const timeText = (time, digits = 4) => (time > LAST_TIME ? `beyond ${nice(LAST_TIME, digits)}` : nice(time, digits));
const upToLast = () => `mean up to ${nice(LAST_TIME)}`;

function outcomeText(outcome) {
  if (!family) return "";
  if (LAST_TIME !== null) return `median ${timeText(outcome.median)}, ${upToLast()} ${nice(outcome.meanUpTo(LAST_TIME))}`;
  if (!outcome.probs) return `${nice(outcome.mean)} ± ${nice(Math.sqrt(outcome.variance), 3)}`;
  const best = data.classes.length === 2 ? 1 : outcome.probs.indexOf(Math.max(...outcome.probs));
  return `${data.classes[best] ?? data.classes[0]} ${percent(outcome.probs[best])}`;
}

const classColour = (c) => data.colours[c % data.colours.length];

// ---- which nodes ------------------------------------------------------------------------------------------------------

// Probability that each node is in the tree, and which nodes are split at first: those whose splits help other rows, where
// that is known, and else those of the most probable pruning. Made when first asked for.
function study(tree) {
  if (tree.prob) return tree;
  const { size, split, parent, nChildren, firstChild } = tree;
  tree.prob = new Float64Array(size);
  tree.prob[0] = 1;
  for (let s = 1; s < size; s++) tree.prob[s] = tree.prob[parent[s]] * split[parent[s]];
  tree.isSplit = new Uint8Array(size);
  const best = new Float64Array(size);
  for (let s = size - 1; s >= 0; s--) {
    if (!nChildren[s]) continue;
    let below = Math.log(split[s]);
    for (let c = 0; c < nChildren[s]; c++) below += best[firstChild[s] + c];
    const stop = Math.log1p(-split[s]);
    tree.isSplit[s] = below > stop;
    best[s] = Math.max(below, stop);
  }
  const helps = helpsOf(tree);
  if (helps) for (let s = 0; s < size; s++) tree.isSplit[s] = nChildren[s] && helps[s] >= LEAST_HELP;
  tree.nFirst = 1;
  const isFirst = new Uint8Array(size);
  isFirst[0] = 1;
  for (let s = 1; s < size; s++) tree.nFirst += isFirst[s] = isFirst[parent[s]] & tree.isSplit[parent[s]];
  tree.ranked = Float64Array.from(tree.prob).sort().reverse();
  return tree;
}

// The least probability of nodes to show: none beyond those that are shown at first at 0, all nodes at 100.
function leastShown(tree, reach) {
  if (reach === 0) return Infinity;
  const most = Math.min(tree.size, MOST_DRAWN);
  const wanted = tree.nFirst + Math.max(0, most - tree.nFirst) * (reach / 100) ** 2;
  if (reach === 100 && tree.size <= MOST_DRAWN) return 0;
  return tree.ranked[Math.min(Math.round(wanted), tree.size) - 1];
}

// ---- the picture ------------------------------------------------------------------------------------------------------

const view = { tree: null, reach: 0, least: Infinity, folds: new Map(), x: 0, y: 0, zoom: 1, at: 0, path: new Set(), drawn: new Map(), order: [] };
const svg = byId("drawing"), tip = byId("tip");
const stage = shape("g", {});
if (svg) svg.append(stage);

function isUnfolded(s) {
  const { tree } = view;
  if (!tree.nChildren[s]) return false;
  return view.folds.get(s) ?? (tree.isSplit[s] === 1 || tree.prob[tree.firstChild[s]] >= view.least);
}

// Rows for leaves from top to bottom; a node stands in the middle of its children.
function layOut() {
  const places = new Map(), { tree } = view;
  let row = 0;
  view.order = [];
  const visit = (s) => {
    view.order.push(s);
    const place = { x: tree.depth[s] * BOX.across, y: 0 };
    places.set(s, place);
    if (isUnfolded(s) && view.order.length < 4 * MOST_DRAWN) {
      const first = tree.firstChild[s], last = first + tree.nChildren[s] - 1;
      for (let c = first; c <= last; c++) visit(c);
      place.y = 0.5 * (places.get(first).y + places.get(last).y);
    } else place.y = BOX.down * row++;
  };
  visit(0);
  return places;
}

function draw() {
  const places = layOut(), { tree } = view;
  const links = [], nodes = [];
  view.drawn = new Map();
  view.places = places;
  view.scale = family && !family.hasClasses ? commonScale() : null;
  for (const s of view.order) {
    const { x, y } = places.get(s);
    if (s && places.has(tree.parent[s])) links.push(link(places.get(tree.parent[s]), { x, y }, s));
    const node = drawNode(s, x, y);
    view.drawn.set(s, node);
    nodes.push(node);
  }
  stage.replaceChildren(...links, ...nodes);
  if (!view.drawn.has(view.at)) view.at = 0;
  view.drawn.get(view.at).setAttribute("tabindex", "0");
  markPath();
  sayReach();
}

function link(from, to, s) {
  const x1 = from.x + BOX.width, y1 = from.y + BOX.height / 2, x2 = to.x, y2 = to.y + BOX.height / 2, half = (x1 + x2) / 2;
  return shape("path", { class: "link", "data-to": s, d: `M${x1} ${y1}C${half} ${y1} ${half} ${y2} ${x2} ${y2}` });
}

const pen = document.createElement("canvas").getContext("2d");

// As much of a text as there is room for, in pixels of a font.
function fitted(text, width, font) {
  pen.font = `${font} ${getComputedStyle(document.body).fontFamily}`;
  if (pen.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (high - low > 1) {
    const half = (low + high) >> 1;
    if (pen.measureText(`${text.slice(0, half).trimEnd()}…`).width <= width) low = half;
    else high = half;
  }
  return `${text.slice(0, low).trimEnd()}…`;
}

function drawNode(s, x, y) {
  const { tree } = view, isInner = tree.nChildren[s] > 0, unfolded = isUnfolded(s);
  const outcome = leafOutcome(tree.statistics, s), answer = nodeAnswer(tree, s);
  const words = [answer, isInner ? `${question(tree, s)}? ${chanceText(tree)} ${chance(tree, s).toFixed(3)}` : "leaf", outcomeText(outcome), weightText(tree.statistics, s)];
  const node = shape("g", {
    class: "node", transform: `translate(${x} ${y})`, role: "treeitem", tabindex: "-1", "data-node": s,
    "aria-level": tree.depth[s] + 1, "aria-label": words.filter(Boolean).join(", "), "aria-describedby": "tip",
    opacity: (0.5 + 0.5 * tree.prob[s]).toFixed(3),
  });
  if (isInner) node.setAttribute("aria-expanded", unfolded);
  node.append(shape("rect", { class: "box", width: BOX.width, height: BOX.height, rx: 9 }));
  const room = BOX.width - 20, beside = isInner ? room - CHIP.width : room;
  node.append(shape("text", { class: "answer-text", x: 10, y: 18 }, fitted(answer || "all rows", beside, "12px")));
  if (isInner) node.append(shape("text", { class: "asks", x: 10, y: 36 }, fitted(`${question(tree, s)}?`, room, "600 13px")), ...chanceChip(chance(tree, s)));
  else node.append(shape("text", { x: 10, y: 35 }, fitted(outcomeText(outcome) || "leaf", room, "13px")));
  node.append(...outcomeBar(outcome));
  if (isInner && !unfolded) node.append(shape("text", { class: "more", x: BOX.width + 8, y: 31 }, `+${nodesBelow(s)}`));
  return node;
}

function nodesBelow(s) {
  const { tree } = view;
  let count = 0;
  for (const waiting = [s]; waiting.length; ) {
    const node = waiting.pop();
    for (let c = 0; c < tree.nChildren[node]; c++) waiting.push(tree.firstChild[node] + c), count++;
    if (count > 9999) break;
  }
  return count.toLocaleString("en");
}

// The probability that a split helps rows it was not grown on, where it is known, and else that of the posterior.
const helpsOf = (tree) => (tree.number === data.first_shown ? data.trees.helps : null);
const chance = (tree, s) => helpsOf(tree)?.[s] ?? tree.split[s];
const chanceText = (tree) => (helpsOf(tree) ? "helps other rows with probability" : "split with probability");

function chanceChip(prob) {
  const fill = `color-mix(in oklab, var(--dark) ${(100 * prob).toFixed(0)}%, var(--pale))`;
  return [
    shape("rect", { x: BOX.width - CHIP.width - 7, y: 4, width: CHIP.width, height: 16, rx: 5, style: `fill:${fill}` }),
    shape("text", { class: "chance", x: BOX.width - CHIP.width / 2 - 7, y: 16, "text-anchor": "middle", style: `fill:var(${prob > 0.5 ? "--accent-ink" : "--ink"})` }, prob > 0.9995 && prob < 1 ? ">.999" : prob.toFixed(3)),
  ];
}

// Class probabilities side by side, or one standard deviation to both sides of the mean.
function outcomeBar(outcome) {
  const left = 10, width = BOX.width - 20, y = BOX.height - 10, height = 5, bars = [];
  if (outcome.probs) {
    let from = 0;
    outcome.probs.forEach((p, c) => {
      bars.push(shape("rect", { x: left + width * from, y, width: Math.max(width * p, 0), height, style: `fill:${classColour(c)}` }));
      from += p;
    });
  } else if (view.scale && LAST_TIME !== null) {
    const at = left + width * Math.min(Math.max(outcome.meanUpTo(LAST_TIME) / LAST_TIME, 0), 1);
    bars.push(shape("rect", { class: "scale", x: left, y, width, height }), shape("rect", { class: "mean", x: at - 1.5, y: y - 1, width: 3, height: height + 2 }));
  } else if (view.scale && Number.isFinite(outcome.mean)) {
    const [low, high] = view.scale, place = (v) => left + width * Math.min(Math.max((v - low) / (high - low || 1), 0), 1);
    const spread = Math.sqrt(outcome.variance), a = place(outcome.mean - spread), b = place(outcome.mean + spread);
    bars.push(shape("rect", { class: "scale", x: left, y, width, height }), shape("rect", { class: "band", x: a, y, width: b - a, height }));
    bars.push(shape("rect", { class: "mean", x: place(outcome.mean) - 1.5, y: y - 1, width: 3, height: height + 2 }));
  }
  return bars;
}

// One scale for all nodes: the root's mean and two and a half standard deviations.
function commonScale() {
  const root = leafOutcome(view.tree.statistics, 0), reach = 2.5 * Math.sqrt(root.variance);
  return Number.isFinite(reach) ? [IS_POSITIVE ? Math.max(0, root.mean - reach) : root.mean - reach, root.mean + reach] : [0, 1];
}

function markPath() {
  for (const [s, node] of view.drawn) node.classList.toggle("on-path", view.path.has(s));
  for (const one of stage.querySelectorAll(".link")) one.classList.toggle("on-path", view.path.has(Number(one.dataset.to)));
}

function sayReach() {
  const { tree, reach, least } = view, all = tree.allSize.toLocaleString("en"), n = view.order.length.toLocaleString("en");
  const first = helpsOf(tree) ? "the splits that help other rows" : "the most probable pruning";
  const what = reach === 0 ? first : least === 0 ? "every node" : `nodes with probability ${nice(least, 2)} or more`;
  const shown = countShown(), folded = shown > view.order.length ? `, ${n} of them unfolded` : "";
  byId("reach-text").textContent = `${what}: ${shown.toLocaleString("en")} of ${all} nodes${folded}`;
  byId("reach").setAttribute("aria-valuetext", byId("reach-text").textContent);
}

// ---- moving -----------------------------------------------------------------------------------------------------------

function place() {
  stage.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.zoom})`);
}

function extent() {
  let right = 0, low = 0, high = 0;
  for (const { x, y } of view.places.values()) (right = Math.max(right, x)), (low = Math.min(low, y)), (high = Math.max(high, y));
  const folded = view.order.some((s) => view.tree.nChildren[s] && !isUnfolded(s)); // "+12" stands beside the box
  return { width: right + BOX.width + (folded ? 50 : 0), top: low, height: high - low + BOX.height };
}

const LEAST_HEIGHT = 220, MARGIN = 16;
const mostHeight = () => Math.min(0.62 * innerHeight, 560);
const widthZoom = () => Math.min(MOST_ZOOM, (svg.clientWidth - 2 * MARGIN) / extent().width);

// The zoom at which the whole tree is in the box, when that is as high as it may become.
function fittingZoom() {
  return Math.min(widthZoom(), (Math.max(LEAST_HEIGHT, mostHeight()) - 2 * MARGIN) / extent().height);
}

// Show the whole tree: it fills the box from side to side, or from top to bottom.
function fit() {
  const { width, height, top } = extent(), wanted = widthZoom() * height + 2 * MARGIN;
  byId("canvas").style.height = `${Math.max(LEAST_HEIGHT, Math.min(wanted, mostHeight()))}px`;
  view.zoom = Math.max(0.04, fittingZoom());
  view.x = (svg.clientWidth - view.zoom * width) / 2;
  view.y = (svg.clientHeight - view.zoom * height) / 2 - view.zoom * top;
  place();
}

function zoomBy(factor, x = svg.clientWidth / 2, y = svg.clientHeight / 2) {
  const zoom = Math.min(3, Math.max(0.04, view.zoom * factor)), ratio = zoom / view.zoom;
  view.x = x - ratio * (x - view.x);
  view.y = y - ratio * (y - view.y);
  view.zoom = zoom;
  place();
  hideTip();
}

function reveal(s) {
  const at = view.places.get(s), { zoom } = view, margin = 14;
  const left = view.x + zoom * at.x, top = view.y + zoom * at.y, w = zoom * BOX.width, h = zoom * BOX.height;
  view.x += Math.max(0, margin - left) - Math.max(0, left + w + margin - svg.clientWidth);
  view.y += Math.max(0, margin - top) - Math.max(0, top + h + margin - svg.clientHeight);
  place();
}

function toggle(s) {
  if (!view.tree.nChildren[s]) return;
  const before = view.places.get(s), [x, y] = [before.x, before.y];
  view.folds.set(s, !isUnfolded(s));
  draw();
  const after = view.places.get(s); // the node that was clicked stays where it is
  view.x += view.zoom * (x - after.x);
  view.y += view.zoom * (y - after.y);
  place();
}

function focusNode(s) {
  view.drawn.get(view.at)?.setAttribute("tabindex", "-1");
  view.at = s;
  const node = view.drawn.get(s);
  node.setAttribute("tabindex", "0");
  reveal(s);
  node.focus({ preventScroll: true });
}

function showTip(s) {
  const { tree } = view, answer = nodeAnswer(tree, s, MOST_IN_TIP), at = view.places.get(s);
  const rows = [["in the tree", percent(tree.prob[s])]];
  if (tree.nChildren[s] && Number.isFinite(helpsOf(tree)?.[s])) rows.push(["helps other rows", percent(helpsOf(tree)[s])]);
  if (tree.nChildren[s]) rows.push(["split", percent(tree.split[s])]);
  if (family) rows.push(["seen", weightText(tree.statistics, s)], ...outcomeRows(leafOutcome(tree.statistics, s)));
  const list = element("dl");
  for (const [name, value] of rows) list.append(element("dt", {}, name), element("dd", {}, value));
  const said = s ? `${question(tree, tree.parent[s])} ${answer}` : "all rows";
  tip.replaceChildren(element("span", {}, said), element("b", {}, tree.nChildren[s] ? `${question(tree, s)}?` : "leaf"), list);
  tip.hidden = false;
  const canvas = byId("canvas"), below = view.y + view.zoom * (at.y + BOX.height) + 8;
  const left = Math.min(Math.max(view.x + view.zoom * at.x, 6), canvas.clientWidth - tip.offsetWidth - 6);
  const over = view.y + view.zoom * at.y - tip.offsetHeight - 8;
  const top = below + tip.offsetHeight < canvas.clientHeight ? below : Math.max(over, 4);
  tip.style.transform = `translate(${left}px, ${top}px)`;
}

function outcomeRows(outcome) {
  if (LAST_TIME !== null) return [["if a leaf: median", timeText(outcome.median, 5)], [upToLast(), nice(outcome.meanUpTo(LAST_TIME), 5)]];
  if (!outcome.probs) return [["if a leaf: mean", nice(outcome.mean, 5)], ["std", nice(Math.sqrt(outcome.variance), 4)]];
  const order = outcome.probs.map((p, c) => [p, c]).sort((a, b) => b[0] - a[0]).slice(0, 4);
  return order.map(([p, c]) => [data.classes[c] ?? "any other", percent(p)]);
}

function hideTip() {
  tip.hidden = true;
}

// ---- what the visitor does ----------------------------------------------------------------------------------------------

const nodeOf = (event) => {
  const node = event.target.closest?.(".node");
  return node ? Number(node.dataset.node) : -1;
};

function listen() {
  const pointers = new Map();
  let moved = 0, apart = 0;
  svg.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (pointers.size === 1) moved = 0;
    apart = 0;
  });
  addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    moved += Math.abs(event.clientX - before[0]) + Math.abs(event.clientY - before[1]);
    if (moved < 5) return;
    hideTip();
    svg.classList.add("moving");
    if (pointers.size === 2) {
      const [a, b] = [...pointers.values()], now = Math.hypot(a[0] - b[0], a[1] - b[1]), frame = svg.getBoundingClientRect();
      if (apart) zoomBy(now / apart, (a[0] + b[0]) / 2 - frame.left, (a[1] + b[1]) / 2 - frame.top);
      apart = now;
    }
    view.x += (event.clientX - before[0]) / pointers.size;
    view.y += (event.clientY - before[1]) / pointers.size;
    place();
  });
  for (const name of ["pointerup", "pointercancel"])
    addEventListener(name, (event) => {
      pointers.delete(event.pointerId);
      svg.classList.remove("moving");
    });
  svg.addEventListener("click", (event) => {
    const s = nodeOf(event);
    if (s < 0 || moved >= 5) return;
    toggle(s);
    focusNode(s);
  });
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const frame = svg.getBoundingClientRect();
    zoomBy(Math.exp(-event.deltaY / 240), event.clientX - frame.left, event.clientY - frame.top);
  }, { passive: false });
  svg.addEventListener("pointerover", (event) => (nodeOf(event) >= 0 ? showTip(nodeOf(event)) : hideTip()));
  svg.addEventListener("pointerleave", hideTip);
  svg.addEventListener("focusin", (event) => nodeOf(event) >= 0 && showTip(nodeOf(event)));
  svg.addEventListener("focusout", hideTip);
  svg.addEventListener("keydown", onKey);
}

function onKey(event) {
  const s = nodeOf(event), { tree, order } = view;
  if (s < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
  const here = order.indexOf(s);
  const keys = {
    Enter: () => (toggle(s), focusNode(s)),
    " ": () => (toggle(s), focusNode(s)),
    ArrowRight: () => tree.nChildren[s] && (isUnfolded(s) ? focusNode(tree.firstChild[s]) : (toggle(s), focusNode(s))),
    ArrowLeft: () => (isUnfolded(s) ? (toggle(s), focusNode(s)) : s && focusNode(tree.parent[s])),
    ArrowDown: () => here + 1 < order.length && focusNode(order[here + 1]),
    ArrowUp: () => here > 0 && focusNode(order[here - 1]),
    Home: () => focusNode(0),
    End: () => focusNode(order[order.length - 1]),
    Escape: hideTip,
    "+": () => zoomBy(1.25),
    "=": () => zoomBy(1.25),
    "-": () => zoomBy(0.8),
    0: () => fit(),
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
}

function setReach(reach) {
  view.reach = reach;
  view.least = leastShown(view.tree, reach);
  hideTip();
  for (let most = FIRST_UNFOLDED; ; most -= 2) {
    foldAllBut(most);
    draw();
    if (most <= 3 || fittingZoom() >= READABLE) break;
  }
  fit();
}

// Unfold the nodes most probable to be in the tree, and fold what the slider shows beyond so many.
function foldAllBut(most) {
  const { tree, folds } = view, waiting = [0];
  folds.clear();
  for (let n = 1; waiting.length; ) {
    waiting.sort((a, b) => tree.prob[b] - tree.prob[a] || tree.depth[a] - tree.depth[b]);
    const s = waiting.shift();
    if (!isUnfolded(s)) continue;
    n += tree.nChildren[s];
    if (n > most && s) {
      folds.set(s, false);
      for (const other of waiting) if (isUnfolded(other)) folds.set(other, false);
      return;
    }
    for (let c = 0; c < tree.nChildren[s]; c++) waiting.push(tree.firstChild[s] + c);
  }
}

// How many nodes the slider shows, folded or not.
function countShown() {
  const { tree } = view;
  let count = 0;
  for (let s = 0; s < tree.size; s++) {
    const above = tree.parent[s];
    view.isShown[s] = s === 0 || (view.isShown[above] && (tree.isSplit[above] === 1 || tree.prob[s] >= view.least)) ? 1 : 0;
    count += view.isShown[s];
  }
  return count;
}

function showTree(number) {
  view.tree = study(trees[number]);
  view.isShown = new Uint8Array(view.tree.size);
  byId("chance-key").textContent = helpsOf(view.tree)
    ? "A number in a coloured field: probability that the split helps rows which it was not grown on."
    : "A number in a coloured field: posterior probability that the node is split.";
  view.at = 0;
  setReach(Number(byId("reach").value));
}

function startDrawing() {
  byId("picture").hidden = false;
  if (svg.clientWidth < NARROW) Object.assign(BOX, { width: 116, across: 130 });
  const select = byId("tree-select");
  if (trees.length > 1) {
    const order = trees.map((_, t) => t).sort((a, b) => data.weights[b] - data.weights[a] || data.evidence[b] - data.evidence[a]);
    const isUniform = data.weights.every((w) => Math.abs(w - data.weights[0]) < 1e-12);
    for (const t of order) {
      const weight = isUniform ? "" : `, weight ${percent(data.weights[t])}`;
      const text = `${t + 1}: evidence ${nice(data.evidence[t], 5)}${weight}`;
      select.append(element("option", { value: t }, text));
    }
    select.value = data.first_shown;
    byId("pick-tree").hidden = false;
  }
  data.classes.forEach((name, c) => byId("tree-key").append(element("span", { class: "key square", style: `--of:${classColour(c)}` }, name)));
  byId("tree-key").append(element("span", { id: "chance-key" }));
  if (family && !data.classes.length) byId("tree-key").append(element("span", {}, LAST_TIME === null ? "Bars: mean ± standard deviation of the node's rows." : `Bars: mean of times up to ${nice(LAST_TIME)}, the longest seen.`));
  byId("reach").addEventListener("input", () => setReach(Number(byId("reach").value)));
  byId("zoom-in").addEventListener("click", () => zoomBy(1.25));
  byId("zoom-out").addEventListener("click", () => zoomBy(0.8));
  byId("zoom-fit").addEventListener("click", () => fit());
  byId("unfold-all").addEventListener("click", () => {
    view.folds.clear();
    draw();
    fit();
  });
  listen();
  showTree(data.first_shown);
  addEventListener("resize", fit);
}
