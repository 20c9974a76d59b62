// GLSL of the renderer. World axes, z up, metres; colours come in as sRGB and are lit in linear light.

const COMMON = `#version 300 es
precision highp float;
precision highp sampler2DShadow;
uniform mat4 view, light;      // world to clip space of the camera, and of the sun
uniform vec3 eye, sun;         // where the camera is; the direction to the sun
uniform vec3 sky, horizon;     // linear
uniform sampler2DShadow shadows;
uniform float texel, grain;    // of the shadow map, in its own coordinates and in metres
uniform float shade;           // how dark shadows are
vec3 linear(vec3 c) { return pow(c, vec3(2.2)); }
vec3 shown(vec3 c) { c *= 1.05; return pow(c * (1.0 + c * 0.06) / (1.0 + c * 0.22), vec3(1.0 / 2.2)); }
vec3 backdrop(vec3 d) {
  return mix(horizon, sky, smoothstep(0.0, 0.55, d.z)) * (1.0 - 0.2 * smoothstep(-0.05, -0.9, d.z));
}
float noise(vec2 p) { return fract(52.9829189 * fract(dot(p, vec2(0.06711056, 0.00583715)))); }
`;

// Sixteen taps on a spiral that is turned at every pixel.
const SHADOW = `
float lit(vec3 p, vec3 n) {
  vec4 h = light * vec4(p + n * grain * 2.5, 1.0);
  vec3 c = h.xyz / h.w * 0.5 + 0.5;
  if (any(lessThan(c, vec3(0.0))) || any(greaterThan(c, vec3(1.0)))) return 1.0;
  float angle = 6.2832 * noise(gl_FragCoord.xy), sum = 0.0;
  for (int k = 0; k < 16; k++) {
    float a = angle + float(k) * 2.39996, r = sqrt((float(k) + 0.5) / 16.0) * 4.5 * texel;
    sum += texture(shadows, vec3(c.xy + r * vec2(cos(a), sin(a)), c.z - 0.0006));
  }
  return sum / 16.0;
}
`;

const BODY_VERTEX = `${COMMON}
layout(location = 0) in vec3 vertex;
layout(location = 1) in vec3 direction;
layout(location = 2) in vec3 position;
layout(location = 3) in vec4 attitude; // w x y z
layout(location = 4) in vec3 stretch;
layout(location = 5) in vec4 colour;
layout(location = 6) in vec2 look;     // pattern, glow
uniform bool fromSun;
out vec3 P, N, L;
out vec4 C;
out vec2 K;
vec3 rotated(vec3 v) { vec3 c = 2.0 * cross(attitude.yzw, v); return v + attitude.x * c + cross(attitude.yzw, c); }
void main() {
  P = position + rotated(vertex * stretch);
  N = rotated(direction / stretch);
  L = vertex;
  C = colour;
  K = look;
  gl_Position = (fromSun ? light : view) * vec4(P, 1.0);
}`;

const DEPTH_FRAGMENT = `${COMMON}
in vec4 C;
void main() { if (C.a < 0.5) discard; }`;

const BODY_FRAGMENT = `${COMMON}${SHADOW}
in vec3 P, N, L;
in vec4 C;
in vec2 K;
uniform bool flatly;
out vec4 pixel;
float band(float x, float edge) { float w = fwidth(x) + 1e-6; return smoothstep(edge - w, edge + w, x); }
vec3 painted(vec3 c) {
  vec3 d = normalize(L + 1e-9);
  vec3 ivory = vec3(0.957, 0.937, 0.886);
  int kind = int(K.x + 0.5);
  if (kind == 1) {  // quarters about z, lighter and darker
    float w = fwidth(d.x) + fwidth(d.y) + 1e-6;
    float s = smoothstep(-w, w, d.x) * 2.0 - 1.0, t = smoothstep(-w, w, d.y) * 2.0 - 1.0;
    return c * (0.93 + 0.07 * s * t);
  }
  if (kind == 2) return mix(ivory, c, 1.0 - band(abs(d.x), 0.90));
  if (kind == 3) return mix(mix(c, ivory, band(abs(d.z), 0.52)), ivory, band(abs(d.x), 0.90));
  if (kind == 4) {
    vec3 a = abs(d);
    return mix(c, vec3(0.78, 0.16, 0.14), band(max(a.x, max(a.y, a.z)), 0.975));
  }
  return c;
}
void main() {
  if (flatly) { pixel = C; return; }
  vec3 n = normalize(N), v = normalize(eye - P), base = linear(painted(C.rgb));
  if (dot(n, v) < 0.0) n = -n;
  if (K.y > 0.5) {  // glows: arrows
    pixel = vec4(shown(base * (0.75 + 0.35 * max(dot(n, sun), 0.0))), C.a);
    return;
  }
  float facing = max(dot(n, sun), 0.0);
  float open = facing > 0.0 ? mix(1.0, lit(P, n), shade) : 1.0;
  vec3 h = normalize(sun + v);
  float nv = max(dot(n, v), 1e-3), nh = max(dot(n, h), 0.0), vh = max(dot(v, h), 0.0);
  float rough = 0.09;  // squared twice over: GGX of roughness 0.3
  float g = nh * nh * (rough * rough - 1.0) + 1.0;
  float gloss = rough * rough / (3.14159 * g * g) * 0.25 / max(mix(nv, 1.0, 0.3) * mix(facing, 1.0, 0.3), 0.05);
  float fresnel = 0.04 + 0.96 * pow(1.0 - vh, 5.0);
  vec3 around = mix(horizon * 0.50, sky * 0.62 + 0.12, n.z * 0.5 + 0.5);
  vec3 mirrored = backdrop(reflect(-v, n));
  float rim = 0.04 + 0.5 * pow(1.0 - nv, 5.0);
  vec3 c = base * (around + 1.9 * facing * open) * 0.62 + min(gloss, 12.0) * fresnel * facing * open * 1.1;
  c += mirrored * rim * 0.35;
  pixel = vec4(shown(c), C.a);
}`;

