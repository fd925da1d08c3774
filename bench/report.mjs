/**
 * A figure: `{ scenario, name, unit, floor?, troupe, target? }` where floor and troupe are `{ p50, p90 }`, and a target is
 * `{ kind: "ratio" | "difference" | "most" | "least", limit }`, judged on the medians.
 */
export function judge(figure) {
  const { floor, troupe, target } = figure;
  const value = {
    ratio: () => troupe.p50 / floor.p50,
    difference: () => troupe.p50 - floor.p50,
    most: () => troupe.p50,
    least: () => troupe.p50,
  }[target?.kind ?? "none"]?.();
  if (value === undefined) return figure;
  const pass = target.kind === "least" ? value >= target.limit : value <= target.limit;
  return { ...figure, value, pass };
}

/** One line on a target that is not met. */
export function missed(figure) {
  const absolute = figure.target.kind === "most" || figure.target.kind === "least";
  const found = absolute ? both(figure.troupe, figure.unit) : comparison(figure);
  return `${figure.scenario}: ${figure.name}: ${found}, wanted ${targetText(figure)}`;
}

export function machineLine({ cores, processor, memoryGB, node, system, load, syncMs }) {
  const machine = `${cores} cores (${processor}), ${memoryGB} GB, ${system}, Node ${node}`;
  return `${machine}, load ${load}, append + fdatasync ${syncMs} ms`;
}

export function figureTable(figures) {
  const rows = figures.map((figure) => [
    figure.scenario,
    figure.name,
    figure.floor ? both(figure.floor, figure.unit) : "–",
    both(figure.troupe, figure.unit),
    comparison(figure),
    figure.target ? targetText(figure) : "–",
    figure.pass === undefined ? "" : figure.pass ? "PASS" : "FAIL",
  ]);
  return table([["scenario", "figure", "floor p50 / p90", "troupe p50 / p90", "compared", "target", ""], ...rows]);
}

function comparison({ floor, troupe, unit, target }) {
  if (!floor) return "";
  const difference = troupe.p50 - floor.p50;
  if (target?.kind === "difference") return `${difference < 0 ? "−" : "+"}${number(Math.abs(difference))} ${unit}`;
  return `×${(troupe.p50 / floor.p50).toFixed(2)}`;
}

function targetText({ target: { kind, limit }, unit }) {
  switch (kind) {
    case "ratio":
      return `≤ ×${limit}`;
    case "difference":
      return `≤ +${limit} ${unit}`;
    case "most":
      return `≤ ${unit === "×" ? "×" : ""}${limit}${unit === "×" ? "" : ` ${unit}`}`;
    default:
      return `≥ ${limit} ${unit}`;
  }
}

function both({ p50, p90 }, unit) {
  if (unit === "×") return `×${p50.toFixed(2)}`;
  return p90 === undefined ? `${number(p50)} ${unit}` : `${number(p50)} / ${number(p90)} ${unit}`;
}

function number(value) {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return value.toFixed(digits);
}

function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const line = (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(" | ")} |`;
  const [head, ...rest] = rows;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rest.map(line)].join("\n");
}
