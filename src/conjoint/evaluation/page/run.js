// The map of nodes and the explanations that were made beforehand. All data is in the page; text is never HTML.
const p = JSON.parse(document.getElementById("nodes").textContent);
const el = (id) => document.getElementById(id);
const colours = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8a8a8a"];
const canvas = el("map"), select = el("node");
let at = 0;

const className = (k) => (k < 0 ? "not known" : p.classes[k] ?? `class ${k}`);
const colour = (k) => (k < 0 ? "#b0b0b0" : colours[k % colours.length]);
const signed = (x) => (x === null ? "" : (x >= 0 ? "+" : "−") + Math.abs(x).toFixed(3));

function place(k) {
  const scale = (canvas.width - 30) / 1000;
  return [15 + p.points[k][0] * scale, 15 + p.points[k][1] * scale];
}

function draw() {
  const pen = canvas.getContext("2d");
  pen.clearRect(0, 0, canvas.width, canvas.height);
  p.points.forEach((_, k) => dot(pen, k, p.explained[k] >= 0 ? 5 : 2.5));
  if (p.points.length) {
    dot(pen, at, 8);
    pen.lineWidth = 2;
    pen.strokeStyle = getComputedStyle(document.body).color;
    pen.stroke();
  }
}

function dot(pen, k, radius) {
  pen.globalAlpha = radius > 3 ? 1 : 0.55;
  pen.fillStyle = colour(p.labels[k]);
  pen.beginPath();
  pen.arc(...place(k), radius, 0, 2 * Math.PI);
  pen.fill();
}

function tell(k) {
  at = k;
  const right = p.labels[k] < 0 || p.labels[k] === p.predicted[k] ? "" : " (wrong)";
  el("tip").textContent = `${p.names[k]}: class ${className(p.labels[k])}, predicted ${className(p.predicted[k])}${right}, ` +
    `${(p.sure[k] / 10).toFixed(1)}% sure`;
  draw();
}

function nearest(event) {
  const box = canvas.getBoundingClientRect(), scale = canvas.width / box.width;
  const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
  let best = 0, least = Infinity;
  p.points.forEach((_, k) => {
    const [px, py] = place(k), far = (px - x) ** 2 + (py - y) ** 2;
    if (far < least) [best, least] = [k, far];
  });
  return best;
}

function table(title, headers, rows) {
  const box = document.createElement("div"), made = document.createElement("table");
  box.className = "scroll";
  made.createCaption().textContent = title;
  box.tabIndex = 0;
  const head = made.createTHead().insertRow();
  const isWord = headers.map((_, k) => rows.some((row) => !/^[+−-]?[\d.]*$/.test(row[k])));
  headers.forEach((name, k) => {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    if (isWord[k]) cell.className = "word";
    head.append(cell);
  });
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((value, k) => {
      const cell = line.insertCell();
      cell.textContent = value;
      if (isWord[k]) cell.className = "word";
    });
  }
  box.append(made);
  return box;
}

function show(k) {
  const w = p.whys[k], parts = ["feature", "structural", "conjoint"].filter((part) => w.neighbours.some((one) => part in one));
  select.value = k;
  const label = w.label === null ? "" : `, labelled ${w.label}`;
  el("about").textContent = `${w.name ?? w.node}: predicted ${w.predicted} (${w.probability.toFixed(3)})${label}. ` +
    `${w.judged ?? ""} Without any edge ${w.without_edges.toFixed(3)}` +
    (w.without_own_features === null ? "." : `, without its own features ${w.without_own_features.toFixed(3)}.`);
  const blocks = [];
  if (w.members.length) blocks.push(table("Members", ["member", "weight", "predicted", "probability", "if left out"],
    w.members.map((m) => [m.name, m.weight.toFixed(2), m.predicted, m.probability.toFixed(3), signed(m.change)])));
  if (w.neighbours.length) blocks.push(table("Neighbours: the change if the edge is removed, and the attention",
    ["neighbour", "class", "predicted", "change", ...parts],
    w.neighbours.map((n) => [n.name ?? n.id, n.class ?? "", n.predicted, n.change === null ? "itself" : signed(n.change),
      ...parts.map((part) => n[part].toFixed(3))])));
  if (w.paths.length) blocks.push(table("Paths: the change if the last edge is removed", ["path", "change"],
    w.paths.map((one) => [one.path.map((n) => n.name ?? n.id).join(" – "), signed(one.change)])));
  if (w.features.length) blocks.push(table("Its own features", ["feature", "value", "change"],
    w.features.map((f) => [f.feature, f.value.toPrecision(3), signed(f.change)])));
  el("why").replaceChildren(...blocks);
  const found = p.explained.indexOf(k);
  if (found >= 0) tell(found);
}

function pick(k) {
  tell(k);
  if (p.explained[k] >= 0) show(p.explained[k]);
}

p.classes.forEach((name, k) => {
  const item = document.createElement("li"), spot = document.createElement("span");
  spot.style.background = colour(k);
  item.append(spot, name);
  el("legend").append(item);
});
p.whys.forEach((w, k) => select.add(new Option(`${w.name ?? w.node}${w.wrong ? " (wrong)" : ""}`, k)));
select.addEventListener("change", () => show(Number(select.value)));
const step = (by) => p.whys.length && show((Number(select.value) + by + p.whys.length) % p.whys.length);
el("previous").addEventListener("click", () => step(-1));
el("next").addEventListener("click", () => step(1));
canvas.addEventListener("mousemove", (event) => p.points.length && tell(nearest(event)));
canvas.addEventListener("click", (event) => p.points.length && pick(nearest(event)));
canvas.addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (by === undefined || !p.points.length) return;
  event.preventDefault();
  pick((at + by + p.points.length) % p.points.length);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
if (p.whys.length) show(0);
else el("pick").hidden = true;
if (!p.points.length) canvas.hidden = true;
draw();
