// What a leaf model is in the page: how much its nodes have seen, its parameters a posteriori, and what these predict.
// The only file that knows families by name.

// Parameters that are those a priori plus additive statistics at place i.
const addedUp = (statistics, i) => data.prior.map((prior, j) => prior + statistics[j][i]);

// `predict`: mean, variance, log density or log probability, and distribution function, or the probabilities of classes.
const FAMILIES = {
  categorical: {
    hasClasses: true,
    seen: (statistics, i) => statistics.reduce((sum, column) => sum + column[i], 0),
    predict: (alpha) => {
      const total = alpha.reduce((sum, a) => sum + a, 0);
      return { probs: alpha.map((a) => a / total) };
    },
  },
  normal: {
    centre: () => data.prior[0],
    parameters: (statistics, i) => {
      const [mean, strength, shape, scale] = data.prior;
      const [n, first, second] = statistics.map((column) => column[i]);
      const total = strength + n;
      return [mean + first / total, total, shape + 0.5 * n, scale + 0.5 * (second - (first * first) / total)];
    },
    predict: ([mean, strength, shape, scale]) => {
      const freedom = 2 * shape, squared = (scale / shape) * (1 + 1 / strength), spread = Math.sqrt(squared);
      const constant = logGamma(shape + 0.5) - logGamma(shape) - 0.5 * Math.log(Math.PI * freedom * squared);
      return {
        mean: freedom > 1 ? mean : NaN,
        variance: freedom > 2 ? (squared * freedom) / (freedom - 2) : Infinity,
        logProb: (y) => constant - (shape + 0.5) * Math.log1p(((y - mean) / spread) ** 2 / freedom),
        cdf: (y) => studentCdf((y - mean) / spread, freedom),
      };
    },
  },
  poisson: {
    isCount: true,
    lowest: 0,
    unit: "exposure",
    note: " Counts are for an exposure of 1.",
    seen: (statistics, i) => statistics[1][i],
    predict: ([shape, perUnit], exposure = 1) => {
      const rate = perUnit / exposure, odds = 1 / rate;
      return {
        mean: shape / rate,
        variance: (shape / rate) * (1 + odds),
        logProb: (k) => logGamma(shape + k) - logGamma(shape) - logGamma(k + 1) - shape * Math.log1p(odds) - k * Math.log1p(rate),
        cdf: (y) => (y < 0 ? 0 : incompleteBeta(shape, Math.floor(y) + 1, 1 / (1 + odds))),
      };
    },
  },
  exponential: {
    lowest: 0,
    unit: "events",
    predict: ([shape, rate]) => {
      const mean = shape > 1 ? rate / (shape - 1) : Infinity;
      return {
        mean,
        variance: shape > 2 ? (mean * mean * shape) / (shape - 2) : Infinity,
        logProb: (y) => (y < 0 ? -Infinity : Math.log(shape) - Math.log(rate + y) - shape * Math.log1p(y / rate)),
        cdf: (y) => (y < 0 ? 0 : -Math.expm1(-shape * Math.log1p(y / rate))),
        meanUpTo: (y) => (Math.abs(shape - 1) < 1e-9 ? rate * Math.log1p(y / rate) : (-rate / (shape - 1)) * Math.expm1((1 - shape) * Math.log1p(y / rate))),
        median: rate * Math.expm1(Math.LN2 / shape),
      };
    },
  },
  geometric: {
    isCount: true,
    lowest: 0,
    predict: ([alpha, beta]) => {
      const logBeta = (a, b) => logGamma(a) + logGamma(b) - logGamma(a + b);
      return {
        mean: alpha > 1 ? beta / (alpha - 1) : Infinity,
        variance: alpha > 2 ? (alpha * beta * (alpha + beta - 1)) / ((alpha - 1) ** 2 * (alpha - 2)) : Infinity,
        logProb: (k) => logBeta(alpha + 1, beta + k) - logBeta(alpha, beta),
        cdf: (y) => (y < 0 ? 0 : -Math.expm1(logBeta(alpha, beta + Math.floor(y) + 1) - logBeta(alpha, beta))),
      };
    },
  },
};

// The family of this model; null where the page cannot predict.
const family = data.kernel && {
  hasClasses: false,
  isCount: false,
  lowest: -Infinity,
  unit: "rows",
  note: "",
  centre: () => 0,
  seen: (statistics, i) => statistics[0][i],
  parameters: addedUp,
  ...FAMILIES[data.kernel],
};
const IS_COUNT = Boolean(family && family.isCount);
const IS_POSITIVE = Boolean(family && family.lowest === 0);

// ---- special functions -----------------------------------------------------------------------------------------------

// Stirling's series, after steps up to where it has every digit.
function logGamma(x) {
  let product = 1;
  for (; x < 12; x++) product *= x;
  const z = 1 / (x * x);
  const series = (1 / 12 + z * (-1 / 360 + z * (1 / 1260 + z * (-1 / 1680 + z * (1 / 1188 - (z * 691) / 360360))))) / x;
  return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series - Math.log(product);
}

// The regularised incomplete beta function by its continued fraction, on the side where that converges fast.
function incompleteBeta(a, b, x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x));
  if (x > (a + 1) / (a + b + 2)) return 1 - (front * betaFraction(b, a, 1 - x)) / b;
  return (front * betaFraction(a, b, x)) / a;
}

function betaFraction(a, b, x) {
  const guard = (v) => (Math.abs(v) < 1e-300 ? 1e-300 : v);
  let c = 1, d = 1 / guard(1 - ((a + b) * x) / (a + 1)), value = d;
  for (let m = 1; m < 10000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / guard(1 + even * d);
    c = guard(1 + even / c);
    value *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / guard(1 + odd * d);
    c = guard(1 + odd / c);
    value *= d * c;
    if (Math.abs(d * c - 1) < 1e-16) break;
  }
  return value;
}

function studentCdf(t, freedom) {
  const tail = 0.5 * incompleteBeta(0.5 * freedom, 0.5, freedom / (freedom + t * t));
  return t > 0 ? 1 - tail : tail;
}
