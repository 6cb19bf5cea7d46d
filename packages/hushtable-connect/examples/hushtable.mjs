// Reads models of hushtable, and scores rows with them, bit-identical to Python.
//
//   import { load } from "./hushtable.mjs";
//   const model = await load(bytes);             // of a .hush file, or of hushtable export -o m.json
//   model.score({ age: 71, ward: "north" });     // a number: low is abnormal
//   model.isOutlier([[71, "north"], [180, null]]);
//
// One file, without dependencies: an ES module for browsers and Node 18 or later. These pages describe
// its rules: docs/explanation/score.md, docs/reference/file-format.md, and docs/how-to/export.md.

const PROTOCOL = 1; // of .hush files
const JSON_PROTOCOL = 2; // of hushtable-model JSON
const LABELS = 1; // version of the rules for comparing texts
// White space and marks without width, at both ends of a text; and variation selectors.
const BLANK = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200f\\u2028\\u2029\\u202f\\u205f\\u2060\\u3000\\ufeff]+";
const OUTER = new RegExp(`^${BLANK}|${BLANK}$`, "g"), SELECTORS = /[\ufe0e\ufe0f]/g;
const LEVELS = 65280; // codes of a number: 1 to LEVELS; 0 is missing
const CORNER = 23080, CORNER_BITS = 16; // of a category's vector
const FARTHEST = 1e300; // greatest distance of a value beyond its range, in ranges
const UNIT = 2 ** 20; // scores of cells are multiples of 1 / UNIT
const DOUBT = 2 ** -49; // greatest relative error of two logarithms
const MOST_CELLS = 65536; // most cells of one table
const USE_JSON = "use the JSON of hushtable export MODEL -o model.json, which holds the scores";

/** The error for a refused model or row. */
export class HushError extends Error {
  name = "HushError";
}

/**
 * Read a model from the bytes of a .hush file (detector, sketch, release, local model), or from
 * the JSON of `hushtable export`.
 *
 * @param {ArrayBuffer|Uint8Array|string} content
 * @returns {Promise<Model>}
 */
export async function load(content) {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : asBytes(content);
  // A container begins with a length, which has a zero byte; a JSON text never has one.
  const container = bytes.subarray(0, 8).includes(0);
  try {
    return new Model(container ? await fromContainer(bytes) : await fromJson(bytes));
  } catch (error) {
    if (error instanceof HushError) throw error;
    throw new HushError(`an entry is missing or has the wrong type (${error.message}): ${AGAIN}`);
  }
}

/** A model that scores rows. */
class Model {
  constructor({ features, labels, family, arrays, offsets, values, unit, threshold, planId }) {
    check(labels === 0 || labels === LABELS, `rules for texts ${show(labels)} are unknown: get a newer reader`);
    this.features = features.map((feature) => encoder(feature, labels > 0));
    this.codes = new Int32Array(features.length); // of one row
    /** @type {string[]} names of the columns, in order */
    this.names = features.map((feature) => feature.name);
    /** @type {string} "bits" or "rows" */
    this.unit = unit;
    /** @type {?number} rows that score below it are outliers; null if the model has no threshold */
    this.threshold = threshold;
    /** @type {string} */
    this.planId = planId;
    const tables = tablesOf(family, arrays, features);
    check(same(tables.offsets, offsets), "the tables do not fit their cells");
    const fits = values.length === offsets.at(-1) && values.every(Number.isFinite);
    check(fits, "the scores do not fit the cells");
    this.nTables = arrays.depth.length;
    this.sum = tables.summing(values);
    this.margin = (family.margin ?? 0) / LEVELS;
    this.depth = leastSum(values, offsets, this.nTables) / this.nTables - 1;
  }

