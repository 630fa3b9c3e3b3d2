// Reports and pictures follow JupyterLab's mark of its theme; the switch in the navigation bar sets it here.
const root = document.documentElement;
const mark = () => document.body?.setAttribute("data-jp-theme-light", String(root.dataset.theme !== "dark"));
new MutationObserver(mark).observe(root, { attributes: true, attributeFilter: ["data-theme"] });
document.addEventListener("DOMContentLoaded", mark);
