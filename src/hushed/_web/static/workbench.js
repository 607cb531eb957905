// The workbench: a server that is gone, numbers that are computed, sliders.
"use strict";

// A server that is gone: say so, and ask every second whether it is back.
const banner = () => document.getElementById("lost");
let lost = false;

async function isThere() {
  try {
    return (await fetch("/static/favicon.svg", { cache: "no-store" })).ok;
  } catch {
    return false;
  }
}

async function look() {
  const there = await isThere();
  if (there === lost && banner()) {
    lost = !there;
    banner().hidden = there;
    if (there) document.dispatchEvent(new Event("workbench:back"));
  }
}
setInterval(() => { if (!document.hidden || lost) look(); }, 1000);
document.addEventListener("htmx:error", look);

// After 150 ms the status line says that something is computed; what it replaces turns grey.
const COMPUTING = "computing";
let waiting;
document.addEventListener("htmx:before:request", (event) => {
  const area = event.target.closest?.("[data-status]");  // the document, where the asker has gone
  if (!area || !area.dataset.status) return;
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    const line = document.getElementById(area.dataset.status);
    if (line) line.textContent = COMPUTING;
    area.querySelectorAll("[data-live]").forEach((each) => each.classList.add("old"));
  }, 150);
});
function stopWaiting() {
  clearTimeout(waiting);
  document.querySelectorAll(".old").forEach((each) => each.classList.remove("old"));
  document.querySelectorAll("[data-status]").forEach(({ dataset }) => {
    const line = document.getElementById(dataset.status);
    if (line && line.textContent === COMPUTING) line.textContent = "";
  });
}
document.addEventListener("htmx:after:swap", stopWaiting);
document.addEventListener("htmx:error", stopWaiting);

// Of a slider and its field the one that was moved is told to the server.
document.addEventListener("input", (event) => {
  const pair = event.target.closest("[data-slider]");
  const moved = pair && event.target.form && event.target.form.elements["moved"];
  if (moved) moved.value = event.target.id;
});

// Sliders: arrows move 1 %, Page keys 10 %.
document.addEventListener("keydown", (event) => {
  if (event.target.type !== "range") return;
  const step = { ArrowRight: 10, ArrowUp: 10, ArrowLeft: -10, ArrowDown: -10, PageUp: 100, PageDown: -100 }[event.key];
  if (!step) return;
  event.preventDefault();
  event.target.value = Number(event.target.value) + step;
  event.target.dispatchEvent(new Event("input", { bubbles: true }));
  event.target.dispatchEvent(new Event("change", { bubbles: true }));
});
