// Vectors are arrays of 3, quaternions [w, x, y, z], matrices 16 numbers column by column as WebGL has them.

const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const mul = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const norm = (a) => Math.hypot(a[0], a[1], a[2]);
const unit = (a) => mul(a, 1 / (norm(a) || 1));
const mix = (a, b, s) => add(mul(a, 1 - s), mul(b, s));
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

function rotated(q, v) {
  const u = [q[1], q[2], q[3]];
  const c = mul(cross(u, v), 2);
  return add(add(v, mul(c, q[0])), cross(u, c));
}

function product(a, b) {
  return [
    a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
    a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
    a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
    a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
  ];
}

// From a to b on the shortest way, and so many whole turns more about its axis.
function slerp(a, b, s, turns) {
  let d = product(b, [a[0], -a[1], -a[2], -a[3]]);
  if (d[0] < 0) d = d.map((x) => -x);
  const sine = Math.hypot(d[1], d[2], d[3]);
  if (sine < 1e-9) return a;
  const half = (Math.atan2(sine, d[0]) + Math.PI * turns) * s;
  const k = Math.sin(half) / sine;
  return product([Math.cos(half), d[1] * k, d[2] * k, d[3] * k], a);
}

// The smallest rotation that takes z to a unit direction.
function fromZ(n) {
  if (n[2] < -0.999999) return [0, 1, 0, 0];
  const q = [1 + n[2], -n[1], n[0], 0];
  const k = 1 / Math.hypot(q[0], q[1], q[2]);
  return q.map((x) => x * k);
}

function times(a, b) {
  const m = new Float32Array(16);
  for (let i = 0; i < 4; i++)
    for (let j = 0; j < 4; j++)
      m[4 * j + i] = a[i] * b[4 * j] + a[4 + i] * b[4 * j + 1] + a[8 + i] * b[4 * j + 2] + a[12 + i] * b[4 * j + 3];
  return m;
}

function lookAt(eye, target, up) {
  const z = unit(sub(eye, target));
  const x = unit(cross(up, z));
  const y = cross(z, x);
  return new Float32Array([
    x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0, -dot(x, eye), -dot(y, eye), -dot(z, eye), 1,
  ]);
}

function perspective(fov, aspect, near, far) {
  const f = 1 / Math.tan(fov / 2);
  const k = 1 / (near - far);
  return new Float32Array([f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (near + far) * k, -1, 0, 0, 2 * near * far * k, 0]);
}

function orthographic(half, depth) {
  return new Float32Array([1 / half, 0, 0, 0, 0, 1 / half, 0, 0, 0, 0, -1 / depth, 0, 0, 0, 0, 1]);
}

// Where a point is in the picture: x, y from -1 to 1, and its depth along the view [m].
function project(m, p) {
  const w = m[3] * p[0] + m[7] * p[1] + m[11] * p[2] + m[15];
  return [
    (m[0] * p[0] + m[4] * p[1] + m[8] * p[2] + m[12]) / w, (m[1] * p[0] + m[5] * p[1] + m[9] * p[2] + m[13]) / w, w,
  ];
}
