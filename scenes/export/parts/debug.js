// What the solver sees: who sleeps, the islands of those that touch, contacts with their impulses, triggers.

const ASLEEP = [0.45, 0.5, 0.6];
const CONTACT = [0.95, 0.25, 0.2];
const EMPTY = [0.2, 0.5, 0.3];
const ENTERED = [0.3, 0.9, 0.4];

const segment = (from, to, colour) => [...from, ...to, ...colour, 1, ...colour, 1];

class Debug {
  constructor(world, stage) {
    Object.assign(this, { world, stage });
  }

  // colours: of each body, grey where it sleeps, else as the lowest body that it touches, directly or through others.
  // marks: crosses where bodies touch, lines along the impulses on the first of each two, and the edges of triggers.
  picture() {
    const contacts = this.contacts();
    return { colours: this.colours(contacts), marks: [...this.marks(contacts), ...this.triggers()] };
  }

  triggers() {
    const entered = this.world.entered(), { triggers } = this.world.data;
    return triggers.flatMap(({ link, ends }, k) => {
      const { p, q } = link < 0 ? { p: [0, 0, 0], q: [1, 0, 0, 0] } : this.stage.scene.poseAt(0, link, 1);
      const [from, to] = [0, 1].map((end) => ends.map((both) => add(p, rotated(q, both[end]))));
      return from.flatMap((x, j) => segment(x, to[j], entered[k] ? ENTERED : EMPTY));
    });
  }

  contacts() {
    return this.world.contacts().filter(({ phase }) => phase !== ENDED);
  }

  colours(contacts) {
    const { world, stage } = this, asleep = world.asleep(), island = this.islands(contacts);
    return stage.colours.map((_, link) => (asleep[link] ? ASLEEP : stage.colours[island[link]]));
  }

  islands(contacts) {
    const first = this.stage.colours.map((_, link) => link);
    const root = (link) => (first[link] === link ? link : (first[link] = root(first[link])));
    for (const { a, b } of contacts) {
      if (a < 0 || b < 0) continue;
      const [low, high] = [root(a), root(b)].sort((x, y) => x - y);
      first[high] = low;
    }
    return first.map((_, link) => root(link));
  }

  marks(contacts) {
    const size = this.stage.size, strongest = Math.max(1e-30, ...contacts.map(({ impulse }) => norm(impulse)));
    const line = (from, to) => segment(from, to, CONTACT);
    return contacts.flatMap(({ point, impulse }) => [
      ...[0, 1, 2].flatMap((axis) => {
        const arm = [0, 1, 2].map((k) => (k === axis ? 0.008 * size : 0));
        return line(sub(point, arm), add(point, arm));
      }),
      ...line(point, add(point, mul(impulse, (0.12 * size) / strongest))),
    ]);
  }
}
