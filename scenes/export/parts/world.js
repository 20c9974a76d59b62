// A world in WebAssembly: calls, its arrays, and the saves of the frames that it has played.

const FRAMES = 36000;  // that can be gone back to: ten minutes of 1/60 s
const CONTACTS = 1024;   // that are read at most
const ENDED = 2;         // a contact's phase
const LARGE = 7e6;     // [bytes] browsers compile more than 8 MB only in the background
const WHOLE = { 4: (view, at) => view.getInt32(at, true), 8: (view, at) => Number(view.getBigInt64(at, true)) };

class World {
  static async read(data) {
    const text = document.getElementById("program").textContent.trim();
    const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const code = await new Response(stream).arrayBuffer();
    const large = code.byteLength > LARGE;
    const { exports } = large ? (await WebAssembly.instantiate(code)).instance : new WebAssembly.Instance(new WebAssembly.Module(code));
    return new World(exports, data);
  }

  constructor(calls, data) {
    Object.assign(this, { calls, data });
    this.at = data.heap;
    this.scratch = this.at + calls.world_size();
    const room = 65536 + data.save + CONTACTS * data.row * data.wide;
    const missing = this.scratch + room - calls.memory.buffer.byteLength;
    if (missing > 0) calls.memory.grow(Math.ceil(missing / 65536));
    this.view = new DataView(calls.memory.buffer);
    this.bytes = new Uint8Array(calls.memory.buffer);
    this.Real = data.wide === 8 ? Float64Array : Float32Array;
    calls.world_init(this.at);
    this.start = { restitution: this.array("restitution", data.pairs).slice(), friction: this.array("friction", data.pairs).slice() };
    this.history = [this.save()];
    this.frame = 0;
  }

  array(name, size) {
    return new this.Real(this.calls.memory.buffer, this.calls[`world_${name}`](this.at), size);
  }

  get t() {
    return this.array("time", 1)[0];
  }

  poses() {
    return this.array("poses", 7 * this.data.links);
  }

  // One a body: 1 where it sleeps.
  asleep() {
    return new Int32Array(this.calls.memory.buffer, this.calls.world_asleep(this.at), this.data.links);
  }

  // For each trigger whether anybody is in it.
  entered() {
    const { triggers, links } = this.data;
    if (!triggers.length) return [];
    const inside = new Int32Array(this.calls.memory.buffer, this.calls.world_inside(this.at), triggers.length * links);
    return triggers.map((_, k) => inside.subarray(k * links, (k + 1) * links).includes(1));
  }

  // Real numbers into memory that a call reads; several arrays, one behind the other.
  given(...arrays) {
    let at = this.scratch;
    return arrays.map((numbers) => {
      if (!numbers) return 0;
      const address = at;
      new this.Real(this.calls.memory.buffer, address, numbers.length).set(numbers);
      at += 64;
      return address;
    });
  }

  // One frame on; what came after this one before is forgotten.
  step() {
    const code = this.calls.world_step(this.at, this.data.dt);
    if (code >= 100) return code;
    this.history.length = ++this.frame;
    if (this.frame >= FRAMES) {
      this.history.shift();
      this.frame--;
    }
    this.history.push(this.save());
    return code;
  }

  force(body, force, point) {
    const [f, p] = this.given(force, point);
    return this.calls.world_apply_force(this.at, body, f, p);
  }

  impulse(body, impulse, point) {
    const [f, p] = this.given(impulse, point);
    return this.calls.world_apply_impulse(this.at, body, f, p);
  }

  // Which body a ray hits first, statics left out: { body, distance, point }, or null.
  ray(origin, direction) {
    const { wide } = this.data;
    const [o, d, hit] = this.given(origin, direction, new Array(9).fill(0));
    if (!this.calls.world_ray(this.at, o, d, 1e6, 1, -1, hit)) return null;
    const [distance, ...point] = new this.Real(this.calls.memory.buffer, hit + 2 * wide, 4);
    return { body: WHOLE[wide](this.view, hit), distance, point };
  }

  // Of the last frame: { a, b, impacts, impulse, point, speed }.
  contacts() {
    const { wide, row } = this.data;
    const count = Math.min(this.calls.world_contacts(this.at, this.scratch, CONTACTS), CONTACTS);
    return Array.from({ length: count }, (_, k) => {
      const at = this.scratch + k * row * wide;
      const [a, b, phase, impacts] = [0, 1, 2, 3].map((j) => WHOLE[wide](this.view, at + j * wide));
      const reals = Array.from(new this.Real(this.calls.memory.buffer, at + 4 * wide, row - 4));
      return { a, b, phase, impacts, impulse: reals.slice(0, 3), point: reals.slice(3, 6), speed: reals[9] };
    });
  }

  save() {
    const size = this.calls.world_save(this.at, this.scratch);
    return this.bytes.slice(this.scratch, this.scratch + size);
  }

  load(save) {
    if (save.length > this.data.save) return 1001;
    this.bytes.set(save, this.scratch);
    return this.calls.world_load(this.at, this.scratch, save.length);
  }

  // From a save on, with no past.
  begin(save) {
    const code = this.load(save);
    if (code === 0) [this.history, this.frame] = [[this.save()], 0];
    return code;
  }

  reset() {
    this.calls.world_reset(this.at);
    [this.history, this.frame] = [[this.save()], 0];
  }

  // To a frame that was played.
  rewind(frame) {
    this.frame = clamp(Math.round(frame), 0, this.history.length - 1);
    this.load(this.history[this.frame]);
  }

  // Restitution or friction of all pairs; null: as the scene has it.
  material(name, value) {
    this.array(name, this.data.pairs).set(value === null ? this.start[name] : this.start[name].map(() => value));
  }

  hash() {
    this.calls.world_hash(this.at, this.scratch);
    return String.fromCharCode(...this.bytes.subarray(this.scratch, this.scratch + 32));
  }
}

// What the stage draws: the world as it stands, between its last two frames.
class Standing extends Scene {
  of(world) {
    this.standing = world;
    this.jump();
    return this;
  }

  // The frame is another one now.
  keep() {
    this.before = this.now;
    this.now = this.standing.poses().slice();
  }

  // It did not come from the one before.
  jump() {
    this.keep();
    this.before = this.now;
  }

  // s: how far on the way from the last frame but one to the last.
  poseAt(lane, link, s) {
    const of = (x) => [Array.from(x.subarray(7 * link, 7 * link + 3)), Array.from(x.subarray(7 * link + 3, 7 * link + 7))];
    const [[p, q], [P, Q]] = [of(this.before), of(this.now)];
    return s >= 1 ? { p: P, q: Q } : { p: mix(p, P, s), q: slerp(q, Q, s, 0) };
  }

  at() {
    return this.share ?? 1;
  }
}
