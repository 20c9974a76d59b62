// Time, choices, and the controls for them. All of it is in one object of options, which the address can hold too.

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];

class Player {
  constructor(scene, stage, camera) {
    Object.assign(this, { scene, stage, camera });
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.t = scene.start;
    this.playing = !still && scene.frames > 1;
    [this.repeats, this.idle] = [true, false];
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.options = {
      lane: 0, mode: "one", follow: -1, arrows: true, wire: false, trails: scene.loose && scene.links <= 40 ? "all" : "followed",
      theme: this.dark.matches ? "dark" : "light", speed: 1, listed: innerWidth > 1100 && scene.hits.some((hits) => hits.length),
    };
    this.panel = new Panel(this);
    this.dark.addEventListener("change", () => this.set({ theme: this.dark.matches ? "dark" : "light" }));
    addEventListener("hashchange", () => this.fromAddress());
    addEventListener("keydown", (e) => this.key(e));
    for (const button of document.querySelectorAll("[data-does]")) {
      button.addEventListener("click", () => { this.does(button.dataset.does); button.blur(); });
    }
    camera.canvas.addEventListener("pointerup", (e) => { if (!this.idle && camera.travelled < 5 && e.button === 0) this.pickAt(e); });
    this.refit();
    this.fromAddress();
  }

  set(options) {
    const { mode, listed } = this.options;
    Object.assign(this.options, options);
    if (this.options.mode !== mode || this.options.listed !== listed) this.refit();
    this.changed();
  }

  changed() {
    this.dirty = true;
    clearTimeout(this.noting);
    if (!this.playing && !this.idle) this.noting = setTimeout(() => this.toAddress(), 250);
  }

  refit() {
    const { innerWidth: w, innerHeight: h } = window;
    const wide = w > 760;
    const margins = {
      left: 0.03, right: wide && this.options.listed ? 312 / w : 0.03, top: wide ? 62 / h : 0.1,
      bottom: Math.min(wide ? 110 / h : 0.2, 0.3),
    };
    this.camera.fit(...this.stage.box(this.options), margins);
  }

  seek(t, playing = false) {
    this.t = clamp(t, this.scene.start, this.scene.end);
    this.playing = playing;
    this.changed();
  }

  // One callback of the browser, of so many seconds.
  tick(seconds) {
    if (!this.playing) return;
    const { start, end } = this.scene;
    this.t = Math.max(this.t + seconds * this.options.speed, start);
    if (this.t >= end) {
      this.over = (this.over || 0) + seconds;
      this.t = end;
      if (!this.repeats) this.playing = false;
      else if (this.over > 0.8) {
        this.over = 0;
        this.t = start;
      }
    }
    this.dirty = true;
  }

  stepFrames(n) {
    const k = this.scene.frameAt(this.t);
    this.seek(this.scene.t[clamp(k + n, 0, this.scene.frames - 1)]);
  }

  stepImpacts(n) {
    const times = this.scene.hits[this.options.lane].map((hit) => hit.t);
    const next = n > 0 ? times.find((t) => t > this.t + 1e-9) : times.reverse().find((t) => t < this.t - 1e-9);
    if (next !== undefined) this.seek(next);
  }

  does(what) {
    const { options, scene } = this;
    const cycle = (values, value) => values[(values.indexOf(value) + 1) % values.length];
    const slower = SPEEDS.filter((s) => s < options.speed).pop();
    const faster = SPEEDS.find((s) => s > options.speed);
    const look = (azimuth, elevation) => () => { Object.assign(this.camera, { azimuth, elevation }); this.changed(); };
    const actions = {
      play: () => this.seek(this.t >= scene.end ? scene.start : this.t, !this.playing),
      back: () => this.stepFrames(-1), forth: () => this.stepFrames(1),
      previous: () => this.stepImpacts(-1), next: () => this.stepImpacts(1),
      first: () => this.seek(scene.start), last: () => this.seek(scene.end),
      slower: () => slower && this.set({ speed: slower }), faster: () => faster && this.set({ speed: faster }),
      repeat: () => { this.repeats = !this.repeats; },
      trails: () => this.set({ trails: cycle(["off", "followed", "all"], options.trails) }),
      arrows: () => this.set({ arrows: !options.arrows }), wire: () => this.set({ wire: !options.wire }),
      events: () => this.set({ listed: !options.listed }),
      follow: () => this.set({ follow: options.follow + 1 < scene.links ? options.follow + 1 : -1 }),
      free: () => this.set({ follow: -1 }),
      lane: () => this.set({ lane: (options.lane + 1) % scene.lanes.length }),
      mode: () => scene.lanes.length > 1 && this.set({ mode: cycle(["one", "ghosts", "grid"], options.mode) }),
      theme: () => this.set({ theme: options.theme === "dark" ? "light" : "dark" }),
      reset: () => { this.set({ follow: -1 }); this.refit(); },
      front: look(-Math.PI / 2, 0.0), side: look(0, 0.0), top: look(-Math.PI / 2, 1.55),
      nearer: () => this.camera.zoom(0.85), farther: () => this.camera.zoom(1 / 0.85),
      help: () => ($("help").open ? $("help").close() : $("help").showModal()),
    };
    actions[what]();
  }

