// A page that was opened as a file may start no worker: what searches then runs in a frame of the page.

if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.worker = this;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.ready = new Promise((resolve) => { frame.ready = resolve; });
      const { document: page } = this.inside;
      page.open();
      page.write(`<script>postMessage = (data) =>
        frameElement.worker.dispatchEvent(new MessageEvent("message", { data }))</script>
        <script src="${address}" onload="frameElement.ready()"></script>`);
      page.close();
    }

    async postMessage(data) {
      await this.ready;
      this.inside.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