  /**
   * Score one or several rows. A row is an array in the order of `names`, or an object by them;
   * null, undefined and NaN are missing values. Low is abnormal.
   *
   * @returns {number|Float64Array}
   */
  score(rows) {
    if (!areRows(rows)) return this.#one(rows, 0);
    return Float64Array.from(rows, (row, i) => this.#one(row, i));
  }

  /** Return whether a row, or each of several rows, scores below the threshold. */
  isOutlier(rows) {
    const line = this.threshold;
    check(
      Number.isFinite(line),
      "the file holds no threshold: set model.threshold to a score, or use the JSON of " +
        "hushtable export, which has one unless there is too much noise",
    );
    const scores = this.score(rows);
    return typeof scores === "number" ? scores < line : Array.from(scores, (s) => s < line);
  }

  #one(row, i) {
    const values = inOrder(row, this.names, i), { codes, features } = this;
    let beyond = 0;
    for (let j = 0; j < features.length; j++) {
      const feature = features[j], value = values[j];
      if (isMissing(value)) codes[j] = 0;
      else if (feature.places !== null) codes[j] = placeOf(feature, value, i);
      else {
        const x = numberOf(feature, value, i);
        codes[j] = codeOf(feature, x);
        if (x < feature.low || x > feature.high) beyond += beyondOf(feature, x);
      }
    }
    const clipped = this.sum(codes) / this.nTables;
    if (!(this.margin > 0 && beyond > 0)) return clipped;
    const near = this.margin / (this.margin + beyond), far = beyond / (this.margin + beyond);
    const whole = near * near + far * far;
    return clipped - ((far * far) / whole) * (clipped - this.depth);
  }
}

// --- rows to codes --------------------------------------------------------------------------------

function areRows(rows) {
  return Array.isArray(rows) && rows.every((row) => row !== null && typeof row === "object");
}

function inOrder(row, names, i) {
  if (row === null || typeof row !== "object") {
    throw new HushError(`row ${i} is ${show(row)}: needs an array or an object`);
  }
  if (Array.isArray(row) || ArrayBuffer.isView(row)) {
    check(row.length === names.length, `row ${i} has ${row.length} values: needs ${names.length}`);
    return row;
  }
  let lacking = names.filter((name) => !Object.hasOwn(row, name));
  if (lacking.length) {
    row = Object.fromEntries([...Object.entries(row).map(([k, v]) => [fold(k), v]), ...Object.entries(row)]);
    lacking = names.filter((name) => !Object.hasOwn(row, name));
  }
  check(!lacking.length, `row ${i} has no ${lacking.map(show)}: give null for a missing value`);
  return names.map((name) => row[name]);
}

/** Return a folded text, as newer plans compare texts: see hushtable.data.labels. */
const fold = (text) => text.replace(SELECTORS, "").normalize("NFC").replace(OUTER, "");

const isMissing = (value) => value === null || value === undefined || Number.isNaN(value);

/** The rules for codes of a feature's values; `places` has those of its categories. */
function encoder({ name, kind, low = 0, high = 0, categories }, folds) {
  const bounds = Number.isFinite(low) && Number.isFinite(high) && low <= high;
  check(bounds, `feature ${show(name)}: the range is not valid`);
  const span = high - low, quotient = LEVELS / span;
  // A range that is too narrow for a division is one point, like an empty range.
  const scale = Number.isFinite(quotient) ? quotient : 0;
  const unit = scale > 0 ? span : low === 0 ? 1 : Math.abs(low);
  if (kind === "numeric") return { name, low, high, scale, unit, places: null };
  const texts = Array.isArray(categories) && categories.every((c) => typeof c === "string");
  check(kind === "categorical" && texts, `feature ${show(name)} has no range and no categories`);
  const places = new Map(categories.map((category, k) => [category, k + 1]));
  check(places.size === categories.length, `feature ${show(name)} lists a category twice`);
  return { name, low, high, scale, unit, places, folds };
}

function numberOf({ name }, value, i) {
  const x = typeof value === "boolean" ? Number(value) : value;
  if (typeof x === "number" && Math.abs(x) !== Infinity) return x;
  throw new HushError(
    `feature ${show(name)} in row ${i} is ${show(value)}: needs a finite number, or null for a ` +
      "missing value",
  );
}

function codeOf({ low, scale }, x) {
  if (scale === 0) return 1;
  return Math.trunc(Math.min(Math.max((x - low) * scale, 0), LEVELS - 1)) + 1;
}

/** How far a number lies beyond its range, in ranges. */
function beyondOf({ low, high, unit }, x) {
  return Math.min(Math.max(low - x, x - high) / unit, FARTHEST);
}

