// A camera that goes round a point, and how mouse, fingers and keys move it.

const FOV = (32 * Math.PI) / 180;

class Camera {
  constructor(canvas, changed) {
    this.canvas = canvas;
    this.changed = changed;
    Object.assign(this, { azimuth: -1.1, elevation: 0.4, distance: 5, target: [0, 0, 0], shift: [0, 0] });
    this.fingers = new Map();
    canvas.addEventListener("pointerdown", (e) => this.down(e));
    canvas.addEventListener("pointermove", (e) => this.move(e));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (e) => this.fingers.delete(e.pointerId));
    canvas.addEventListener("wheel", (e) => { e.preventDefault(); this.zoom(Math.exp(clamp(e.deltaY, -200, 200) * 0.0015)); },
      { passive: false });
    canvas.addEventListener("contextmenu", (e) => e.preventDefault());
  }

  // Shows the box from low to high; margins: parts of the picture that are covered, {left, right, top, bottom}.
  fit(low, high, margins) {
    const size = sub(high, low);
    this.elevation = size[2] < 0.35 * Math.max(size[0], size[1]) ? 0.62 : 0.24;
    this.azimuth = size[0] >= size[1] * 0.8 ? -1.15 : -0.5;
    this.target = mix(low, high, 0.5);
    this.shift = [margins.left - margins.right, margins.bottom - margins.top];
    const corners = [];
    for (let k = 0; k < 8; k++) corners.push([0, 1, 2].map((axis) => ((k >> axis) & 1 ? high : low)[axis]));
    const fits = (distance) => {
      this.distance = distance;
      const { view } = this.matrices();
      return corners.every((corner) => {
        const [x, y, depth] = project(view, corner);
        return depth > 0 && x > -1 + 2 * margins.left && x < 1 - 2 * margins.right && y > -1 + 2 * margins.bottom
          && y < 1 - 2 * margins.top;
      });
    };
    let near = 1e-3 * norm(size);
    let far = 50 * norm(size);
    for (let k = 0; k < 40; k++) {
      const middle = Math.sqrt(near * far);
      if (fits(middle)) far = middle;
      else near = middle;
    }
    this.distance = far;
    this.scale = norm(size);
    this.changed();
  }

  back() {
    const c = Math.cos(this.elevation);
    return [c * Math.cos(this.azimuth), c * Math.sin(this.azimuth), Math.sin(this.elevation)];
  }

  matrices() {
    const back = this.back();
    const eye = add(this.target, mul(back, this.distance));
    const aspect = this.canvas.clientWidth / Math.max(this.canvas.clientHeight, 1);
    const [s, c] = [Math.sin(this.elevation), Math.cos(this.elevation)];
    const up = [-s * Math.cos(this.azimuth), -s * Math.sin(this.azimuth), c];
    const fov = aspect < 1 ? 2 * Math.atan(Math.tan(FOV / 2) / Math.max(aspect, 0.5)) : FOV;
    const lens = perspective(fov, aspect, this.distance * 0.02, this.distance * 60);
    [lens[8], lens[9]] = this.shift.map((x) => -x);
    const view = times(lens, lookAt(eye, this.target, up));
    const right = cross(up, back);
    const t = Math.tan(fov / 2);
    const [x, y] = [mul(right, t * aspect), mul(up, t)];
    const middle = add(back, add(mul(x, this.shift[0]), mul(y, this.shift[1])));
    const inverse = new Float32Array([...x, 0, ...y, 0, ...middle, 0, 0, 0, 0, 0]);
    return { eye, view, inverse, right, up, fov };
  }

  // Direction (3,) through a point of the picture, in pixels.
  ray(x, y) {
    const { right, up, fov } = this.matrices();
    const t = Math.tan(fov / 2);
    const a = (2 * x) / this.canvas.clientWidth - 1 - this.shift[0];
    const b = 1 - (2 * y) / this.canvas.clientHeight - this.shift[1];
    const aspect = this.canvas.clientWidth / this.canvas.clientHeight;
    return unit(add(mul(this.back(), -1), add(mul(right, a * t * aspect), mul(up, b * t))));
  }

  orbit(dx, dy) {
    this.azimuth -= dx * 0.006;
    this.elevation = clamp(this.elevation + dy * 0.006, -1.55, 1.55);
    this.changed();
  }

  pan(dx, dy) {
    const { right, up, fov } = this.matrices();
    const k = (2 * Math.tan(fov / 2) * this.distance) / this.canvas.clientHeight;
    this.target = add(this.target, add(mul(right, -dx * k), mul(up, dy * k)));
    this.changed();
  }

  zoom(factor) {
    this.distance = clamp(this.distance * factor, 0.01 * this.scale, 30 * this.scale);
    this.changed();
  }

  down(e) {
    this.canvas.setPointerCapture(e.pointerId);
    this.fingers.set(e.pointerId, [e.clientX, e.clientY]);
    this.travelled = 0;
  }

  move(e) {
    const from = this.fingers.get(e.pointerId);
    if (!from) return;
    const to = [e.clientX, e.clientY];
    const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    this.travelled += Math.abs(dx) + Math.abs(dy);
    this.fingers.set(e.pointerId, to);
    if (this.fingers.size === 1) {
      if (e.buttons & 2 || e.shiftKey) this.pan(dx, dy);
      else this.orbit(dx, dy);
    } else if (this.fingers.size === 2) {
      const other = [...this.fingers.entries()].find(([id]) => id !== e.pointerId)[1];
      const apart = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
      this.zoom(apart(from) / apart(to));
      this.pan(dx / 2, dy / 2);
    }
  }
}
