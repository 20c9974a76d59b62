// The game: time, mouse, keys and controls. While it stands still, the address holds the world: copy it to share it.

const STIFF = 12;      // [1/s] how fast what is dragged follows, critically damped
const BLOW = 2;        // [m/s] that a blow adds
const BEHIND = 4;      // frames that one callback of the browser plays at most

class Game {
  constructor(world, scene, stage, camera) {
    Object.assign(this, { world, scene, stage, camera });
    this.playing = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.options = { lane: 0, mode: "one", follow: -1, arrows: true, wire: false, trails: "off", theme: "light" };
    this.debug = new Debug(world, stage);
    this.materials = { restitution: null, friction: null };
    [this.shoots, this.held, this.left, this.code, this.spent] = [false, null, 0, 0, 0];
    [this.idle, this.origin, this.leave] = [false, null, null];
    const { canvas } = camera;
    canvas.addEventListener("pointerdown", (e) => this.down(e), { capture: true });
    canvas.addEventListener("pointermove", (e) => this.move(e), { capture: true });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { this.held = null; }, { capture: true });
    for (const button of document.querySelectorAll("[data-plays]")) {
      button.addEventListener("click", () => { this.does(button.dataset.plays); button.blur(); });
    }
    for (const name of ["restitution", "friction"]) {
      $(name).addEventListener("input", () => this.change(name, Number($(name).value)));
    }
    $("past").addEventListener("input", () => this.rewind(Number($("past").value)));
    for (const name of ["past", "restitution", "friction"]) $(name).addEventListener("pointerup", () => $(name).blur());
    addEventListener("keydown", (e) => this.key(e));
    addEventListener("hashchange", () => this.fromAddress());
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const theme = () => { this.options.theme = dark.matches ? "dark" : "light"; this.changed(); };
    dark.addEventListener("change", theme);
    theme();
  }

  changed() {
    this.dirty = true;
    clearTimeout(this.noting);
    if (!this.playing && !this.address && !this.idle) this.noting = setTimeout(() => this.toAddress(), 250);
  }

  refit() {
    this.camera.fit(...this.stage.box(this.options), { left: 0.03, right: 0.03, top: 0.1, bottom: 0.2 });
  }

  // One callback of the browser, of so many seconds: simulated, and drawn.
  advance(seconds, renderer) {
    this.tick(seconds);
    if (fitted(this.camera.canvas)) this.dirty = true;
    if (!this.dirty) return;
    this.dirty = false;
    renderer.draw(this.stage.picture(this.world.t, this.options, this.camera));
    this.show();
  }

  tick(seconds) {
    if (!this.playing) return;
    const { dt } = this.world.data;
    this.left = Math.min(this.left + seconds, BEHIND * dt);
    while (this.left >= dt) {
      this.left -= dt;
      this.step();
    }
    this.scene.share = this.left / dt;
    this.dirty = true;
  }

  step() {
    const { world, scene } = this;
    if (this.held) this.pull();
    const begun = performance.now();
    this.code = world.step();
    this.spent += 0.05 * (performance.now() - begun - this.spent);
    if (this.code >= 100) this.playing = false;
    scene.keep();
    scene.share = 1;
    this.strike();
  }

  // Impacts of the last frame, for the stage's arrows.
  strike() {
    const { world, scene } = this;
    const { t } = world;
    scene.hits[0] = scene.hits[0].filter((hit) => hit.t > t - GLOWS && hit.t <= t);
    for (const { impacts, impulse, point } of world.contacts()) {
      const size = norm(impulse);
      if (!impacts || !size) continue;
      scene.strongest = Math.max(scene.strongest, size);
      scene.hits[0].push({ t, dof: -1, size, point, impulse });
    }
  }

  jumped() {
    this.scene.hits[0] = [];
    this.left = 0;
    this.scene.share = 1;
    this.scene.jump();
    this.changed();
  }

  // From a save on, where a restart comes back to.
  begin(save) {
    const code = this.world.begin(save);
    if (code) throw new Error(`the world cannot go on from there (${code})`);
    [this.origin, this.code] = [save, 0];
    this.jumped();
  }

  // From the start; restitution and friction stay what they were changed to.
  restart() {
    this.world.reset();
    for (const [name, value] of Object.entries(this.materials)) this.world.material(name, value);
    if (this.origin) this.world.begin(this.origin);
    this.jumped();
  }

  rewind(frame) {
    this.playing = false;
    this.world.rewind(frame);
    this.jumped();
  }

  change(name, value) {
    this.materials[name] = value;
    this.world.material(name, value);
    this.changed();
  }

  // Which body is under the pointer.
  under(e) {
    const eye = this.camera.matrices().eye;
    const hit = this.world.ray(eye, this.camera.ray(e.clientX, e.clientY));
    return hit && { ...hit, eye };
  }

  down(e) {
    const hit = !this.idle && e.button === 0 && !e.shiftKey ? this.under(e) : null;
    if (!hit) return;
    e.stopImmediatePropagation();
    const { body, point } = hit;
    if (this.shoots) {
      const way = this.camera.ray(e.clientX, e.clientY);
      this.world.impulse(body, mul(way, BLOW * this.world.data.mass[body]), point);
      this.world.history[this.world.frame] = this.world.save();
      this.playing = true;
      this.changed();
      return;
    }
    const { p, q } = this.scene.poseAt(0, body, 1);
    this.camera.canvas.setPointerCapture(e.pointerId);
    this.held = { body, own: rotated([q[0], -q[1], -q[2], -q[3]], sub(point, p)), target: point, depth: hit.distance };
    this.playing = true;
  }

  move(e) {
    if (!this.held) return;
    e.stopImmediatePropagation();
    this.held.target = add(this.camera.matrices().eye, mul(this.camera.ray(e.clientX, e.clientY), this.held.depth));
  }

  // What is held is drawn to the pointer, at the point where it was taken.
  pull() {
    const { body, own, target } = this.held;
    const { p, q } = this.scene.poseAt(0, body, 1);
    const { dt, links, mass } = this.world.data;
    const at = add(p, rotated(q, own));
    const v = Array.from(this.world.array("velocities", 6 * links).subarray(6 * body + 3, 6 * body + 6));
    const stiff = Math.min(STIFF, 0.5 / dt);
    this.world.force(body, mul(sub(mul(sub(target, at), stiff * stiff), mul(v, 2 * stiff)), mass[body]), at);
  }

  // Bodies as wires in the colours of their islands, contacts as crosses.
  debugs() {
    const { options, debug } = this, on = !options.debug;
    options.debug = on ? () => debug.picture() : null;
    [options.wire, options.arrows] = [on, !on];
  }

  does(what) {
    const actions = {
      play: () => { this.playing = !this.playing; },
      back: () => this.rewind(this.world.frame - 1),
      forth: () => { this.playing = false; if (this.world.frame < this.world.history.length - 1) this.rewind(this.world.frame + 1); else this.step(); },
      first: () => this.rewind(0),
      reset: () => this.restart(),
      shoot: () => { this.shoots = !this.shoots; },
      debug: () => this.debugs(),
      own: () => { for (const name of ["restitution", "friction"]) this.change(name, null); },
      view: () => this.refit(),
      replay: () => this.leave?.(),
      share: () => { this.playing = false; this.toAddress(); navigator.clipboard?.writeText(location.href).catch(() => {}); },
    };
    actions[what]();
    if (!this.idle) this.changed();
  }

  key(e) {
    if (this.idle || e.ctrlKey || e.metaKey || e.altKey) return;
    const keys = { " ": "play", ArrowLeft: "back", ArrowRight: "forth", Home: "first", r: "reset", s: "shoot", d: "debug", 0: "view", Escape: "replay" };
    const what = keys[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (!what || e.target.tagName === "INPUT") return;
    e.preventDefault();
    this.does(what);
  }

  // #paused&frames=300&save=...&e=0.5&mu=0.1&camera=a,e,d,x,y,z: a save, or so many frames from the start
  fromAddress() {
    if (this.idle || location.hash === this.written) return;
    this.address = true;
    try {
      this.open(new URLSearchParams(location.hash.slice(1)));
    } finally {
      this.address = false;
      this.dirty = true;
    }
  }

  // What an address gives; friction and restitution that it does not name are the scene's.
  open(given) {
    const save = given.has("save") ? saved(given.get("save")) : null;
    for (const [key, name, most] of [["e", "restitution", 1], ["mu", "friction", Infinity]]) {
      const value = given.get(key) ? Number(given.get(key)) : NaN;
      this.change(name, isFinite(value) ? clamp(value, 0, most) : null);
    }
    if (save) {
      const code = this.world.begin(save);
      if (code) throw new Error(`the address holds a save that is not of this world (${code})`);
      this.jumped();
    } else if (given.has("frames")) {
      this.restart();
    }
    for (let k = Math.min(Number(given.get("frames")) || 0, FRAMES); k > 0; k--) this.step();
    const view = (given.get("camera") || "").split(",").map(Number);
    if (view.length === 6 && view.every(isFinite)) {
      const [azimuth, elevation, distance, ...target] = view;
      Object.assign(this.camera, { azimuth, elevation, distance, target });
    }
    if (given.has("paused")) this.playing = false;
    $("trouble").hidden = true;  // that of an address before
  }

  toAddress() {
    const { world, camera, materials } = this;
    const short = (x) => Number(x.toPrecision(5));
    const save = btoa(String.fromCharCode(...world.save())).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    const parts = ["paused"];
    if (materials.restitution !== null) parts.push(`e=${materials.restitution}`);
    if (materials.friction !== null) parts.push(`mu=${materials.friction}`);
    parts.push(`camera=${[camera.azimuth, camera.elevation, camera.distance, ...camera.target].map(short).join(",")}`, `save=${save}`);
    this.written = `#${parts.join("&")}`;
    try {
      history.replaceState(null, "", this.written);
    } catch {
      // a sandboxed frame has no history; the page works without
    }
  }

  show() {
    const { world, materials } = this;
    const root = document.documentElement;
    root.classList.toggle("dark", this.options.theme === "dark");
    $("world-time").textContent = `${world.t.toFixed(3)} s`;
    $("world-cost").textContent = `${this.spent.toFixed(2)} ms a frame`;
    $("hash").textContent = world.hash();
    $("goes").querySelector("path").setAttribute("d", this.playing ? "M4 3h3v10H4zM9 3h3v10H9z" : "M4 2.5v11L13.5 8z");
    $("past").max = world.history.length - 1;
    $("past").value = world.frame;
    for (const [name, value] of Object.entries(materials)) {
      $(`${name}-is`).textContent = value === null ? "the scene's" : value.toFixed(2);
      if (value === null) $(name).value = world.start[name].length ? world.start[name][0] : 0;
      else $(name).value = value;
    }
    document.querySelector("[data-plays=shoot]").setAttribute("aria-pressed", this.shoots);
    document.querySelector("[data-plays=debug]").setAttribute("aria-pressed", Boolean(this.options.debug));
    $("world-notes").textContent = this.code ? `code ${this.code}: ${this.code < 100 ? "this frame is less exact" : "the world stands still"}` : "";
    const state = { ready: true, frame: world.frame, t: world.t, hash: $("hash").textContent, playing: this.playing, cost: this.spent, code: this.code };
    root.dataset.state = JSON.stringify(state);
  }
}

// The bytes of a save in an address.
function saved(text) {
  try {
    return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  } catch {
    throw new Error("the save in the address is no text of a save: copy the whole address again");
  }
}
