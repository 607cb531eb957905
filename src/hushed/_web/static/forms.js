// What plain forms cannot do. Every page works without it.
"use strict";

// The first field with an error gets the focus.
function focusError() {
  const first = document.querySelector("main [aria-invalid]");
  if (first) first.focus();
}
document.addEventListener("DOMContentLoaded", focusError);

// Ctrl+Enter is the main button.
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    const main = document.querySelector("main [data-main]");
    if (main) { event.preventDefault(); main.click(); }
  }
});

// What somebody opened stays open when an answer replaces it: the words of the summary tell which.
let opened = [];
function listFolds() {
  const seen = new Map();
  return Array.from(document.querySelectorAll("main details"), (fold) => {
    const words = fold.querySelector("summary").textContent.trim();
    seen.set(words, (seen.get(words) || 0) + 1);
    return { fold, key: `${words} ${seen.get(words)}` };
  });
}
document.addEventListener("htmx:before:swap", () => {
  opened = listFolds().filter(({ fold }) => fold.open).map(({ key }) => key);
});
document.addEventListener("htmx:after:swap", () => {
  listFolds().filter(({ key }) => opened.includes(key)).forEach(({ fold }) => { fold.open = true; });
});

// What is typed while an answer is under way is put back when the answer replaces its field, and told
// to the server. htmx sends one of the requests that replace a page at a time (hx-sync) and drops the
// others: what they would have told is told here.
const typedAt = new Map();  // name of a field -> when it was typed, counted
const askedAt = new WeakMap();  // request -> how far that count was
let typings = 0, kept = [], focused = null;
document.addEventListener("input", (event) => {
  if (event.target.name) typedAt.set(event.target.name, ++typings);
}, true);
let page = null;  // the request that brings a new page, while it is under way
document.addEventListener("htmx:before:request", (event) => {
  const { ctx } = event.detail;
  askedAt.set(ctx, typings);
  if (ctx.target && ctx.target.id === "question-page") page = ctx;
  else if (page && ctx.sourceElement.id === "question") event.preventDefault();  // a form of yesterday
});
document.addEventListener("htmx:finally:request", (event) => { if (event.detail.ctx === page) page = null; });
const fieldsOf = (name) => Array.from(document.querySelectorAll(`main [name="${CSS.escape(name)}"]`));
const said = (field) => ["checkbox", "radio"].includes(field.type) ? field.checked : field.value;
document.addEventListener("htmx:before:swap", (event) => {
  const since = askedAt.get(event.detail.ctx);
  const late = Array.from(typedAt.keys()).filter((name) => typedAt.get(name) > since);
  kept = late.flatMap(fieldsOf).map((field) => ({ id: field.id, said: said(field) }));
  const at = document.activeElement;
  focused = { id: at.id, from: at.selectionStart, to: at.selectionEnd };
});
document.addEventListener("htmx:after:swap", () => {
  const now = kept.map((each) => ({ ...each, field: document.getElementById(each.id) }));
  const lost = now.filter((each) => each.field && said(each.field) !== each.said);
  for (const each of lost) {
    if (typeof each.said === "boolean") each.field.checked = each.said;
    else each.field.value = each.said;
  }
  const field = focused && focused.id && document.getElementById(focused.id);
  if (field && document.activeElement === document.body) {
    field.focus();
    if (typeof focused.from === "number") field.setSelectionRange(focused.from, focused.to);
  }
  kept = [];
  for (const { field: each } of lost) {
    each.dispatchEvent(new Event("input", { bubbles: true }));
    each.dispatchEvent(new Event("change", { bubbles: true }));
  }
});

// Buttons of a form that was sent are not pressed twice.
document.addEventListener("submit", (event) => {
  if (event.target.dataset.once === undefined) return;
  if (event.target.dataset.sent) { event.preventDefault(); return; }
  event.target.dataset.sent = "yes";
  event.target.querySelectorAll("button").forEach((each) => each.setAttribute("aria-disabled", "true"));
});
window.addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach((each) => delete each.dataset.sent));

// A field is marked as wrong as long as there is an error at it.
document.addEventListener("htmx:after:swap", () => {
  document.querySelectorAll(".error[id$='-error']").forEach((each) => {
    const field = document.getElementById(each.id.slice(0, -"-error".length));
    if (!field) return;
    if (each.textContent.trim()) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  });
});

// What was typed before the scripts were loaded is told to the server, too.
function isChanged(field) {
  if (field.options) {
    const first = Array.from(field.options).findIndex((each) => each.defaultSelected);
    return field.selectedIndex !== Math.max(first, 0);
  }
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  // A slider rounds what it was given, and has a field beside it.
  return field.type !== "range" && field.defaultValue !== undefined && field.value !== field.defaultValue;
}
document.addEventListener("DOMContentLoaded", () => setTimeout(() => {  // after htmx has begun
  document.querySelectorAll("form[hx-post]").forEach((form) => {
    const early = Array.from(form.elements).find(isChanged);
    if (!early) return;
    early.dispatchEvent(new Event("input", { bubbles: true }));
    early.dispatchEvent(new Event("change", { bubbles: true }));
  });
}));
