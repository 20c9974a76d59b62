// What is written beside the picture: readouts, the energy chart, the time line, the list of impacts.

const SHORT = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];

function withUnit(x, unit) {
  if (Math.abs(x) < 1e-12) return `0 ${unit}`;
  const [factor, letter] = SHORT.find(([f]) => Math.abs(x) >= f) || SHORT[SHORT.length - 1];
  return `${(x / factor).toPrecision(3)} ${letter}${unit}`;
}

class Panel {
  constructor(player) {
    this.player = player;
    const { scene } = player;
    $("title").textContent = scene.title;
    $("subtitle").textContent = scene.subtitle;
    $("notes").replaceChildren(...scene.notes.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
    document.documentElement.classList.toggle("single", scene.lanes.length < 2);
    this.choices("speed", SPEEDS.map((s) => [s, `${s}×`]), (x) => ({ speed: Number(x) }));
    this.choices("follow", [[-1, "nothing"], ...scene.names.map((name, k) => [k, name])], (x) => ({ follow: Number(x) }));
    this.choices("lane", scene.lanes.map((lane, k) => [k, String(lane)]), (x) => ({ lane: Number(x) }));
    this.choices("mode", null, (mode) => ({ mode }));
    const scrub = $("scrub");
    const seek = (e) => {
      const { left, width } = scrub.getBoundingClientRect();
      player.seek(scene.start + clamp((e.clientX - left) / width, 0, 1) * (scene.end - scene.start));
    };
    scrub.addEventListener("pointerdown", (e) => { scrub.setPointerCapture(e.pointerId); seek(e); });
    scrub.addEventListener("pointermove", (e) => { if (e.buttons) seek(e); });
    scrub.setAttribute("aria-valuemin", scene.start);
    scrub.setAttribute("aria-valuemax", scene.end);
    $("list").addEventListener("click", (e) => {
      const row = e.target.closest("li");
      if (row) player.seek(scene.hits[player.options.lane][row.value].t);
    });
  }

  choices(id, values, change) {
    const select = $(id);
    if (values) select.replaceChildren(...values.map(([value, text]) => new Option(text, value)));
    select.addEventListener("change", () => { this.player.set(change(select.value)); select.blur(); });
  }

  show() {
    const { scene, options, t, playing } = this.player;
    const { kinetic, potential } = scene.energy(options.lane, t);
    const hits = scene.hits[options.lane];
    const past = this.countBefore(hits, t);
    const root = document.documentElement;
    root.classList.toggle("dark", options.theme === "dark");
    root.classList.toggle("listed", options.listed);
    $("time").textContent = `${t.toFixed(3)} s`;
    $("energy").textContent = `${withUnit(kinetic + potential, "J")}`;
    $("impacts").textContent = `${past} of ${hits.length}`;
    $("followed").hidden = options.follow < 0;
    if (options.follow >= 0) {
      $("name").textContent = scene.name(options.follow);
      $("speedometer").textContent = withUnit(scene.speed(options.lane, options.follow, t), "m/s");
    }
    $("play").querySelector("path").setAttribute("d", playing ? "M4 3h3v10H4zM9 3h3v10H9z" : "M4 2.5v11L13.5 8z");
    $("clock").textContent = `${t.toFixed(2)} / ${scene.end.toFixed(2)} s · frame ${scene.frameAt(t)}`;
    for (const id of ["speed", "follow", "lane", "mode"]) if (String(options[id]) !== $(id).value) $(id).value = options[id];
    const pressed = { trails: options.trails !== "off", arrows: options.arrows, wire: options.wire, events: options.listed };
    for (const [what, on] of Object.entries(pressed)) {
      document.querySelector(`#toggles [data-does=${what}]`).setAttribute("aria-pressed", on);
    }
    document.querySelector("#toggles [data-does=trails]").textContent = options.trails === "all" ? "Trails: all" : "Trails";
    const part = `${(100 * (t - scene.start)) / (scene.end - scene.start || 1)}%`;
    $("knob").style.left = part;
    $("energies").lastElementChild.style.left = part;
    $("scrub").setAttribute("aria-valuenow", t.toFixed(3));
    const drawn = `${options.lane} ${options.theme} ${innerWidth}`;
    if (drawn !== this.drawn) {
      this.drawn = drawn;
      this.fillList(hits);
      this.drawTicks(hits);
      this.drawChart();
    }
    this.markNow(past - 1);
  }

  countBefore(hits, t) {
    let [low, high] = [0, hits.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (hits[middle].t <= t + 1e-9) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  fillList(hits) {
    const cell = (text) => Object.assign(document.createElement("span"), { textContent: text });
    $("list").replaceChildren(...hits.map((hit, k) => {
      const row = document.createElement("li");
      row.value = k;
      const { scene } = this.player;
      const impulse = withUnit(hit.size, hit.dof >= 0 ? scene.units[hit.dof] : "N s");
      row.append(cell(`${hit.t.toFixed(4)} s`), cell(scene.says(hit)), cell(impulse));
      row.title = `${scene.says(hit)}: impulse ${impulse}, kinetic energy lost ${withUnit(hit.loss, "J")}`;
      return row;
    }));
    this.now = null;
  }

  markNow(k) {
    const row = $("list").children[k] || null;
    if (row === this.now) return;
    if (this.now) this.now.classList.remove("now");
    if (row) {
      row.classList.add("now");
      const list = $("list");
      if (list.offsetParent) list.scrollTop = row.offsetTop - list.offsetTop - list.clientHeight / 2;
    }
    this.now = row;
  }

  context(id) {
    const canvas = $(id);
    const ratio = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const c = canvas.getContext("2d");
    c.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    return { c, width, height, colour: (name) => style.getPropertyValue(name) };
  }

  drawTicks(hits) {
    const { scene } = this.player;
    const { c, width, height, colour } = this.context("ticks");
    const x = (t) => ((t - scene.start) / (scene.end - scene.start || 1)) * width;
    const base = height - 9;
    c.fillStyle = colour("--edge");
    c.beginPath();
    c.roundRect(0, base, width, 4, 2);
    c.fill();
    c.fillStyle = colour("--accent");
    for (const hit of hits) {
      const part = Math.sqrt(hit.size / scene.strongest);
      const h = 3 + part * (base - 6);
      c.globalAlpha = 0.25 + 0.65 * part;
      c.fillRect(x(hit.t) - 0.6, base - h, 1.2, h);
    }
  }

  // Kinetic energy filled, above the potential; their sum as a line.
  drawChart() {
    const { scene, options } = this.player;
    const { c, width, height, colour } = this.context("chart");
    if (!width) return;
    const at = options.lane * scene.frames;
    const kinetic = scene.kinetic.subarray(at, at + scene.frames);
    const potential = scene.potential.subarray(at, at + scene.frames);
    let [low, high] = [Infinity, -Infinity];
    for (let k = 0; k < scene.frames; k++) {
      low = Math.min(low, potential[k]);
      high = Math.max(high, potential[k] + kinetic[k]);
    }
    const span = high - low || 1;
    const x = (k) => ((scene.t[k] - scene.start) / (scene.end - scene.start || 1)) * width;
    const y = (e) => height - 2 - ((e - low) / span) * (height - 5);
    c.beginPath();
    for (let k = 0; k < scene.frames; k++) c.lineTo(x(k), y(potential[k] + kinetic[k]));
    const total = new Path2D();
    for (let k = 0; k < scene.frames; k++) total.lineTo(x(k), y(potential[k] + kinetic[k]));
    for (let k = scene.frames - 1; k >= 0; k--) c.lineTo(x(k), y(potential[k]));
    c.closePath();
    c.globalAlpha = 0.45;
    c.fillStyle = colour("--kinetic");
    c.fill();
    c.globalAlpha = 1;
    c.strokeStyle = colour("--total");
    c.lineWidth = 1.2;
    c.stroke(total);
  }
}
