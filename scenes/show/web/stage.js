// What is to be seen at a time t: instances of the meshes, lines and arrows, for the renderer.

const GLOWS = 0.15;   // [s] how long an impact's arrow is seen
const TAIL = 1.2;     // [s] how long a trail is
const GHOST = 0.2;    // opacity of the other lanes
const ARROW = [1.0, 0.58, 0.13];

const fromSrgb = (c) => c.map((x) => x ** 2.2);
const THEMES = {
  light: { sky: fromSrgb([0.76, 0.81, 0.87]), horizon: fromSrgb([0.93, 0.94, 0.95]), ground: [0.83, 0.85, 0.87], contrast: 0.12, shade: 0.85 },
  dark: { sky: fromSrgb([0.2, 0.24, 0.3]), horizon: fromSrgb([0.125, 0.14, 0.165]), ground: [0.4, 0.43, 0.47], contrast: 0.22, shade: 0.9 },
};

class Stage {
  constructor(scene) {
    this.scene = scene;
    this.shaft = scene.meshes.length - 2;  // the last two meshes are the parts of an arrow
    this.head = scene.meshes.length - 1;
    [this.low, this.high] = scene.extent;
    this.size = norm(sub(this.high, this.low));
    const n = scene.lanes.length;
    const columns = Math.ceil(Math.sqrt(n * 1.2));
    const step = [0, 1].map((axis) => 1.18 * (this.high[axis] - this.low[axis]) + 0.04 * this.size);
    this.shifts = scene.lanes.map((_, k) => [(k % columns) * step[0], -Math.floor(k / columns) * step[1], 0]);
    const firsts = scene.names.map((_, link) => scene.shapes.find((s) => s.link === link));
    this.middles = firsts.map((shape) => (shape ? shape.p : [0, 0, 0]));
    this.colours = firsts.map((shape) => (shape ? shape.colour : [0.5, 0.5, 0.5]));
    this.paths = new Map();
  }

  shift(lane, options) {
    return options.mode === "grid" ? this.shifts[lane] : [0, 0, 0];
  }

  // The box that holds everything shown.
  box(options) {
    if (options.mode !== "grid") return [this.low, this.high];
    const last = [0, 1, 2].map((axis) => this.shifts.map((s) => s[axis]));
    return [
      add(this.low, last.map((x) => Math.min(...x))), add(this.high, last.map((x) => Math.max(...x))),
    ];
  }

  middle(lane, link, t) {
    const { p, q } = this.scene.pose(lane, link, t);
    return add(p, rotated(q, this.middles[link]));
  }

  // Where a link's shape is at every frame, worked out once.
  path(lane, link) {
    const key = lane * this.scene.links + link;
    if (!this.paths.has(key)) this.paths.set(key, Array.from(this.scene.t, (t) => this.middle(lane, link, t)));
    return this.paths.get(key);
  }

  lanesShown({ mode, lane }) {
    return mode === "one" ? [lane] : this.scene.lanes.map((_, k) => k);
  }

  picture(t, options, camera) {
    const { scene } = this;
    const lists = () => scene.meshes.map(() => []);
    const [filled, ghosts, wire, arrows] = [lists(), lists(), lists(), lists()];
    const [lines, balls] = [[], []];
    const { colours, marks } = options.debug ? options.debug() : {};
    const theme = THEMES[options.theme];
    for (const lane of this.lanesShown(options)) {
      const shift = this.shift(lane, options);
      const ghost = options.mode === "ghosts" && lane !== options.lane;
      const poses = scene.poses(lane, t);
      for (const shape of scene.shapes) {
        if (shape.lane !== null && shape.lane !== lane) continue;
        if (ghost && shape.link < 0) continue;
        const at = shape.link < 0 ? { p: [0, 0, 0], q: [1, 0, 0, 0] } : poses[shape.link];
        const p = add(add(at.p, rotated(at.q, shape.p)), shift);
        const q = product(at.q, shape.q);
        const instance = (colour, opacity) => [...p, ...q, 1, 1, 1, ...colour, opacity, shape.pattern, 0];
        const own = (colours && colours[shape.link]) || shape.colour;
        if (shape.solid) {
          const opacity = ghost ? GHOST : options.wire ? 0.3 : 1;
          (opacity < 1 ? ghosts : filled)[shape.mesh].push(...instance(own, opacity));
          if (!ghost) balls.push([...p, scene.round[shape.mesh]]);
        }
        if (options.wire && shape.wire && !ghost) {
          const ink = options.theme === "dark" ? mix(own, [1, 1, 1], 0.55) : mix(own, [0, 0, 0], 0.45);
          wire[shape.mesh].push(...instance(ink, 0.9));
        }
      }
      this.ties(lines, poses, shift, ghost);
      if (options.arrows && !ghost) this.arrows(arrows, lane, t, shift, Math.min(this.size, camera.distance));
      if (options.trails !== "off") this.trails(lines, lane, t, shift, ghost, options);
    }
    const [low, high] = this.box(options);
    const sunlit = { middle: mix(low, high, 0.5), radius: 0.72 * norm(sub(high, low)) };
    if (options.follow >= 0 && options.mode !== "grid") sunlit.middle = this.middle(options.lane, options.follow, t);
    balls.sort((a, b) => norm(sub(a, camera.target)) - norm(sub(b, camera.target)));
    return {
      camera: camera.matrices(), sunlit, theme, filled, ghosts, wire, arrows, lines, marks: marks || [],
      shifts: this.lanesShown(options).map((lane) => this.shift(lane, options)).slice(0, options.mode === "grid" ? undefined : 1),
      near: new Float32Array(balls.slice(0, 32).flat().concat([0, 0, 0, 0]).slice(0, 128)),
      grid: { cell: this.cell(), reach: norm(sub(high, low)) },
    };
  }

