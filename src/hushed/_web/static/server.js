// The server: what stands behind # in an address that opens the pages is put into its field, and
// out of the address and the history of the browser.
"use strict";

function takeKey() {
  const field = document.getElementById("key");
  if (!field || location.hash.length < 2) return;
  field.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  document.querySelector("main [data-main]").focus();
}
document.addEventListener("DOMContentLoaded", takeKey);
window.addEventListener("hashchange", takeKey);
