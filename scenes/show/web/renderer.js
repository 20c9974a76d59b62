// Draws lists of instances with WebGL2: a shadow map of the sun, planes, bodies, lines, arrows.
// An instance is 16 numbers: position 3, quaternion 4, stretch 3, colour and opacity 4, pattern, glow.

const STRIDE = 16;
const SHADOW_SIZE = 2048;
const SUN = unit([-0.55, -0.5, 1.0]);

class Renderer {
  constructor(canvas, meshes, patches) {
    const gl = canvas.getContext("webgl2", { antialias: true, alpha: false, powerPreference: "high-performance" });
    if (!gl) throw new Error("this browser has no WebGL2: switch on hardware acceleration, or try another browser");
    this.gl = gl;
    this.canvas = canvas;
    this.body = this.program(BODY_VERTEX, BODY_FRAGMENT);
    this.depth = this.program(BODY_VERTEX, DEPTH_FRAGMENT);
    this.ground = this.program(GROUND_VERTEX, GROUND_FRAGMENT);
    this.backdrop = this.program(SKY_VERTEX, SKY_FRAGMENT);
    this.line = this.program(LINE_VERTEX, LINE_FRAGMENT);
    this.meshes = meshes.map((mesh) => this.upload(mesh));
    this.patches = patches.map((patch) => this.uploadPatch(patch));
    this.nothing = gl.createVertexArray();
    this.lines = this.lineBuffer();
    this.makeShadows();
    gl.enable(gl.DEPTH_TEST);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  }