  // Side of the ground's squares [m]: 1, 2 or 5 times a power of ten, some ten of them over the scene.
  cell() {
    const wanted = this.size / 10;
    const power = 10 ** Math.floor(Math.log10(wanted));
    return power * [1, 2, 5, 10].find((k) => k * power >= wanted);
  }

  // size: of the scene, or of what is seen of it [m].
  arrows(arrows, lane, t, shift, size) {
    for (const hit of this.scene.hits[lane]) {
      const age = t - hit.t;
      if (age < -1e-9) break;
      if (age > GLOWS || hit.dof >= 0) continue;
      const fade = Math.sqrt(1 - age / GLOWS);
      const length = 0.13 * size * Math.sqrt(hit.size / this.scene.strongest);
      const thick = Math.min(0.0026 * size, 0.09 * length);
      const direction = unit(hit.impulse);
      const q = fromZ(direction);
      const p = add(hit.point, shift);
      const tip = Math.min(6 * thick, 0.4 * length);
      arrows[this.shaft].push(...p, ...q, thick, thick, length - tip, ...ARROW, fade, 0, 1);
      arrows[this.head].push(...add(p, mul(direction, length - tip)), ...q, 2.4 * thick, 2.4 * thick, tip, ...ARROW, fade, 0, 1);
    }
  }

  ties(lines, poses, shift, ghost) {
    const at = (link, p) => add(link < 0 ? p : add(poses[link].p, rotated(poses[link].q, p)), shift);
    for (const { a, p, b, q, colour } of this.scene.ties) {
      const ink = [...colour, ghost ? GHOST : 1];
      lines.push(...at(a, p), ...at(b, q), ...ink, ...ink);
    }
  }

  trails(lines, lane, t, shift, ghost, options) {
    const { scene } = this;
    const links = options.trails === "all" ? scene.names.map((_, k) => k) : options.follow >= 0 ? [options.follow] : [];
    const first = Math.max(scene.start, t - TAIL);
    for (const link of links) {
      const colour = mix(this.colours[link], options.theme === "dark" ? [1, 1, 1] : [0, 0, 0], 0.2);
      const path = this.path(lane, link);
      let last = null;
      const point = (time, position) => {
        const p = add(position, shift);
        const opacity = (ghost ? 0.25 : 0.85) * ((time - t) / TAIL + 1) ** 1.5;
        if (last && norm(sub(p, last.p)) > 1e-5 * this.size) {
          lines.push(...last.p, ...p, ...colour, last.opacity, ...colour, opacity);
        }
        last = { p, opacity };
      };
      point(first, this.middle(lane, link, first));
      for (let k = scene.at(first)[0] + 1; k < scene.frames && scene.t[k] < t; k++) point(scene.t[k], path[k]);
      point(t, this.middle(lane, link, t));
    }
  }

  // The link whose shape a ray meets first, or -1: by balls about the shapes, small enough to leave room between them.
  pick(eye, direction, t, options) {
    let best = { link: -1, depth: Infinity, lane: options.lane };
    for (const lane of this.lanesShown(options)) {
      for (const shape of this.scene.shapes) {
        if (shape.link < 0 || (shape.lane !== null && shape.lane !== lane)) continue;
        const at = this.scene.pose(lane, shape.link, t);
        const p = sub(add(add(at.p, rotated(at.q, shape.p)), this.shift(lane, options)), eye);
        const depth = dot(p, direction);
        const off = norm(sub(p, mul(direction, depth)));
        if (depth > 0 && depth < best.depth && off < Math.max(1.1 * this.scene.round[shape.mesh], 0.008 * depth)) {
          best = { link: shape.link, depth, lane };
        }
      }
    }
    return best;
  }
}