function placeOf({ name, places, folds }, value, i) {
  const whole = typeof value === "boolean" || Number.isSafeInteger(value);
  if (typeof value !== "string" && !whole) {
    throw new HushError(
      `feature ${show(name)} in row ${i} is ${show(value)}: needs a text, a whole number, or null ` +
        "for a missing value",
    );
  }
  const place = places.get(String(value));
  if (place !== undefined || !folds) return place ?? places.size + 1; // the last: unseen
  const text = fold(String(value));
  return places.get(text) ?? (text === "" ? 0 : places.size + 1); // blank: missing
}

// --- codes to sums of the tables' values ------------------------------------------------------------

/** MurmurHash3's fmix32. */
function mix(key) {
  let h = key | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

function tablesOf(family, arrays, features) {
  const name = family.name, known = Object.hasOwn(FAMILIES, name);
  check(known, `its tables are of the family ${show(name)}, which scores no rows`);
  return FAMILIES[name](family, arrays, features);
}

/** By name: from parameters, arrays, and features to the cells, and the sum of a row's values. */
const FAMILIES = {
  RandomFeature(family, { depth, feature, cut, missing, subsets }, features) {
    const first = ends(depth, 1, 32), functions = first.at(-1);
    wholeNumber(family, "max_cells", 2, MOST_CELLS);
    check((family.max_cells & (family.max_cells - 1)) === 0, "max_cells is not a power of two");
    if ("margin" in family) wholeNumber(family, "margin", 0, LEVELS);
    check([feature, cut, missing].every((a) => a?.length === functions), DAMAGED);
    check(feature.every((j) => j < features.length) && subsets, DAMAGED);
    const sides = Array.from(feature, (j) => {
      return features[j].kind === "categorical" ? features[j].categories.length + 2 : 0;
    });
    const subsetAt = ends(sides, 0, 2 ** 31);
    check(subsetAt.at(-1) === subsets.length, DAMAGED);
    check([missing, subsets].every((a) => a.every((side) => side < 2)), DAMAGED);
    const cells = Array.from(depth, (bits) => Math.min(2 ** bits, family.max_cells));
    const offsets = ends(cells, 1, MOST_CELLS);
    // Whole numbers of one type, and no branches on values, because mixed types and branches are slow.
    const begin = Int32Array.from(first), start = Int32Array.from(offsets);
    const at = Int32Array.from(sides, (size, h) => (size > 0 ? subsetAt[h] : -1));
    const masks = Int32Array.from(cells, (n, t) => (n < 2 ** depth[t] ? n - 1 : 0));
    const summing = (values) => (codes) => {
      let sum = 0;
      for (let t = 0; t < depth.length; t++) {
        let bits = 0;
        for (let h = begin[t], end = begin[t + 1]; h < end; h++) {
          const code = codes[feature[h]];
          // The sign of a difference is 1 where the code is below the cut.
          if (at[h] < 0) bits = (bits << 1) | (code === 0 ? missing[h] : ((code - cut[h]) >>> 31) ^ 1);
          else bits = (bits << 1) | subsets[at[h] + code];
        }
        sum += values[start[t] + (masks[t] ? mix(bits) & masks[t] : bits)];
      }
      return sum;
    };
    return { offsets, summing };
  },

  SubspaceGrid(family, arrays, features) {
    const { depth, feature, width, shift } = arrays;
    const first = ends(depth, 1, 255), functions = first.at(-1);
    check([feature, width, shift].every((a) => a?.length === functions), DAMAGED);
    check(feature.every((j) => j < features.length) && width.every((w) => w > 1), DAMAGED);
    const texts = features.map(({ kind }) => kind === "categorical");
    return countMin(family, arrays, first, () => (codes, h) => {
      const code = codes[feature[h]];
      if (code === 0) return 0;
      if (!texts[feature[h]]) return 1 + Math.floor((code - 1 + shift[h]) / width[h]);
      return 1 + (mix(code ^ shift[h]) % (Math.floor(LEVELS / width[h]) + 1));
    });
  },

  RandomProjection(family, arrays, features) {
    const { depth, width, shift } = arrays;
    const first = ends(depth, 1, 255), functions = first.at(-1);
    check([width, shift].every((a) => a?.length === functions), DAMAGED);
    check(width.every((w) => w > 0), DAMAGED);
    const projecting = projections(arrays, features, functions);
    return countMin(family, arrays, first, (codes) => {
      const project = projecting(codes);
      return (_, h) => Math.trunc((project(h) + shift[h]) / width[h]);
    });
  },

  SimHash(_family, arrays, features) {
    const { depth, cut } = arrays;
    const first = ends(depth, 1, 16), functions = first.at(-1);
    check(cut?.length === functions, DAMAGED);
    const projecting = projections(arrays, features, functions);
    const offsets = ends(Array.from(depth, (bits) => 2 ** bits), 2, MOST_CELLS);
    const summing = (values) => (codes) => {
      const project = projecting(codes);
      let sum = 0;
      for (let t = 0; t < depth.length; t++) {
        let cell = 0;
        for (let h = first[t]; h < first[t + 1]; h++) cell = cell * 2 + Number(project(h) >= cut[h]);
        sum += values[offsets[t] + cell];
      }
      return sum;
    };
    return { offsets, summing };
  },
};

/**
 * Tables whose places are counted in CountMin sketches: the least of a row's values counts.
 * `placing` takes codes and returns a function from codes and a hash function to a place.
 */
function countMin(family, { depth, multiplier, seed }, first, placing) {
  wholeNumber(family, "sketch_rows", 1, 16);
  wholeNumber(family, "cells", 2, MOST_CELLS);
  const { sketch_rows: rows, cells } = family, m = depth.length;
  check(multiplier?.length === first[m] && seed?.length === m * rows, DAMAGED);
  const offsets = Float64Array.from({ length: m * rows + 1 }, (_, i) => i * cells);
  const summing = (values) => (codes) => {
    const place = placing(codes);
    let sum = 0;
    for (let t = 0; t < m; t++) {
      let key = 0;
      for (let h = first[t]; h < first[t + 1]; h++) {
        key = (key + Math.imul(place(codes, h), multiplier[h])) | 0;
      }
      let least = Infinity, mixed = 0;
      for (let r = 0; r < rows; r++) {
        if (r % 2 === 0) mixed = mix(key ^ seed[t * rows + r]);
        const half = r % 2 === 0 ? mixed & 0xffff : mixed >>> 16;
        const cell = (half * cells) >>> 16;
        least = Math.min(least, values[(t * rows + r) * cells + cell]);
      }
      sum += least;
    }
    return sum;
  };
  return { offsets, summing };
}

/** From codes to a function's product: whole numbers below 2^53, exact in any order. */
function projections({ weight, salt }, features, functions) {
  const sizes = features.map(({ kind }) => (kind === "categorical" ? CORNER_BITS : 1));
  const at = ends(sizes, 1, CORNER_BITS), d = at.at(-1);
  check(weight?.length === functions * d && salt?.length === features.length, DAMAGED);
  return (codes) => {
    const vector = new Float64Array(d);
    codes.forEach((code, j) => {
      if (code === 0) return;
      if (sizes[j] === 1) vector[at[j]] = 2 * code - (LEVELS + 1);
      else {
        const corner = mix(code ^ salt[j]);
        for (let b = 0; b < CORNER_BITS; b++) vector[at[j] + b] = (corner >>> b) & 1 ? CORNER : -CORNER;
      }
    });
    return (h) => {
      let product = 0;
      for (let k = 0; k < d; k++) product += weight[h * d + k] * vector[k];
      return product;
    };
  };
}

/** Return where each part of the given sizes begins, and where the last one ends. */
function ends(sizes, least, most) {
  check(sizes?.length > 0, DAMAGED);
  const found = new Float64Array(sizes.length + 1);
  for (let i = 0; i < sizes.length; i++) {
    check(sizes[i] >= least && sizes[i] <= most, DAMAGED);
    found[i + 1] = found[i] + sizes[i];
  }
  return found;
}

/** Sum, over the tables, of the least value of a table's cells. */
function leastSum(values, offsets, nTables) {
  const histograms = (offsets.length - 1) / nTables;
  let sum = 0;
  for (let t = 0; t < nTables; t++) {
    const from = offsets[t * histograms], to = offsets[(t + 1) * histograms];
    sum += values.subarray(from, to).reduce((a, b) => Math.min(a, b), Infinity);
  }
  return sum;
}

// --- counts to scores of cells ----------------------------------------------------------------------

/** Round to a multiple of 2^-20; NaN if another logarithm's last bits could change the result. */
function exact(value) {
  const scaled = value * UNIT, floor = Math.floor(scaled), part = scaled - floor;
  if (Math.abs(part - 0.5) <= Math.abs(scaled) * DOUBT) return NaN;
  return (part < 0.5 ? floor : floor + 1) / UNIT;
}

const LOGARITHMS = {
  log2: (count) => Math.log2(Math.max(count, 1)),
  smoothed_log2: (count, smoothing, rows) => Math.log2(count + smoothing * rows),
  pseudocount_log2: (count, smoothing) => Math.log2(count + smoothing * 1),
};

/**
 * Scores of cells by a score rule; NaN if JavaScript's logarithm leaves the last bit in doubt.
 *
 * @param {{name: string, smoothing: number}} rule
 * @param {ArrayLike<number>} counts
 * @param {number} rows that were counted
 * @param {number} noise its standard deviation, 0 for exact counts
 */
export function cellScores({ name, smoothing }, counts, rows, noise = 0) {
  if (name === "count") return Float64Array.from(counts);
  check(Object.hasOwn(LOGARITHMS, name), `the score rule ${show(name)} is unknown: ${USE_JSON}`);
  if (noise > 0 && smoothing) {
    return Float64Array.from(counts, (c) => exact(Math.asinh(c / (2 * noise)) / Math.LN2));
  }
  return Float64Array.from(counts, (c) => exact(LOGARITHMS[name](c, smoothing, rows)));
}

/** The scores of all cells, from the content of a .hush file. */
function scoresOfFile(kind, manifest, counts, offsets, first) {
  const { plan } = manifest, rule = plan.score;
  const noise = noiseOf(manifest), before = plan.first_noise_sd;
  const rowsOf = (c) => c.subarray(0, offsets[1]).reduce((a, b) => a + b, 0);
  let values;
  if (first && before === undefined && noise === 0) {
    const second = cellScores({ name: "log2" }, counts.map((c) => c + 1), 0);
    const own = cellScores(rule, first, rowsOf(first));
    values = second.map((value, i) => value + own[i]);
  } else {
    const rows = rowsOf(counts);
    check(noise > 0 || rows > 0, `the ${kind} counted no rows`);
    values = cellScores(rule, counts, rows, noise);
    if (first && before !== undefined) {
      const own = cellScores(rule, first, 0, before);
      values = values.map((value, i) => value + own[i]);
    }
  }
  check(!values.some(Number.isNaN), `JavaScript's logarithm leaves a last bit in doubt: ${USE_JSON}`);
  return values;
}

/** Standard deviation of the noise on each count; for a local model, of the others' noise. */
function noiseOf({ ledger, own }) {
  if (ledger === undefined) return 0;
  if (own === undefined) return ledger.noise_sd;
  check(
    ledger.mechanism === "discrete-gaussian",
    `a local model with noise of the mechanism ${show(ledger.mechanism)}: ${USE_JSON}`,
  );
  const others = ledger.shares.filter((share) => share.release !== own);
  return Math.hypot(...others.map((share) => share.scale));
}

// --- files ----------------------------------------------------------------------------------------

const DAMAGED = "the arrays do not fit each other: get the file again";
const AGAIN = "get the file again from its source";

/** By the names of safetensors and NumPy. */
const DTYPES = {
  U8: ["uint8", 1, Uint8Array, (view, at) => view.getUint8(at)],
  U16: ["uint16", 2, Uint16Array, (view, at) => view.getUint16(at, true)],
  U32: ["uint32", 4, Uint32Array, (view, at) => view.getUint32(at, true)],
  I32: ["int32", 4, Int32Array, (view, at) => view.getInt32(at, true)],
  I64: ["int64", 8, Float64Array, (view, at) => whole(view.getBigInt64(at, true))],
  F64: ["float64", 8, Float64Array, (view, at) => view.getFloat64(at, true)],
};
const BY_NAME = Object.fromEntries(Object.values(DTYPES).map((dtype) => [dtype[0], dtype]));

/** Return a whole number of 64 bits, NaN beyond what JavaScript's numbers hold. */
const whole = (big) => (big >= -(2n ** 53n) && big <= 2n ** 53n ? Number(big) : NaN);

/** Return an array of numbers from its bytes. */
function unpacked(bytes, [name, size, Kind, get], shape) {
  const n = count(shape);
  check(bytes.length === n * size, "an array has another size than it states: " + AGAIN);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length), found = new Kind(n);
  for (let i = 0; i < n; i++) found[i] = get(view, i * size);
  const fits = name !== "int64" || !found.some(Number.isNaN);
  check(fits, `whole numbers beyond 2^53, which JavaScript does not hold: ${USE_JSON}`);
  return found;
}

