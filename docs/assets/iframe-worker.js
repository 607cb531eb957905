// Search in pages that are opened from a folder. There a browser starts no worker from a file, so
// the same script runs in a hidden frame, which sends and takes messages like a worker.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.waiting = [];
      frame.addEventListener("load", () => {
        const inside = frame.contentWindow;
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        inside.importScripts = () => undefined; // of other languages, and there are none
        const script = frame.contentDocument.createElement("script");
        script.src = address;
        script.addEventListener("load", () => {
          this.send = (data) => inside.dispatchEvent(new inside.MessageEvent("message", { data }));
          this.waiting.forEach(this.send);
        });
        frame.contentDocument.body.append(script);
      }, { once: true });
      this.send = (data) => this.waiting.push(data);
      this.addEventListener("message", (event) => this.onmessage && this.onmessage(event));
      document.body.append(frame);
    }
    postMessage(data) {
      this.send(data);
    }
    terminate() {}
  };
}
