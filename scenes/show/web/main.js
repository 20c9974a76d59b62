// Puts it together: read, draw while anything changes, and say in the page's own state what is shown.

async function main() {
  const scene = await Scene.read();
  const canvas = $("view");
  const stage = new Stage(scene);
  const renderer = new Renderer(canvas, scene.meshes, scene.patches);
  let player = null;
  const camera = new Camera(canvas, () => player && player.changed());
  player = new Player(scene, stage, camera);
  const over = typeof TakeOver === "undefined" ? null : new TakeOver(player, renderer); // of a page that also simulates
  window.over = over;
  let followed = null;
  let before = performance.now();

  function follow() {
    const { follow: link, lane } = player.options;
    const at = link < 0 ? null : add(stage.middle(lane, link, player.t), stage.shift(lane, player.options));
    const key = `${link} ${lane} ${player.options.mode}`;
    if (at && followed && followed.key === key) camera.target = add(camera.target, sub(at, followed.at));
    followed = at && { at, key };
  }

  function label(view) {
    const shown = player.options.mode === "grid" ? stage.lanesShown(player.options) : [];
    $("labels").replaceChildren(...shown.map((lane) => {
      const { low, high } = stage;
      const [x, y] = project(view, add(stage.shift(lane, player.options), [(low[0] + high[0]) / 2, low[1], low[2]]));
      const span = Object.assign(document.createElement("span"), { textContent: `lane ${scene.lanes[lane]}` });
      span.style.left = `${50 + 50 * x}%`;
      span.style.top = `calc(${50 - 50 * y}% + 12px)`;
      return span;
    }));
  }

  function frame(now) {
    requestAnimationFrame(frame);
    const seconds = clamp((now - before) / 1000, 0, 0.1); // the clocks of a frame and of a page may differ
    before = now;
    if (over && over.advance(seconds)) return;
    player.tick(seconds);
    if (fitted(canvas)) player.dirty = true;
    if (!player.dirty) return;
    player.dirty = false;
    follow();
    const picture = stage.picture(player.t, player.options, camera);
    renderer.draw(picture);
    player.panel.show();
    label(picture.camera.view);
    const { t, playing, options } = player;
    const state = { ready: true, t, frame: scene.frameAt(t), playing, ...options, lane: scene.lanes[options.lane] };
    document.documentElement.dataset.state = JSON.stringify(state);
  }
  requestAnimationFrame(frame);
}

main().catch(trouble);
