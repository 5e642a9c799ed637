// The model: arrays out of the page, values to codes, a row's way through every tree, and what its leaves predict.
// The same arithmetic as in Python; tests compare the two to nine digits.

const data = JSON.parse(document.getElementById("model-data").textContent);

// ---- arrays --------------------------------------------------------------------------------------------------------

const KINDS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f8: Float64Array };

// Values, or places in a list of them.
function unpack([kind, text, list]) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const values = new KINDS[kind](bytes.buffer);
  if (!list) return values;
  const distinct = unpack(["f8", list]);
  return Float64Array.from(values, (place) => distinct[place]);
}

// Trees out of the joined arrays. Children of nodes in level order follow each other, so counting finds the first ones.
function unpackTrees(packed) {
  const of = {};
  for (const name of Object.keys(packed.arrays)) of[name] = unpack(packed.arrays[name]);
  const columns = packed.statistics.map(unpack);
  let node = 0, inner = 0, end = 0;
  return packed.sizes.map((size, number) => {
    const tree = {
      number, size, allSize: packed.all_sizes[number],
      nChildren: of.n_children.subarray(node, node + size),
      feature: new Int32Array(size).fill(-1), threshold: new Int32Array(size), missingChild: new Int32Array(size),
      split: new Float64Array(size), firstChild: new Int32Array(size), parent: new Int32Array(size).fill(-1),
      depth: new Int32Array(size), statistics: columns.map(() => new Float64Array(size)),
    };
    let next = 1;
    for (let s = 0; s < size; s++) {
      if (!tree.nChildren[s]) {
        columns.forEach((column, j) => (tree.statistics[j][s] = column[end]));
        end++;
        continue;
      }
      tree.feature[s] = of.feature[inner];
      tree.threshold[s] = of.threshold[inner] - 1;
      tree.missingChild[s] = of.missing_child[inner] - 1;
      tree.split[s] = (of.split_high[inner] * 256 + of.split_low[inner]) / (2 ** 40 - 1);
      tree.firstChild[s] = next;
      for (let c = 0; c < tree.nChildren[s]; c++, next++) {
        tree.parent[next] = s;
        tree.depth[next] = tree.depth[s] + 1;
      }
      inner++;
    }
    for (let s = size - 1; s > 0; s--) for (const column of tree.statistics) column[tree.parent[s]] += column[s];
    node += size;
    return tree;
  });
}

function unpackLeaves(packed) {
  const leaves = { statistics: packed.statistics.map(unpack) };
  for (const name of ["weight", "n_conditions", "column", "low", "high"]) leaves[name] = unpack(packed[name]);
  return leaves;
}

const trees = data.trees ? unpackTrees(data.trees) : [];
const leaves = data.leaves && unpackLeaves(data.leaves);

// ---- values to codes: a code, or that there is none ------------------------------------------------------------------

const MISSING = -1, UNSEEN = -2;

// `values`: one an input column; null is missing, a category is text, anything else a number.
function encode(values) {
  return data.columns.map((column) =>
    codeOf(column, column.formula ? computed(column.formula, values) : values[column.input]));
}

function codeOf(column, value) {
  let place;
  if (value === null || Number.isNaN(value)) return missingCode(column);
  if (column.kind === "categorical") {
    place = column.categories.indexOf(value);
    if (place < 0) {
      if (column.new_code >= 0) return column.new_code;
      return column.has_unseen ? UNSEEN : missingCode(column);
    }
  } else place = countBelow(column.cuts, column.single ? Math.fround(value) : value);
  const code = column.groups.length ? column.groups[place] : place;
  return code < 0 ? missingCode(column) : code;
}

// The number that follows from those of two other columns; null where one of these is missing.
function computed([operator, first, second, firstScale, secondScale], values) {
  const [a, b] = [first, second].map((k) => values[data.columns[k].input]);
  if (a === null || b === null) return null;
  const x = a / firstScale, y = b / secondScale;
  if (operator === "/") return y === 0 ? 0 : within(x / y);
  return within(operator === "*" ? x * y : operator === "+" ? x + y : x - y);
}
const within = (x) => Math.min(Math.max(x, -Number.MAX_VALUE), Number.MAX_VALUE);

// Models of every tree have one more code for missing values, where there were any.
const missingCode = (column) => (data.missing_is_code && column.has_missing ? column.n_codes : MISSING);