function count(shape) {
  const sizes = Array.isArray(shape) && shape.every((n) => Number.isSafeInteger(n) && n >= 0);
  check(sizes, "an array has no shape: " + AGAIN);
  return shape.reduce((a, b) => a * b, 1);
}

async function fromJson(bytes) {
  const content = parsed(bytes, "this is neither a .hush file nor JSON");
  check(content?.format === "hushtable-model", "this is JSON, but not from hushtable export: " + AGAIN);
  checkProtocol(content.protocol, JSON_PROTOCOL);
  const { digest, writer, ...covered } = content;
  check((await sha256(canonical(covered))) === digest, "the JSON was edited: " + AGAIN);
  const array = ({ dtype, shape, base64 }) => {
    check(Object.hasOwn(BY_NAME, dtype), `arrays of ${show(dtype)} are unknown`);
    return unpacked(decoded(base64), BY_NAME[dtype], shape);
  };
  const arrays = Object.entries(content.arrays).map(([name, packed]) => [name, array(packed)]);
  return {
    features: content.features,
    labels: content.labels ?? 0,
    family: content.family,
    arrays: Object.fromEntries(arrays),
    offsets: array(content.offsets),
    values: array(content.values),
    unit: content.unit,
    threshold: content.threshold,
    planId: content.plan_id,
  };
}

