// What every page does: fits its canvas to the window, and says what went wrong.

const $ = (id) => document.getElementById(id);

// Whether the canvas has another size now.
function fitted(canvas) {
  const ratio = Math.min(devicePixelRatio || 1, 2);
  const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
  if (canvas.width === width && canvas.height === height) return false;
  Object.assign(canvas, { width, height });
  return true;
}

function trouble(error) {
  $("trouble").hidden = false;
  $("trouble").textContent = `The page cannot be shown: ${error.message || error}`;
  document.documentElement.dataset.error = String(error.message || error);
}

addEventListener("error", (e) => trouble(e.error || e.message));
addEventListener("unhandledrejection", (e) => trouble(e.reason));
