// Puts it together: read, play, draw.

const AHEAD = 60;  // frames that are played to see where bodies come to

// The stage's box holds what moves in the first second, too, where that is not too far.
function lookAhead(world, scene, stage) {
  const { low, high } = stage;
  const size = norm(sub(high, low));
  const firsts = scene.names.map((_, link) => scene.shapes.find((shape) => shape.link === link));
  for (let k = 0; k < AHEAD && world.step() < 100; k++) {
    const poses = world.poses();
    firsts.forEach((shape, link) => {
      const reach = shape ? scene.round[shape.mesh] : 0;
      for (let axis = 0; axis < 3; axis++) {
        const x = poses[7 * link + axis];
        if (x < low[axis] - size || x > high[axis] + size) continue;
        stage.low = stage.low.map((y, j) => (j === axis ? Math.min(y, x - reach) : y));
        stage.high = stage.high.map((y, j) => (j === axis ? Math.max(y, x + reach) : y));
      }
    });
  }
  stage.size = norm(sub(stage.high, stage.low));
  world.reset();
}

async function main() {
  const scene = await Standing.read();
  const world = await World.read(scene.world);
  scene.of(world);
  const canvas = $("view");
  $("world-title").textContent = scene.title;
  const stage = new Stage(scene);
  lookAhead(world, scene, stage);
  const renderer = new Renderer(canvas, scene.meshes, scene.patches);
  let game = null;
  const camera = new Camera(canvas, () => game && game.changed());
  game = new Game(world, scene, stage, camera);
  game.refit();
  game.fromAddress();
  window.game = game;
  let before = performance.now();

  function frame(now) {
    requestAnimationFrame(frame);
    game.advance(clamp((now - before) / 1000, 0, 0.1), renderer);
    before = now;
  }
  requestAnimationFrame(frame);
}

main().catch(trouble);
