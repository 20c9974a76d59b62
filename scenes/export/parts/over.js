// Takes over from the replay of a run: goes on from one of its frames by simulation, and comes back.

class TakeOver {
  constructor(player, renderer) {
    Object.assign(this, { player, renderer, game: null });
    $("over").addEventListener("click", () => this.take());
    addEventListener("keydown", (e) => { if (e.key === "Enter" && e.target.tagName !== "BUTTON" && !$("help").open) this.take(); });
    addEventListener("hashchange", () => this.fromAddress());
    this.fromAddress();
  }

  // What the recording has of the frame that is nearest to what is shown, as a save of the world.
  save() {
    const { player: { scene, t } } = this, { header, states } = scene.taken;
    const size = states.length / scene.frames, frame = scene.frameAt(t);
    return new Uint8Array([...header, ...states.subarray(frame * size, (frame + 1) * size)]);
  }

  async take() {
    if (this.player.idle) return;
    const save = this.save(), { playing } = this.player;
    await this.enter();
    this.game.begin(save);
    this.game.playing = playing;
  }

  // An address with a world in it is one of the game's.
  async fromAddress() {
    if (this.player.idle || !new URLSearchParams(location.hash.slice(1)).has("save")) return;
    await this.enter();
    this.game.fromAddress();
  }

  async enter() {
    const { player } = this;
    [player.idle, player.playing] = [true, false];
    clearTimeout(player.noting);
    this.game ??= await this.made();
    const { game } = this;
    [game.idle, game.written] = [false, null];
    game.options.theme = player.options.theme;
    player.camera.changed = () => game.changed();
    document.documentElement.classList.add("taken");
  }

  async made() {
    const { player: { camera } } = this;
    const scene = await Standing.read();
    const world = await World.read(scene.world);
    scene.of(world);
    $("world-title").textContent = scene.title;
    document.querySelector("[data-plays=replay]").hidden = false;
    const game = new Game(world, scene, new Stage(scene), camera);
    game.leave = () => this.leave();
    return game;
  }

  // Back to the replay, where it was left.
  leave() {
    const { player, game } = this;
    [player.idle, player.written, game.idle, game.playing, game.held] = [false, null, true, false, null];
    clearTimeout(game.noting);
    player.camera.changed = () => player.changed();
    document.documentElement.classList.remove("taken");
    player.changed();
  }

  // One callback of the browser, where the game has taken over.
  advance(seconds) {
    if (!this.game || this.game.idle) return false;
    this.game.advance(seconds, this.renderer);
    return true;
  }
}