async function fromContainer(bytes) {
  const { manifest, arrays, digests } = await opened(bytes);
  const { kind, plan } = manifest;
  check(plan !== undefined && !manifest.hidden, "its hash functions are hidden: this is not supported any more");
  check(manifest.verdicts === undefined, `it has learned verdicts: ${USE_JSON}`);
  const { relations, differences } = plan.schema;
  const alone = relations === undefined && differences === undefined;
  check(alone, "it compares columns with one another, which this reader does not do: score with hushtable");
  checkReading(manifest.reading ?? {}, plan.schema.features);
  const own = Object.entries(digests).filter(([name]) => name.startsWith("plan."));
  const drawn = Object.fromEntries(own.map(([name, digest]) => [name.slice(5), digest]));
  const id = await sha256(canonical({ ...plan, arrays: drawn }));
  check(id === manifest.plan_id, "the plan does not have the id that the file states: " + AGAIN);
  const functions = Object.keys(drawn).map((name) => [name, arrays[`plan.${name}`]]);
  const { first_counts: first, ...family } = Object.fromEntries(functions);
  const features = plan.schema.features, { offsets } = tablesOf(plan.family, family, features);
  const cells = offsets.at(-1), fits = [arrays.counts, first ?? arrays.counts];
  check(fits.every((c) => c?.length === cells), DAMAGED);
  return {
    features,
    labels: plan.schema.labels ?? 0,
    family: plan.family,
    arrays: family,
    offsets,
    values: scoresOfFile(kind, manifest, arrays.counts, offsets, first),
    unit: plan.score.name === "count" ? "rows" : "bits",
    threshold: manifest.offset ?? null,
    planId: id,
  };
}

