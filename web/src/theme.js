// SPDX-License-Identifier: Apache-2.0
// Before the first paint, so that nobody is dazzled: what was chosen, else what the system says.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("proctor-theme");
  } catch {
    /* a file may have no storage */
  }
  if (theme !== "light" && theme !== "dark")
    theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.documentElement.dataset.theme = theme;
})();
