// Puts it together: read, play, draw.

async function main() {
  const scene = await Standing.read();
  const world = await World.read(scene.world);
  scene.of(world);
  const canvas = $("view");
  $("title").textContent = scene.title;
  const stage = new Stage(scene);
  const renderer = new Renderer(canvas, scene.meshes, scene.patches);
  let game = null;
  const camera = new Camera(canvas, () => game && game.changed());
  game = new Game(world, scene, stage, camera);
  window.game = game;
  let before = performance.now();

  function resize() {
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
    if (canvas.width === width && canvas.height === height) return;
    Object.assign(canvas, { width, height });
    game.dirty = true;
  }

  function frame(now) {
    requestAnimationFrame(frame);
    game.tick(clamp((now - before) / 1000, 0, 0.1));
    before = now;
    resize();
    if (!game.dirty) return;
    game.dirty = false;
    renderer.draw(stage.picture(world.t, game.options, camera));
    game.show();
  }
  requestAnimationFrame(frame);
}

function trouble(error) {
  $("trouble").hidden = false;
  $("trouble").textContent = `The page cannot be shown: ${error.message || error}`;
  document.documentElement.dataset.error = String(error.message || error);
}

addEventListener("error", (e) => trouble(e.error || e.message));
addEventListener("unhandledrejection", (e) => trouble(e.reason));
main().catch(trouble);
