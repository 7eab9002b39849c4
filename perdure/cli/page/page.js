"use strict";
// Without this script the page shows all branches, one after the other. With it, one at a time.
(() => {
  const sections = new Map();
  for (const section of document.querySelectorAll("section")) sections.set(section.id, section);
  const links = new Map();
  for (const link of document.querySelectorAll("nav a")) links.set(link.hash.slice(1), link);

  // Where each stretch goes on: as it was left last, or with its latest branch.
  const next = new Map();
  for (const section of sections.values()) {
    if (section.dataset.parent) next.set(section.dataset.parent, section.id);
  }

  const show = (id) => {
    const path = new Set();
    for (let at = id; at; at = sections.get(at).dataset.parent) {
      path.add(at);
      const parent = sections.get(at).dataset.parent;
      if (parent) next.set(parent, at);
    }
    for (let at = next.get(id); at; at = next.get(at)) path.add(at);
    for (const [key, section] of sections) section.classList.toggle("off", !path.has(key));
    for (const [key, link] of links) {
      link.classList.toggle("on", path.has(key));
      link.classList.toggle("chosen", key === id);
    }
  };

  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const section = target && target.closest("section");
    if (!section) return;
    show(section.id);
    target.scrollIntoView();
  };

  document.documentElement.classList.add("js");
  const leaf = document.body.dataset.leaf;
  if (sections.has(leaf)) show(leaf);
  follow();
  addEventListener("hashchange", follow);
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("section:not(.off) details")) part.open = true;
  });
})();
