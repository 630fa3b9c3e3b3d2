// Reports and pictures follow JupyterLab's mark of its theme; the switch in the navigation bar sets it here.
const root = document.documentElement;
const mark = () => document.body?.setAttribute("data-jp-theme-light", String(root.dataset.theme !== "dark"));
new MutationObserver(mark).observe(root, { attributes: true, attributeFilter: ["data-theme"] });
document.addEventListener("DOMContentLoaded", mark);

// A term that is explained on hover leads to its section.
document.addEventListener("DOMContentLoaded", () => {
  const base = root.dataset.content_root ?? "./";
  for (const term of document.querySelectorAll("abbr[data-gradlab-term]")) {
    if (term.closest("a, summary, .gallery-card")) continue; // the whole card is a link
    const link = document.createElement("a");
    link.href = `${base}guide/terms.html#${term.dataset.gradlabTerm}`;
    link.style.color = "inherit";
    link.textContent = term.textContent;
    term.removeAttribute("tabindex"); // the link takes the focus
    term.replaceChildren(link);
  }
});

// The kind of a finding, in brackets after it, leads to its section.
document.addEventListener("DOMContentLoaded", () => {
  const base = root.dataset.content_root ?? "./";
  for (const kind of document.querySelectorAll("[data-gradlab-kind]")) {
    if (kind.closest("a, .gallery-card")) continue; // the whole card is a link
    const link = document.createElement("a");
    link.href = `${base}guide/kinds.html#${kind.dataset.gradlabKind.replaceAll("_", "-")}`;
    link.style.color = "inherit";
    link.textContent = kind.textContent.replace(/^\[|\]$/g, "");
    kind.replaceChildren("[", link, "]");
  }
});