// Planes: a checker that keeps its sharpness at any distance, darker where bodies stand close.
const GROUND_VERTEX = `${COMMON}
layout(location = 0) in vec3 vertex;
uniform vec3 shift;
out vec3 P;
void main() { P = vertex + shift; gl_Position = view * vec4(P, 1.0); }`;

const GROUND_FRAGMENT = `${COMMON}${SHADOW}
in vec3 P;
uniform vec3 normal, across, along, colour, middle, shift;
uniform float cell, reach, contrast, lines;
uniform vec4 near[32];
uniform int count;
out vec4 pixel;
float checker(vec2 p) {
  vec2 w = max(fwidth(p), 1e-4);
  vec2 i = 2.0 * (abs(fract((p - 0.5 * w) * 0.5) - 0.5) - abs(fract((p + 0.5 * w) * 0.5) - 0.5)) / w;
  return 0.5 - 0.5 * i.x * i.y;
}
float grid(vec2 p, float width) {
  vec2 w = fwidth(p) + 1e-6;
  vec2 d = abs(fract(p - 0.5) - 0.5) / w;
  return (1.0 - smoothstep(width, width + 1.0, min(d.x, d.y))) * (1.0 - smoothstep(0.2, 0.6, max(w.x, w.y)));
}
void main() {
  vec3 v = normalize(eye - P);
  vec3 local = P - shift;
  vec2 p = vec2(dot(local, across), dot(local, along)) / cell;
  float far = length(P - middle) / reach;
  float stays = 1.0 - smoothstep(0.9, 5.0, far);
  if (lines > 0.5) {
    pixel = vec4(mix(vec3(0.5), colour, 0.5), 0.30 * grid(p, 0.2) * stays);
    return;
  }
  vec3 base = linear(colour) * (1.0 + contrast * (checker(p) - 0.5));
  float closed = 1.0;
  for (int k = 0; k < count; k++) {  // the part of the sky that a ball hides (I. Quilez, sphere occlusion)
    vec3 to = near[k].xyz - P;
    float l = length(to);
    closed *= 1.0 - 0.75 * clamp(dot(normal, to) / l, 0.0, 1.0) * min(near[k].w * near[k].w / (l * l), 1.0);
  }
  float facing = max(dot(normal, sun), 0.0);
  float open = mix(1.0, lit(P, normal), shade);
  vec3 around = mix(horizon * 0.50, sky * 0.62 + 0.12, normal.z * 0.5 + 0.5);
  vec3 c = base * (around * mix(1.0, closed, 0.85) + 1.9 * facing * open * mix(1.0, closed, 0.25)) * 0.62;
  float fresnel = pow(1.0 - max(dot(v, normal), 0.0), 5.0);
  c += horizon * fresnel * 0.12;
  pixel = vec4(shown(mix(horizon, c, reach > 1e8 ? 1.0 : stays)), 1.0);
}`;

const SKY_VERTEX = `${COMMON}
uniform mat4 inverseView;  // from clip space to directions, columns: right, up, back
out vec3 D;
void main() {
  vec2 p = vec2((gl_VertexID << 1) & 2, gl_VertexID & 2) * 2.0 - 1.0;
  D = (inverseView * vec4(p, -1.0, 0.0)).xyz;
  gl_Position = vec4(p, 0.9999, 1.0);
}`;

const SKY_FRAGMENT = `${COMMON}
in vec3 D;
out vec4 pixel;
void main() { pixel = vec4(shown(backdrop(normalize(D))) + (noise(gl_FragCoord.xy) - 0.5) / 255.0, 1.0); }`;

// Lines of a width in pixels: one instance a segment, with a colour at each end.
const LINE_VERTEX = `${COMMON}
layout(location = 0) in vec3 first;
layout(location = 1) in vec3 last;
layout(location = 2) in vec4 colourA;
layout(location = 3) in vec4 colourB;
uniform vec2 pixels;   // size of the picture
uniform float width;
out vec4 C;
void main() {
  vec4 a = view * vec4(first, 1.0), b = view * vec4(last, 1.0);
  float end = float(gl_VertexID & 1), side = float(gl_VertexID >> 1) * 2.0 - 1.0;
  vec2 d = (b.xy / b.w - a.xy / a.w) * pixels;
  vec2 s = length(d) > 1e-6 ? normalize(vec2(-d.y, d.x)) : vec2(0.0);
  vec4 p = mix(a, b, end);
  C = mix(colourA, colourB, end);
  gl_Position = p + vec4(s * side * width / pixels * p.w, -1e-4 * p.w, 0.0);
  if (a.w < 0.0 || b.w < 0.0) gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
}`;

const LINE_FRAGMENT = `${COMMON}
in vec4 C;
out vec4 pixel;
void main() { pixel = C; }`;