  program(vertex, fragment) {
    const gl = this.gl;
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    const locations = {};
    for (let k = 0; k < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); k++) {
      const name = gl.getActiveUniform(program, k).name;
      locations[name.replace("[0]", "")] = gl.getUniformLocation(program, name);
    }
    return { program, locations };
  }

  buffer(target, data) {
    const gl = this.gl;
    const buffer = gl.createBuffer();
    gl.bindBuffer(target, buffer);
    gl.bufferData(target, data, gl.STATIC_DRAW);
    return buffer;
  }

  // A mesh on the card: one list of instances for what is filled, one for what is drawn as lines.
  upload(mesh) {
    const gl = this.gl;
    const vertices = this.buffer(gl.ARRAY_BUFFER, mesh.vertices);
    const normals = this.buffer(gl.ARRAY_BUFFER, mesh.normals);
    const edges = this.buffer(gl.ARRAY_BUFFER, mesh.edges);
    const list = (points, directions, faces) => {
      const vao = gl.createVertexArray();
      gl.bindVertexArray(vao);
      gl.bindBuffer(gl.ARRAY_BUFFER, points);
      gl.enableVertexAttribArray(0);
      gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
      if (directions) {
        gl.bindBuffer(gl.ARRAY_BUFFER, directions);
        gl.enableVertexAttribArray(1);
        gl.vertexAttribPointer(1, 3, gl.FLOAT, false, 0, 0);
      }
      if (faces) this.buffer(gl.ELEMENT_ARRAY_BUFFER, faces);
      const instances = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, instances);
      let at = 0;
      [3, 4, 3, 4, 2].forEach((width, k) => {
        gl.enableVertexAttribArray(2 + k);
        gl.vertexAttribPointer(2 + k, width, gl.FLOAT, false, 4 * STRIDE, 4 * at);
        gl.vertexAttribDivisor(2 + k, 1);
        at += width;
      });
      return { vao, instances };
    };
    return {
      filled: list(vertices, normals, mesh.faces), wire: list(edges, null, null),
      indices: mesh.faces.length, ends: mesh.edges.length / 3,
      type: mesh.faces instanceof Uint32Array ? gl.UNSIGNED_INT : gl.UNSIGNED_SHORT,
    };
  }

  uploadPatch(patch) {
    const gl = this.gl;
    const vao = gl.createVertexArray();
    gl.bindVertexArray(vao);
    this.buffer(gl.ARRAY_BUFFER, new Float32Array(patch.corners.flat()));
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
    return { ...patch, vao, count: patch.corners.length };
  }

  lineBuffer() {
    const gl = this.gl;
    const vao = gl.createVertexArray();
    gl.bindVertexArray(vao);
    const data = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, data);
    let at = 0;
    [3, 3, 4, 4].forEach((width, k) => {
      gl.enableVertexAttribArray(k);
      gl.vertexAttribPointer(k, width, gl.FLOAT, false, 56, 4 * at);
      gl.vertexAttribDivisor(k, 1);
      at += width;
    });
    return { vao, data };
  }

  makeShadows() {
    const gl = this.gl;
    this.map = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, this.map);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.DEPTH_COMPONENT24, SHADOW_SIZE, SHADOW_SIZE);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE);
    for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, name, gl.LINEAR);
    for (const name of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, name, gl.CLAMP_TO_EDGE);
    this.target = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, this.map, 0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  // picture: camera {eye, view, inverse}, sunlit {middle, radius}, theme, filled, ghosts, wire, arrows (mesh -> instances),
  // shifts of the planes, near (balls that darken the ground), lines, marks (lines in front of all), grid {z, cell, reach}
  draw(picture) {
    const gl = this.gl;
    const { canvas } = this;
    this.light = this.lightOf(picture.sunlit);
    this.picture = picture;
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target);
    gl.viewport(0, 0, SHADOW_SIZE, SHADOW_SIZE);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    this.use(this.depth, { fromSun: 1 }, false);
    this.instances(picture.filled, "filled");
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.depthMask(false);
    this.use(this.backdrop, { inverseView: picture.camera.inverse });
    gl.bindVertexArray(this.nothing);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.depthMask(true);
    this.drawPlanes();
    this.use(this.body, { fromSun: 0, flatly: 0 });
    this.instances(picture.filled, "filled");
    gl.enable(gl.BLEND);
    this.instances(picture.ghosts, "filled");
    this.drawLines(picture.lines);
    gl.disable(gl.DEPTH_TEST);
    this.use(this.body, { fromSun: 0, flatly: 1 });
    this.instances(picture.wire, "wire");
    gl.enable(gl.DEPTH_TEST);
    gl.clear(gl.DEPTH_BUFFER_BIT);  // arrows are seen through bodies
    this.use(this.body, { fromSun: 0, flatly: 0 });
    this.instances(picture.arrows, "filled");
    this.drawLines(picture.marks);
    gl.disable(gl.BLEND);
  }

  lightOf({ middle, radius }) {
    this.grain = (2 * radius) / SHADOW_SIZE;
    return times(orthographic(radius, 1.5 * radius), lookAt(middle, sub(middle, SUN), [0, 1, 0]));
  }

  use({ program, locations }, more, shadows = true) {
    const gl = this.gl;
    const { camera, theme } = this.picture;
    gl.useProgram(program);
    const values = {
      view: camera.view, light: this.light, eye: camera.eye, sun: SUN, sky: theme.sky, horizon: theme.horizon,
      texel: 1 / SHADOW_SIZE, grain: this.grain, shade: theme.shade, ...more,
    };
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, shadows ? this.map : null);
    for (const [name, value] of Object.entries(values)) {
      const location = locations[name];
      if (location === undefined) continue;
      if (value.length === 16 && name !== "near") gl.uniformMatrix4fv(location, false, value);
      else if (name === "near") gl.uniform4fv(location, value);
      else if (value.length === 3) gl.uniform3fv(location, value);
      else if (value.length === 2) gl.uniform2fv(location, value);
      else if (["fromSun", "flatly", "count"].includes(name)) gl.uniform1i(location, value);
      else gl.uniform1f(location, value);
    }
  }

  instances(lists, way) {
    const gl = this.gl;
    lists.forEach((list, k) => {
      if (!list.length) return;
      const mesh = this.meshes[k];
      gl.bindVertexArray(mesh[way].vao);
      gl.bindBuffer(gl.ARRAY_BUFFER, mesh[way].instances);
      gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(list), gl.STREAM_DRAW);
      const many = list.length / STRIDE;
      if (way === "wire") gl.drawArraysInstanced(gl.LINES, 0, mesh.ends, many);
      else gl.drawElementsInstanced(gl.TRIANGLES, mesh.indices, mesh.type, 0, many);
    });
  }

  drawPlanes() {
    const gl = this.gl;
    const { shifts, near, sunlit, theme, grid } = this.picture;
    const common = { middle: sunlit.middle, near, count: Math.min(near.length / 4, 32), cell: grid.cell };
    gl.enable(gl.CULL_FACE);
    for (const patch of this.patches) {
      const q = fromZ(patch.normal);
      const colour = patch.colour || theme.ground;
      const more = {
        ...common, normal: patch.normal, across: rotated(q, [1, 0, 0]), along: rotated(q, [0, 1, 0]), colour,
        lines: patch.lines ? 1 : 0,
        contrast: patch.colour ? 0.03 : theme.contrast, reach: patch.endless ? grid.reach : 1e9,
      };
      for (const shift of patch.endless ? [[0, 0, 0]] : shifts) {
        this.use(this.ground, { ...more, shift });
        gl.bindVertexArray(patch.vao);
        if (patch.lines) gl.enable(gl.BLEND);
        gl.drawArrays(gl.TRIANGLE_FAN, 0, patch.count);
        gl.disable(gl.BLEND);
      }
    }
    gl.disable(gl.CULL_FACE);
  }

  drawLines(lines) {
    const gl = this.gl;
    if (!lines.length) return;
    this.use(this.line, { pixels: [this.canvas.width, this.canvas.height], width: 2.2 * (window.devicePixelRatio || 1) });
    gl.bindVertexArray(this.lines.vao);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.lines.data);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(lines), gl.STREAM_DRAW);
    gl.depthMask(false);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, lines.length / 14);
    gl.depthMask(true);
  }
}
