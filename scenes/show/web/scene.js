// What the page holds, unpacked: arrays, and where everything is at a time t.

class Scene {
  static async read() {
    const data = JSON.parse(document.getElementById("recording").textContent);
    const text = document.getElementById("arrays").textContent.trim();
    const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new this(data, await new Response(stream).arrayBuffer());
  }

  constructor(data, bytes) {
    const kinds = { f4: Float32Array, i2: Int16Array, i1: Int8Array, i4: Int32Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array };
    const unpack = (x) => {
      if (Array.isArray(x)) return x.map(unpack);
      if (x === null || typeof x !== "object") return x;
      if (!x.dtype) return Object.fromEntries(Object.entries(x).map(([name, value]) => [name, unpack(value)]));
      return new kinds[x.dtype](bytes, x.at, x.shape.reduce((a, b) => a * b, 1));
    };
    Object.assign(this, unpack(data));
    this.frames = this.t.length;
    this.links = this.names.length;
    this.start = this.t[0];
    this.end = this.t[this.frames - 1];
    this.reach = this.meshes.map(({ vertices }) => {
      let most = 0;
      for (let k = 0; k < vertices.length; k += 3) most = Math.max(most, Math.hypot(...vertices.subarray(k, k + 3)));
      return most;
    });
    this.round = this.meshes.map(({ vertices }) => {  // radius of a ball of much the same size
      const half = [0, 1, 2].map((axis) => {
        let most = 0;
        for (let k = axis; k < vertices.length; k += 3) most = Math.max(most, Math.abs(vertices[k]));
        return most;
      });
      return Math.cbrt(half[0] * half[1] * half[2]) || 0;
    });
    this.hits = this.lanes.map((_, lane) => this.hitsOf(lane));
    this.strongest = Math.max(1e-30, ...this.hits.flat().map((hit) => hit.size));
  }

  hitsOf(lane) {
    const { starts, t, bodies, pair, dof, point, impulse, size, loss } = this.impacts;
    const hits = [];
    for (let k = starts[lane]; k < starts[lane + 1]; k++) {
      hits.push({
        t: t[k], a: bodies[2 * k], b: bodies[2 * k + 1], dof: dof[k], pair: pair[k], size: size[k], loss: loss[k],
        point: Array.from(point.subarray(3 * k, 3 * k + 3)), impulse: Array.from(impulse.subarray(3 * k, 3 * k + 3)),
      });
    }
    return hits;
  }

  // The last frame at or before t, and how far t is on the way to the next.
  at(t) {
    let low = 0;
    let high = this.frames - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.t[middle] <= t) low = middle;
      else high = middle;
    }
    if (this.frames < 2) return [0, 0];
    const s = clamp((t - this.t[low]) / (this.t[high] - this.t[low]), 0, 1);
    return s === 1 ? [high, 0] : [low, s];
  }

  frameAt(t) {
    const [frame, s] = this.at(t);
    return s > 0.5 ? frame + 1 : frame;
  }

  pose(lane, link, t) {
    return this.poseAt(lane, link, this.at(t));
  }

  poseAt(lane, link, [frame, s]) {
    const row = (lane * this.frames + frame) * this.links + link;
    const p = this.position;
    const position = [p[3 * row], p[3 * row + 1], p[3 * row + 2]];
    const quaternion = this.quaternionAt(row);
    if (s === 0) return { p: position, q: quaternion };
    const next = row + this.links;
    const turns = this.turns[(lane * (this.frames - 1) + frame) * this.links + link];
    return {
      p: mix(position, [p[3 * next], p[3 * next + 1], p[3 * next + 2]], s),
      q: slerp(quaternion, this.quaternionAt(next), s, turns),
    };
  }

  quaternionAt(row) {
    const q = Array.from(this.quaternion.subarray(4 * row, 4 * row + 4));
    const k = 1 / Math.hypot(...q);
    return q.map((x) => x * k);
  }

  poses(lane, t) {
    const when = this.at(t);
    return this.names.map((_, link) => this.poseAt(lane, link, when));
  }

  // Speed of a link's origin [m/s], from the frames around t.
  speed(lane, link, t) {
    const h = (this.end - this.start) / Math.max(this.frames - 1, 1) || 1;
    const [a, b] = [Math.max(t - h / 2, this.start), Math.min(t + h / 2, this.end)];
    return b > a ? norm(sub(this.pose(lane, link, b).p, this.pose(lane, link, a).p)) / (b - a) : 0;
  }

  energy(lane, t) {
    const [frame, s] = this.at(t);
    const k = lane * this.frames + frame;
    const of = (x) => (s ? x[k] * (1 - s) + x[k + 1] * s : x[k]);
    return { kinetic: of(this.kinetic), potential: of(this.potential) };
  }

  name(link) {
    return link < 0 ? "world" : this.names[link];
  }

  says(hit) {
    if (hit.dof >= 0) return `${this.name(hit.a)} at its limit`;
    const world = this.shapeLinks[this.pairs[hit.pair][0]] < 0 ? 0 : 1;  // of the pair's shapes, the one on the world
    const other = hit.b < 0 ? this.owners[this.pairs[hit.pair][world]] : this.name(hit.b);
    return `${this.name(hit.a)} · ${other}`;
  }
}
