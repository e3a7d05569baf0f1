#pragma once

#include <string_view>

/// What makes the picture answer a mouse. It only moves and hides what is drawn, and handles every
/// name as text, never as markup.
namespace troupe::diag {

inline constexpr std::string_view flame_style = R"css(
text { font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 12px; fill: #1b1f24; }
.f { cursor: pointer; }
.f rect { rx: 2px; }
.f:hover rect { stroke: #1b1f24; stroke-width: 1; }
.f text { pointer-events: none; }
.f.few text { fill: #fff; }
.f.found rect { fill: #c026d3; }
.f.found text { fill: #fff; }
.f.below { opacity: 0.55; }
.button { cursor: pointer; text-decoration: underline; }
.live { display: none; }
)css";

inline constexpr std::string_view flame_script = R"js(
(function () {
  "use strict";
  var svg = document.documentElement;
  if (!svg.classList.contains("flame")) svg = document.querySelector("svg.flame");
  var left = +svg.getAttribute("data-left"), wide = +svg.getAttribute("data-wide");
  var glyph = +svg.getAttribute("data-glyph");
  var details = svg.querySelector("#details"), found = svg.querySelector("#found");
  var reset = svg.querySelector("#reset"), search = svg.querySelector("#search");
  var frames = Array.prototype.map.call(svg.querySelectorAll(".f"), function (g) {
    var rect = g.querySelector("rect"), told = g.querySelector("title").textContent.split("\n");
    return { g: g, rect: rect, text: g.querySelector("text"), name: told[0],
      about: told.slice(1).concat(told[0]).join("   "), x: +rect.getAttribute("x"), y: +rect.getAttribute("y"),
      w: +rect.getAttribute("width"), wNow: 0 };
  });
  var zoomed = null, sought = "";

  function place(f, x, w) {
    f.wNow = w;
    f.rect.setAttribute("x", x.toFixed(2));
    f.rect.setAttribute("width", w.toFixed(2));
    f.text.setAttribute("x", (x + 3).toFixed(2));
    var fits = Math.floor((w - 6) / glyph);
    f.text.textContent = fits < 3 ? "" : f.name.length <= fits ? f.name
      : f.name.slice(0, fits - 2) + "..";
  }
  function zoom(to) {
    zoomed = to;
    var from = to ? to.x : left, span = to ? to.w : wide, near = 0.001;
    frames.forEach(function (f) {
      var below = !!to && f.y > to.y && f.x <= to.x + near && f.x + f.w >= to.x + to.w - near;
      var inside = !to || below || f === to ||
        (f.y <= to.y && f.x >= to.x - near && f.x + f.w <= to.x + to.w + near);
      f.g.classList.toggle("below", below);
      f.g.style.display = inside ? "" : "none";
      if (below) place(f, left, wide);
      else if (inside) place(f, left + (f.x - from) / span * wide, f.w / span * wide);
    });
    reset.style.display = to ? "inline" : "none";
    remember();
  }
  function find(what) {
    sought = what || "";
    var many = 0, pattern = null;
    if (sought) {
      try { pattern = new RegExp(sought, "i"); }
      catch (bad) { found.textContent = "no regular expression: " + sought; return; }
    }
    frames.forEach(function (f) {
      var is = !!pattern && pattern.test(f.name);
      f.g.classList.toggle("found", is);
      if (is) many += 1;
    });
    found.textContent = pattern ? many + " of " + frames.length + " frames match" : "";
    search.textContent = pattern ? "clear search" : "search";
    remember();
  }
  function remember() {
    var parts = [];
    if (zoomed) parts.push("z=" + frames.indexOf(zoomed));
    if (sought) parts.push("s=" + encodeURIComponent(sought));
    try { history.replaceState(null, "", parts.length ? "#" + parts.join("&") : "#"); }
    catch (refused) { /* some viewers keep no history */ }
  }
  function ask() {
    if (sought) find("");
    else find(prompt("Search frames (a regular expression; function, source or ranks)") || "");
  }
  function frameOf(target) {
    var g = target.closest ? target.closest(".f") : null;
    return g ? frames.filter(function (f) { return f.g === g; })[0] : null;
  }
  svg.addEventListener("click", function (event) {
    var f = frameOf(event.target);
    if (f) zoom(f);
    else if (event.target === reset) zoom(null);
    else if (event.target === search) ask();
  });
  svg.addEventListener("mouseover", function (event) {
    var f = frameOf(event.target);
    details.textContent = f ? f.about : "";
  });
  window.addEventListener("keydown", function (event) {
    if (event.key === "Escape") zoom(null);
    else if ((event.ctrlKey || event.metaKey) && event.key === "f") { event.preventDefault(); ask(); }
  });
  Array.prototype.forEach.call(svg.querySelectorAll(".live"), function (e) {
    e.style.display = e === reset ? "none" : "inline";
  });
  location.hash.slice(1).split("&").forEach(function (part) {
    try {
      if (part.slice(0, 2) === "s=") find(decodeURIComponent(part.slice(2)));
      if (part.slice(0, 2) === "z=") zoom(frames[+part.slice(2)] || null);
    } catch (bad) { /* a link that was cut off */ }
  });
})();
)js";

} // namespace troupe::diag
