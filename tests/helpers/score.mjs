// Score rows by models, for the tests: tasks come by stdin, outcomes go to stdout, as JSON.
import { readFile } from "node:fs/promises";
import { cellScores, load } from "../../packages/hushtable-connect/examples/hushtable.mjs";

const asBase64 = (array) => Buffer.from(array.buffer).toString("base64");

/** A task is one of {model, rows, repeat}, {bytes} and {rule, counts, rows, noise}. */
async function outcome(task) {
  if (task.rule) {
    const bytes = await readFile(task.counts);
    const counts = new BigInt64Array(bytes.buffer, bytes.byteOffset, bytes.length / 8);
    const scores = cellScores(task.rule, Array.from(counts, Number), task.rows, task.noise);
    return { scores: asBase64(scores) };
  }
  const content = task.model ? await readFile(task.model) : Buffer.from(task.bytes, "base64");
  const model = await load(content);
  const rows = task.rows ?? JSON.parse(await readFile(task.rowsFile, "utf8"));
  const scores = model.score(rows);
  if (typeof scores === "number") return { score: scores };
  const { threshold, unit, names, planId } = model;
  const outliers = threshold === null ? null : model.isOutlier(rows);
  const found = { scores: asBase64(scores), outliers, threshold, unit, names, planId };
  if (!task.repeat) return found;
  const began = process.hrtime.bigint();
  for (let i = 0; i < task.repeat; i++) model.score(rows);
  const seconds = Number(process.hrtime.bigint() - began) / 1e9;
  return { ...found, seconds: seconds / task.repeat };
}

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const outcomes = [];
for (const task of JSON.parse(Buffer.concat(chunks).toString("utf8"))) {
  try {
    outcomes.push(await outcome(task));
  } catch (error) {
    outcomes.push({ error: error.message, kind: error.name });
  }
}
process.stdout.write(JSON.stringify(outcomes));