  key(e) {
    if (this.idle || e.ctrlKey || e.metaKey || e.altKey || e.target.tagName === "SELECT") return;
    const shifted = { ArrowLeft: "previous", ArrowRight: "next" };
    const keys = {
      " ": "play", ArrowLeft: "back", ArrowRight: "forth", Home: "first", End: "last", ",": "slower", ".": "faster",
      r: "repeat", t: "trails", a: "arrows", w: "wire", e: "events", f: "follow", Escape: "free", l: "lane", g: "mode",
      d: "theme", 0: "reset", 1: "front", 2: "side", 3: "top", "+": "nearer", "=": "nearer", "-": "farther", "?": "help",
      h: "help",
    };
    const what = (e.shiftKey && shifted[e.key]) || keys[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (!what || ($("help").open && what !== "help")) return;
    e.preventDefault();
    this.does(what);
  }

  pickAt(e) {
    const eye = this.camera.matrices().eye;
    const { link, lane } = this.stage.pick(eye, this.camera.ray(e.clientX, e.clientY), this.t, this.options);
    if (link >= 0) this.set({ follow: link === this.options.follow ? -1 : link, lane });
  }

  // #t=1.2&lane=3&paused&speed=0.5&follow=cue&trails=all&mode=grid&wire&arrows=off&theme=dark&list=off&camera=a,e,d,x,y,z
  fromAddress() {
    if (this.idle || location.hash === this.written) return;
    const given = new URLSearchParams(location.hash.slice(1));
    const { scene, options } = this;
    const number = (name) => (given.has(name) && isFinite(given.get(name)) ? Number(given.get(name)) : undefined);
    const one = (name, values) => (values.includes(given.get(name)) ? { [name]: given.get(name) } : {});
    const on = (name) => given.has(name) && given.get(name) !== "off";
    const changes = { ...one("trails", ["off", "followed", "all"]), ...one("theme", ["dark", "light"]) };
    if (scene.lanes.length > 1) Object.assign(changes, one("mode", ["one", "ghosts", "grid"]));
    const lane = scene.lanes.indexOf(number("lane"));
    if (lane >= 0) changes.lane = lane;
    if (number("speed") > 0) changes.speed = clamp(number("speed"), SPEEDS[0], SPEEDS[SPEEDS.length - 1]);
    if (given.has("follow")) changes.follow = scene.names.indexOf(given.get("follow"));
    if (given.has("wire")) changes.wire = on("wire");
    if (given.has("arrows")) changes.arrows = on("arrows");
    if (given.has("list")) changes.listed = on("list");
    this.set(changes);
    const t = number("t");
    if (given.has("paused") || t !== undefined) this.seek(t ?? this.t, this.playing && !given.has("paused"));
    const view = (given.get("camera") || "").split(",").map(Number);
    if (view.length === 6 && view.every(isFinite)) {
      const [azimuth, elevation, distance, ...target] = view;
      Object.assign(this.camera, { azimuth, elevation, distance, target });
    }
    if (given.has("help")) this.does("help");
  }

  toAddress() {
    const { options, scene, camera } = this;
    const short = (x) => Number(x.toPrecision(5));
    const parts = ["paused", `t=${Number(this.t.toFixed(6))}`];
    if (scene.lanes.length > 1) parts.push(`lane=${scene.lanes[options.lane]}`, `mode=${options.mode}`);
    if (options.follow >= 0) parts.push(`follow=${encodeURIComponent(scene.names[options.follow])}`);
    parts.push(`trails=${options.trails}`, `arrows=${options.arrows ? "on" : "off"}`);
    if (options.wire) parts.push("wire");
    parts.push(`camera=${[camera.azimuth, camera.elevation, camera.distance, ...camera.target].map(short).join(",")}`);
    this.written = `#${parts.join("&")}`;
    try {
      history.replaceState(null, "", this.written);
    } catch {
      // a sandboxed frame has no history; the page works without
    }
  }
}
