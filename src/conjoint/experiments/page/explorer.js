// The map of papers and the table of those that the chosen one attends to. All data is in the page.
const portrait = JSON.parse(document.getElementById("portrait").textContent);
if (portrait === null) document.getElementById("explorer").hidden = true;
else explore(portrait);

function explore(p) {
  const colours = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8a8a8a"];
  const parts = ["not used", "training", "validation", "test"];
  const el = (id) => document.getElementById(id);
  const canvas = el("map"), input = el("node"), layer = el("layer"), body = el("neighbours").tBodies[0];
  const index = new Map(p.ids.map((id, k) => [id, k]));
  const starts = [0];
  for (const count of p.heard) starts.push(starts.at(-1) + count);
  let chosen = 0;

  p.layers.forEach((_, k) => layer.add(new Option(`${k + 1}`, k)));
  p.classes.forEach((name, k) => {
    const item = document.createElement("li"), dot = document.createElement("span");
    dot.style.background = colours[k % colours.length];
    item.append(dot, name);
    el("legend").append(item);
  });
  for (let k = 0; k < p.ids.length; k += Math.ceil(p.ids.length / 40)) {
    const option = document.createElement("option");
    option.value = p.ids[k];
    el("some-nodes").append(option);
  }

  function place(k) {
    const [x, y] = p.points[k], scale = (canvas.width - 30) / 1000;
    return [15 + x * scale, 15 + y * scale];
  }

  function draw() {
    const pen = canvas.getContext("2d");
    pen.clearRect(0, 0, canvas.width, canvas.height);
    const near = p.speakers.slice(starts[chosen], starts[chosen + 1]);
    pen.globalAlpha = 0.55;
    p.points.forEach((_, k) => dot(pen, k, 2));
    pen.globalAlpha = 1;
    pen.strokeStyle = getComputedStyle(document.body).color;
    for (const k of near) {
      pen.beginPath();
      pen.moveTo(...place(chosen));
      pen.lineTo(...place(k));
      pen.stroke();
    }
    for (const k of near) dot(pen, k, 5);
    dot(pen, chosen, 8);
    pen.lineWidth = 2;
    pen.stroke();
    pen.lineWidth = 1;
  }

  function dot(pen, k, radius) {
    pen.fillStyle = colours[p.labels[k] % colours.length];
    pen.beginPath();
    pen.arc(...place(k), radius, 0, 2 * Math.PI);
    pen.fill();
  }

  function cell(row, ...content) {
    row.insertCell().append(...content);
  }

  function weight(row, kind, thousandths) {
    const bar = document.createElement("span");
    bar.className = `bar ${kind}`;
    bar.style.width = `${(thousandths / 1000) * 5}em`;
    cell(row, bar, `${(thousandths / 10).toFixed(1)}`);
  }

  function show(k) {
    chosen = (k + p.ids.length) % p.ids.length;
    input.value = p.ids[chosen];
    const from = starts[chosen], to = starts[chosen + 1], weights = p.layers[layer.value];
    const right = p.predicted[chosen] === p.labels[chosen] ? "as it is" : `but it is ${p.classes[p.labels[chosen]]}`;
    el("about").textContent =
      `Paper ${p.ids[chosen]} (${parts[p.part[chosen]]}): predicted ${p.classes[p.predicted[chosen]]}, ${right}. ` +
      `It attends to ${to - from} papers, itself included; an even share would be ${(100 / (to - from)).toFixed(1)}%.`;
    const order = Array.from({ length: to - from }, (_, i) => from + i);
    order.sort((a, b) => weights.conjoint[b] - weights.conjoint[a]);
    body.replaceChildren();
    for (const e of order) {
      const row = body.insertRow(), source = p.speakers[e], button = document.createElement("button");
      button.type = "button";
      button.textContent = p.ids[source] + (source === chosen ? " (itself)" : "");
      button.addEventListener("click", () => show(source));
      cell(row, button);
      cell(row, p.classes[p.labels[source]]);
      weight(row, "feature", weights.feature[e]);
      weight(row, "structural", p.structural[e]);
      weight(row, "conjoint", weights.conjoint[e]);
    }
    draw();
  }

  el("pick").addEventListener("submit", (event) => {
    event.preventDefault();
    const found = index.get(input.value.trim());
    if (found === undefined) el("about").textContent = `There is no paper ${input.value}.`;
    else show(found);
  });
  el("previous").addEventListener("click", () => show(chosen - 1));
  el("next").addEventListener("click", () => show(chosen + 1));
  layer.addEventListener("change", () => show(chosen));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    show(chosen + step);
  });
  canvas.addEventListener("click", (event) => {
    const box = canvas.getBoundingClientRect(), scale = canvas.width / box.width;
    const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
    let best = 0, least = Infinity;
    p.points.forEach((_, k) => {
      const [px, py] = place(k), distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) [best, least] = [k, distance];
    });
    show(best);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  show(p.heard.indexOf(Math.max(...p.heard.filter((count) => count < 12))));
}