/** Check a safetensors container and its manifest; return manifest, arrays, and their digests. */
async function opened(bytes) {
  check(bytes.length >= 8, "a truncated file: " + AGAIN);
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  check(length <= bytes.length - 8, "not a .hush file, or a truncated one: " + AGAIN);
  const header = parsed(bytes.subarray(8, 8 + length), "not a .hush file");
  const { __metadata__: about, ...tensors } = header;
  check(typeof about?.hushtable === "string", "this is a safetensors file, but not from hushtable");
  const manifest = parsed(about.hushtable, "the manifest is damaged");
  checkProtocol(manifest?.protocol);
  const { digest, signature, writer, ...covered } = manifest;
  const intact = (await sha256(canonical(covered))) === digest;
  check(intact, "the manifest was edited after the file was written: " + AGAIN);
  const kind = manifest.kind, scores = ["detector", "sketch", "release", "local"].includes(kind);
  check(scores, `a file of the kind ${show(kind)} does not score: give a model, sketch, or release`);
  const names = Object.keys(tensors).sort(), arrays = {}, body = bytes.subarray(8 + length);
  check(same(names, Object.keys(manifest.arrays).sort()), "unexpected arrays: " + AGAIN);
  let read = 0;
  for (const name of names) {
    const { dtype, shape, data_offsets: [from, to] } = tensors[name];
    const said = manifest.arrays[name];
    check(from >= 0 && from <= to && to <= body.length, "a truncated file: " + AGAIN);
    const own = body.subarray(from, to);
    const alike = DTYPES[dtype]?.[0] === said.dtype && same(shape, said.shape);
    const unchanged = alike && (await sha256(own)) === said.sha256;
    check(unchanged, "the arrays are not those that the file was written with: " + AGAIN);
    arrays[name] = unpacked(own, DTYPES[dtype], shape);
    read += to - from;
  }
  check(read === body.length, "bytes that belong to no array: " + AGAIN);
  return { manifest, arrays, digests: manifest.arrays };
}

