// Sums of trees: the value of the last node on a row's way through each tree is added to a score.

// Children of nodes in level order follow each other, by twos where nothing else is said, so counting finds the first.
function unpackSums({ arrays: packed, base, n_values: width }) {
  const sizes = unpack(packed.sizes), value = unpack(packed.value), questions = unpack(packed.feature);
  const thresholds = unpack(packed.threshold), missing = unpack(packed.missing_child), n = questions.length;
  const widths = packed.n_children && unpack(packed.n_children);
  const sums = { sizes, value, base, width, feature: new Int32Array(n), threshold: new Int32Array(n), missingChild: new Int32Array(n), firstChild: new Int32Array(n) };
  let start = 0, inner = 0;
  for (const size of sizes) {
    let next = start + 1;
    for (let s = start; s < start + size; s++) {
      sums.feature[s] = questions[s] - 1;
      if (sums.feature[s] < 0) continue;
      sums.firstChild[s] = next;
      sums.threshold[s] = thresholds[inner] - 1;
      sums.missingChild[s] = missing[inner] - 1;
      next += widths ? widths[inner] : 2;
      inner++;
    }
    start += size;
  }
  return sums;
}

const sums = data.boosted && unpackSums(data.boosted);
const linedSums = data.boosted?.lined && unpackSums(data.boosted.lined);
const meanSums = data.boosted?.means && unpackSums(data.boosted.means);

// One score, or one a class. A tree has a value for each of them in every node, or one value, which tree t adds to score t modulo their number.
function scoresOf(sums, codes) {
  const scores = Float64Array.from(sums.base), width = sums.width;
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
  const scores = Array.from(scoresOf(sums, codes)), { weight, sharpness } = data.boosted;
  const own = softmax(scores.length === 1 ? [0, scores[0]] : scores);
  if (!trees.length) return own;
  const log = (p) => Math.log(Math.max(p, 1e-300));
  return softmax(classProbs(components(codes)).map((p, c) => sharpness * ((1 - weight) * log(p) + weight * log(own[c]))));
}

// The centre of numbers: by boosted trees, some of them with lines, and by the mean of a forest.
function centreOf(codes) {
  const { lined, link, weight } = data.boosted;
  let own = scoresOf(sums, codes)[0];
  if (linedSums) {
    const each = scoresOf(linedSums, codes);
    own += each[0] + lined.columns.reduce((sum, k, j) => sum + each[1 + j] * (lined.points[j][codes[k]] ?? 0), 0);
  }
  if (!meanSums) return own;
  const mean = scoresOf(meanSums, codes)[0];
  const centre = link.averages_logs || !link.sign ? mean : link.sign * Math.log(mean);
  return Number.isFinite(centre) ? (1 - weight) * centre + weight * own : own;
}

// The distribution about the centre, which is one more column of its trees.
function boostedDistribution(codes) {
  const { link, centre: column } = data.boosted, centre = centreOf(codes);
  const parts = components([...codes, codeOf(column, centre)]), factor = Math.exp(link.sign * centre);
  if (link.in_exposure) return numberDistribution(parts, factor);
  const dist = numberDistribution(parts);
  return link.sign ? moved(dist, 0, factor) : moved(dist, centre, 1);
}

function moved({ mean, variance, density, cdf, meanUpTo, quantile }, shift, scale) {
  const before = (y) => (y - shift) / scale, after = (y) => shift + scale * y;
  return {
    mean: after(mean), variance: scale * scale * variance, std: scale * Math.sqrt(variance),
    density: (y) => density(before(y)) / scale, cdf: (y) => cdf(before(y)),
    meanUpTo: (y) => after(meanUpTo(before(y))), quantile: (p) => after(quantile(p)),
  };
}
