// Boosted trees: the value of the last node on a row's way through each tree is added to a score.

// Children of nodes in level order follow each other by twos, so counting finds the first ones.
function unpackSums(packed) {
  const sizes = unpack(packed.sizes), value = unpack(packed.value), questions = unpack(packed.feature);
  const thresholds = unpack(packed.threshold), missing = unpack(packed.missing_child), n = questions.length;
  const sums = { sizes, value, feature: new Int32Array(n), threshold: new Int32Array(n), missingChild: new Int32Array(n), firstChild: new Int32Array(n) };
  let start = 0, inner = 0;
  for (const size of sizes) {
    let next = start + 1;
    for (let s = start; s < start + size; s++) {
      sums.feature[s] = questions[s] - 1;
      if (sums.feature[s] < 0) continue;
      sums.firstChild[s] = next;
      sums.threshold[s] = thresholds[inner] - 1;
      sums.missingChild[s] = missing[inner] - 1;
      next += 2;
      inner++;
    }
    start += size;
  }
  return sums;
}

const sums = data.boosted && unpackSums(data.boosted.arrays);

// One score, or one a class. A tree has a value for each of them in every node, or one value, which tree t adds to score t modulo their number.
function boostedScores(codes) {
  const scores = Float64Array.from(data.boosted.base), width = data.boosted.n_values;
  let start = 0;
  sums.sizes.forEach((size, t) => {
    let s = start;
    while (sums.feature[s] >= 0) {
      const next = child(sums, s, codes[sums.feature[s]]);
      if (next < 0) break;
      s = next;
    }
    for (let k = 0; k < width; k++) scores[(t * width + k) % scores.length] += sums.value[s * width + k];
    start += size;
  });
  return scores;
}

function softmax(scores) {
  const top = Math.max(...scores), powers = scores.map((s) => Math.exp(s - top));
  const total = powers.reduce((sum, p) => sum + p, 0);
  return powers.map((p) => p / total);
}

// Class probabilities of boosted trees; where they are mixed with a forest, the weighted mean of both logarithms.
function boostedProbs(codes) {
  if (data.classes.length === 1) return [1];
  const scores = Array.from(boostedScores(codes)), { weight, sharpness } = data.boosted;
  const own = softmax(scores.length === 1 ? [0, scores[0]] : scores);
  if (!trees.length) return own;
  const log = (p) => Math.log(Math.max(p, 1e-300));
  return softmax(classProbs(components(codes)).map((p, c) => sharpness * ((1 - weight) * log(p) + weight * log(own[c]))));
}