function checkProtocol(protocol, known = PROTOCOL) {
  check(Number.isSafeInteger(protocol) && protocol > 0, "the file names no protocol: " + AGAIN);
  check(
    protocol <= known,
    `written with protocol ${protocol}, but this reader knows up to ${known}: get a newer reader`,
  );
}

/** Refuse models that read values as missing; texts without a digit are not values of numbers. */
function checkReading({ missing = [], columns = {} }, features) {
  const several = Object.keys(columns).filter((n) => ["label", "answer"].includes(columns[n].kind));
  check(
    !several.length,
    `the model reads several spellings as one label in ${several.map(show)}: write each label in ` +
      "one way, and fit it again",
  );
  const categories = features.some(({ kind }) => kind === "categorical");
  const values = missing.filter((text) => categories || /\p{N}/u.test(text));
  check(
    !values.length,
    `the model reads ${values.map(show)} as missing values: replace them with null in the rows, ` +
      "and fit it again",
  );
}

function parsed(content, otherwise) {
  try {
    const text = typeof content === "string" ? content : new TextDecoder("utf-8", { fatal: true }).decode(content);
    const found = JSON.parse(text);
    check(found !== null && typeof found === "object", otherwise);
    return found;
  } catch (error) {
    throw new HushError(`${otherwise}, or a truncated one (${error.message}): ${AGAIN}`);
  }
}

/** Canonical JSON, by RFC 8785. */
function canonical(value) {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}

async function sha256(content) {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  // Node 18 has it only in a module; a browser has it on pages loaded by https.
  const crypto = globalThis.crypto ?? (await import("node:crypto")).webcrypto;
  check(crypto.subtle, "the browser cannot check digests on this page: serve it by https");
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function decoded(base64) {
  try {
    return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  } catch {
    throw new HushError("an array is not base64: " + AGAIN);
  }
}

function asBytes(content) {
  if (content instanceof ArrayBuffer) return new Uint8Array(content);
  check(ArrayBuffer.isView(content), "load needs the bytes of a file: an ArrayBuffer or Uint8Array");
  return new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
}

function wholeNumber(parameters, name, low, high) {
  const value = parameters[name];
  const fits = Number.isSafeInteger(value) && value >= low && value <= high;
  check(fits, `${name} is ${show(value)}: needs a whole number from ${low} to ${high}`);
}

function same(a, b) {
  return a?.length === b?.length && Array.prototype.every.call(a, (one, i) => one === b[i]);
}

function check(condition, words) {
  if (!condition) throw new HushError(words);
}

function show(value) {
  const plain = typeof value === "number" || typeof value === "bigint";
  return plain ? String(value) : JSON.stringify(value) ?? String(value);
}
