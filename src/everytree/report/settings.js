// Settings of the what-if panel: rows of the table to load, a setting kept beside the present one, and a link to it.

const isSame = (a, b) => a.every((value, k) => value === b[k]);
const opened = []; // the setting that the page opens with
let kept = null; // a setting to compare with, and what was predicted for it

function startSettings() {
  if (data.examples.length) setRow(data.examples[data.examples.length >> 1].values); // a row as there are
  opened.push(...row);
  byId("reset").addEventListener("click", () => setRow(opened));
  byId("keep").addEventListener("click", () => keep(kept ? null : { row: [...row], said: byId("said").textContent }));
  byId("swap").addEventListener("click", () => {
    const other = kept.row;
    kept = { row: [...row], said: byId("said").textContent };
    setRow(other);
  });
  byId("copy-link").addEventListener("click", copyLink);
  byId("example").append(element("option", { value: "" }, "— own values —"));
  offerExamples((one) => setRow(one.values));
  addEventListener("hashchange", readLink);
  readLink();
}

function offerExamples(use) {
  const select = byId("example");
  data.examples.forEach((one, i) => select.append(element("option", { value: i }, one.label)));
  select.addEventListener("input", () => select.value !== "" && use(data.examples[Number(select.value)]));
  byId("pick-example").hidden = !data.examples.length;
}

// Rows of the table with what Python predicted for them, where the page cannot predict.
function startRows() {
  for (const name of ["changing", "settings-buttons", "way"]) byId(name).hidden = true;
  if (!data.examples.length) return;
  offerExamples(showRow);
  byId("example").value = data.examples.length >> 1;
  showRow(data.examples[data.examples.length >> 1]);
}

function showRow(example) {
  const list = element("dl", { class: "facts" });
  data.inputs.forEach((input, k) => {
    const item = element("div");
    item.append(element("dt", {}, input.name), element("dd", {}, valueText(k, example.values[k])));
    list.append(item);
  });
  byId("inputs").replaceChildren(list);
  byId("said").textContent = example.said;
  showTruth(example);
  showReasons(example);
}

function showTruth(example) {
  byId("truth").hidden = !example;
  byId("truth").textContent = example ? `True value of this row: ${example.truth}` : "";
}

function setRow(values) {
  values.forEach((value, k) => setters[k](value));
}

// ---- a setting beside the present one ----------------------------------------------------------------------------------

function keep(setting) {
  kept = setting;
  byId("keep").textContent = kept ? "Stop comparing" : "Keep to compare";
  byId("swap").hidden = !kept;
  tellSettings();
}

// Which row of the table this is, if any, and how it differs from the one that was kept.
function tellSettings() {
  const loaded = data.examples.findIndex((one) => isSame(one.values, row));
  byId("example").value = loaded < 0 ? "" : loaded;
  showReasons(data.examples[loaded]);
  showTruth(data.examples[loaded]);
  byId("kept").hidden = !kept;
  if (!kept) return;
  byId("kept-said").textContent = kept.said;
  const differ = data.inputs.map((_, k) => k).filter((k) => kept.row[k] !== row[k]);
  const lines = differ.map((k) => element("li", {}, `${data.inputs[k].name}: ${valueText(k, kept.row[k])} there, ${valueText(k, row[k])} here`));
  byId("kept-differences").replaceChildren(...(lines.length ? lines : [element("li", {}, "no value differs yet")]));
}

function valueText(k, value) {
  if (value === null) return "missing";
  if (value === NEW) return "another one";
  if (data.inputs[k].kind === "datetime" && (data.inputs[k].range || data.inputs[k].seen)) return new Date(value / 1000).toISOString().slice(0, 19).replace("T00:00:00", "").replace("T", " ");
  if (data.inputs[k].kind === "boolean") return value ? "yes" : "no";
  if (typeof value === "number" && !data.inputs[k].range && !data.inputs[k].seen) return "any value";
  return typeof value === "number" ? String(value) : value;
}

// ---- a link ------------------------------------------------------------------------------------------------------------

const LINK = "#row=";

function copyLink() {
  const values = row.map((value) => (value === NEW ? { new: true } : value));
  history.replaceState(null, "", LINK + encodeURIComponent(JSON.stringify(values)));
  const box = byId("link");
  box.value = location.href;
  box.hidden = false;
  box.select();
  const say = (text) => (byId("copy-link").textContent = text);
  navigator.clipboard?.writeText(location.href).then(() => say("Copied"), () => say("Copy it from here"));
}

// A link with as many values as there are columns, each of a kind that its column may have; any other is ignored.
function readLink() {
  if (!location.hash.startsWith(LINK)) return;
  let values = null;
  try {
    values = JSON.parse(decodeURIComponent(location.hash.slice(LINK.length)));
  } catch {
    return;
  }
  if (!Array.isArray(values) || values.length !== data.inputs.length) return;
  values = values.map((value) => (value?.new ? NEW : value));
  if (values.every(mayBe)) setRow(values);
}

function mayBe(value, k) {
  const input = data.inputs[k];
  if (value === null) return input.may_miss;
  if (input.kind === "categorical") return input.categories.includes(value) || (value === NEW && input.may_be_new);
  if (input.kind === "boolean") return value === 0 || value === 1;
  return typeof value === "number";
}
