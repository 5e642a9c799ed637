// Why the model predicts what it does for a row of the table: what each column adds to the average prediction.

const MOST_REASONS = 12;

function showReasons(example) {
  const box = byId("reasons");
  box.hidden = !example?.reasons;
  if (box.hidden) return;
  const { of, base, value, parts } = example.reasons;
  byId("reasons-said").textContent = `${of}: ${nice(base)} for the average row, ${nice(value)} for this one. What each column adds:`;
  const order = parts.map((_, k) => k).sort((a, b) => Math.abs(parts[b]) - Math.abs(parts[a]));
  const shown = order.slice(0, MOST_REASONS), rest = order.slice(MOST_REASONS);
  const top = Math.max(...parts.map(Math.abs), 1e-300);
  const lines = shown.map((k) => reason(`${data.inputs[k].name} = ${valueText(k, example.values[k])}`, parts[k], top));
  if (rest.length) lines.push(reason(`${rest.length} other columns`, rest.reduce((sum, k) => sum + parts[k], 0), top));
  byId("reasons-list").replaceChildren(...lines);
}

// A bar to the right of the middle for what raises the prediction, to the left for what lowers it.
function reason(name, part, top) {
  const item = element("li", { "data-value": part }), track = element("span", { class: "both-ways" });
  const length = Math.min(50, (50 * Math.abs(part)) / top);
  track.append(element("span", { class: part < 0 ? "less" : "gain", style: `width:${length.toFixed(2)}%;left:${(part < 0 ? 50 - length : 50).toFixed(2)}%` }));
  item.append(element("span", { class: "name" }, name), track, element("span", { class: "value" }, `${part < 0 ? "−" : "+"}${nice(Math.abs(part), 3)}`));
  return item;
}