// How many cuts are strictly below a number.
function countBelow(cuts, x) {
  let low = 0, high = cuts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cuts[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

// ---- the way through a tree ------------------------------------------------------------------------------------------

// The child that an answer leads to, or -1 where no branch takes it.
function child(tree, s, code) {
  if (code === UNSEEN) return -1;
  if (code === MISSING) return tree.missingChild[s] < 0 ? -1 : tree.firstChild[s] + tree.missingChild[s];
  return tree.firstChild[s] + (tree.threshold[s] < 0 ? code : Number(code > tree.threshold[s]));
}

// Nodes on a row's way, each with the probability that it is the row's leaf; the last one takes what is left.
function walk(tree, codes) {
  const path = [];
  let s = 0, reached = 1;
  for (;;) {
    const next = tree.nChildren[s] ? child(tree, s, codes[tree.feature[s]]) : -1;
    if (next < 0) break;
    path.push({ tree, node: s, weight: reached * (1 - tree.split[s]) });
    reached *= tree.split[s];
    s = next;
  }
  path.push({ tree, node: s, weight: reached });
  return path;
}

// Of a model of every tree: the regions that hold the row.
function regions(codes) {
  const found = [];
  let total = 0;
  for (let i = 0, c = 0; i < leaves.weight.length; i++) {
    const stop = c + leaves.n_conditions[i];
    let holds = true;
    for (let j = c; j < stop && holds; j++) {
      const code = codes[leaves.column[j]];
      holds = code >= leaves.low[j] && code <= leaves.high[j];
    }
    if (holds) {
      found.push({ leaf: i, first: c, stop, weight: leaves.weight[i] });
      total += leaves.weight[i];
    }
    c = stop;
  }
  for (const one of found) one.weight /= total;
  return found;
}

// ---- predictions -------------------------------------------------------------------------------------------------------

// All (statistics, place, weight) that a row's prediction is the mixture of.
function components(codes) {
  if (leaves) return regions(codes).map((one) => ({ statistics: leaves.statistics, place: one.leaf, weight: one.weight }));
  const all = [];
  trees.forEach((tree, t) => {
    for (const { node, weight } of walk(tree, codes))
      if (weight > 0) all.push({ statistics: tree.statistics, place: node, weight: weight * data.weights[t] });
  });
  return all;
}

// Class probabilities: the average, each to the power of the sharpness, scaled to sum to 1.
function classProbs(parts) {
  const probs = new Float64Array(data.prior.length);
  for (const { statistics, place, weight } of parts) {
    const leaf = family.predict(family.parameters(statistics, place));
    leaf.probs.forEach((p, c) => (probs[c] += weight * p));
  }
  const top = Math.max(...probs);
  const sharp = Array.from(probs, (p) => (data.sharpness === 1 ? p : (p / top) ** data.sharpness));
  const total = sharp.reduce((sum, p) => sum + p, 0);
  return data.classes.length === 1 ? [1] : sharp.map((p) => p / total);
}

// A distribution over numbers: the mixture, drawn towards its mean by the sharpness.
function numberDistribution(parts, exposure = 1) {
  const mixed = parts.map(({ statistics, place, weight }) => ({ weight, ...family.predict(family.parameters(statistics, place), exposure) }));
  const total = mixed.reduce((sum, one) => sum + one.weight, 0);
  for (const one of mixed) one.weight /= total;
  const centre = family.centre();
  let first = 0, second = 0;
  for (const one of mixed) {
    const away = one.mean - centre;
    first += one.weight * away;
    second += one.weight * (one.variance + away * away);
  }
  const mean = centre + first, sharp = data.sharpness;
  const variance = Math.max(second - first * first, 0) / (sharp * sharp);
  const before = (y) => (sharp === 1 ? y : mean + (y - mean) * sharp);
  const density = (y) => sharp * mixed.reduce((sum, one) => sum + one.weight * Math.exp(one.logProb(before(y))), 0);
  const cdf = (y) => mixed.reduce((sum, one) => sum + one.weight * one.cdf(before(y)), 0);
  const meanUpTo = (y) => mixed.reduce((sum, one) => sum + one.weight * one.meanUpTo(y), 0);
  return { mean, variance, std: Math.sqrt(variance), meanUpTo, density, cdf, quantile: (p) => quantile(p, { mean, variance, density, cdf }) };
}

// The smallest y with cdf(y) >= p: a bracket, then Newton's steps as long as they stay inside it.
function quantile(p, { mean, variance, density, cdf }) {
  const step = Number.isFinite(variance) && variance > 0 ? Math.sqrt(variance) : 1;
  const middle = Number.isFinite(mean) ? mean : 0;
  let low = IS_POSITIVE ? (IS_COUNT ? -1 : 0) : middle - step, high = middle + step;
  if (!IS_POSITIVE) for (let reach = step; cdf(low) >= p; reach *= 2) low -= reach;
  for (let reach = step; cdf(high) < p; reach *= 2) high += reach;
  if (IS_COUNT) {
    low = Math.floor(low);
    for (high = Math.ceil(high); high - low > 1; ) {
      const half = Math.floor((low + high) / 2);
      if (cdf(half) >= p) high = half;
      else low = half;
    }
    return high;
  }
  let y = 0.5 * (low + high);
  for (let i = 0; i < 200 && high - low > 1e-13 * (Math.abs(low) + Math.abs(high)); i++) {
    const over = cdf(y) - p;
    if (over >= 0) high = y;
    else low = y;
    const newton = y - over / density(y);
    if (Math.abs(newton - y) < 1e-13 * (step + Math.abs(y))) return newton;
    y = newton > low && newton < high ? newton : 0.5 * (low + high);
  }
  return y;
}
