#include "diag/stacks/flame_graph.hpp"

#include "diag/stacks/escaped.hpp"
#include "diag/stacks/flame_script.hpp"
#include "diag/stacks/ordered_stacks.hpp"
#include "runtime/base/fnv1a.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>

namespace troupe::diag {

namespace {

constexpr double margin = 10, row_height = 16, header = 84, footer = 34;
/// Of the font, which is as wide for each character; names are cut by it.
constexpr double glyph = 7.25;
/// A narrower frame is no pixel of any screen, however far it is zoomed in one step.
constexpr double narrowest = 0.1;
/// Of fewer ranks than this share of all, a frame is drawn to catch the eye.
constexpr double few = 0.34;

/// Positions of one picture, in pixels.
struct layout {
  double width = 0, wide = 0, height = 0;
  std::uint64_t stacks = 0;     ///< over the whole width
  std::uint64_t drawn_from = 0; ///< frames of fewer stacks are not drawn
  std::size_t drawn = 0;

  double x_of(std::uint64_t begin) const {
    return margin + wide * static_cast<double>(begin) / static_cast<double>(stacks);
  }
  double y_of(std::uint32_t depth) const {
    return height - footer - row_height * (static_cast<double>(depth) + 1);
  }
};

/// Chooses how narrow a frame may be, so that no browser is asked for too much.
layout lay_out(const ordered_stacks& what, const flame_graph& how) {
  layout l;
  l.width = std::max(how.width, 400u);
  l.wide = l.width - 2 * margin;
  l.stacks = std::max<std::uint64_t>(what.stacks, 1);
  const auto smallest = narrowest / l.wide * static_cast<double>(l.stacks);
  l.drawn_from = static_cast<std::uint64_t>(smallest);
  if (what.rows.size() > limits::drawn_frames_max) {
    std::vector<std::uint64_t> sizes;
    sizes.reserve(what.rows.size());
    for (const auto& row : what.rows)
      sizes.push_back(row.stacks);
    const auto at = sizes.begin() + limits::drawn_frames_max;
    std::nth_element(sizes.begin(), at, sizes.end(), std::greater<>());
    l.drawn_from = std::max(l.drawn_from, *at + 1);
  }
  std::uint32_t depth = 0;
  for (const auto& row : what.rows)
    if (row.stacks >= l.drawn_from) {
      ++l.drawn;
      depth = std::max(depth, row.depth + 1);
    }
  l.height = header + row_height * depth + footer;
  return l;
}

std::string counted(std::size_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string lines_of(const line_set& lines) {
  std::string text;
  for (const auto line : lines.lines)
    if (line != 0)
      text += fmt::format("{}{}", text.empty() ? "; line " : ", ", line);
  return text + (lines.more ? ", ..." : "");
}

/// A label in the width of its frame, as the script cuts it, too.
std::string fitting(std::string_view label, double width) {
  const auto fits = static_cast<std::size_t>(std::max(0.0, (width - 6) / glyph));
  if (fits < 3)
    return {};
  std::string out;
  std::size_t have = 0;
  for (auto rest = label; !rest.empty(); ++have) {
    if (have == fits - 2 && rest.size() > 2)
      return out + "..";
    append_utf8(out, next_character(rest));
  }
  return out;
}

struct picture {
  const stack_trie& trie;
  const rank_set& seen;
  const rank_set& world;
  std::size_t ranks; ///< in `seen`
};

void append_frame(std::string& out, const layout& l, const picture& p,
                  const ordered_stacks::row& row) {
  const auto& n = p.trie.nodes()[row.node];
  const auto name = frame_name(p.trie.frame_at(n.frame));
  const auto label = name + rank_label(n.ranks, p.world);
  const auto ranks = n.ranks.size();
  const auto x = l.x_of(row.begin), y = l.y_of(row.depth);
  const auto width = l.x_of(row.begin + row.stacks) - x;
  const bool rare = static_cast<double>(ranks) < few * static_cast<double>(p.ranks);
  auto to = std::back_inserter(out);
  fmt::format_to(to, "<g class=\"f{}\"><title>{}\n{} of {}, {}, {}{}</title>", rare ? " few" : "",
                 for_xml(label), ranks, counted(p.ranks, "rank"), counted(n.threads, "thread"),
                 counted(row.stacks, "different stack"), lines_of(n.lines));
  fmt::format_to(to, R"(<rect x="{:.2f}" y="{:.0f}" width="{:.2f}" height="15" fill="{}"/>)", x, y,
                 width, frame_colour(name, ranks, p.ranks));
  fmt::format_to(to, "<text x=\"{:.2f}\" y=\"{:.0f}\">{}</text></g>\n", x + 3, y + 12,
                 for_xml(fitting(label, width)));
}

std::string subtitle(const ordered_stacks& what, const merged_stacks& stacks) {
  auto text = fmt::format(
      "{} of {} ({}); {} of {}", stacks.ranks.size(), counted(stacks.world_size, "rank"),
      stacks.ranks.text(limits::label_runs_max),
      counted(what.stacks - what.states, "different stack"), counted(what.threads, "thread"));
  if (const auto absent = stacks.absent(); !absent.empty())
    text += "; nothing of " + absent.text(limits::label_runs_max);
  return text;
}

std::string reading_help(const ordered_stacks& what, const layout& l, const stack_trie& trie) {
  std::string text = "func@source@ranks here|ranks not here. Width: how many different stacks. The "
                     "redder, the fewer ranks; the rarest stand left.";
  const auto& left = trie.was_left_out();
  if (const auto narrow = what.rows.size() - l.drawn; narrow > 0)
    text += fmt::format(" {} frames are too narrow to be drawn.", narrow);
  if (left.deep > 0)
    text += fmt::format(" {} deep stacks lack their middle.", left.deep);
  if (left.full > 0)
    text += fmt::format(" {} stacks are cut: too many different ones.", left.full);
  if (left.names > 0)
    text += " Some names are left out.";
  return text;
}

void append_head(std::string& out, const layout& l, const flame_graph& how,
                 const std::string& about, const std::string& help) {
  auto to = std::back_inserter(out);
  fmt::format_to(to,
                 "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"
                 "<svg class=\"flame\" version=\"1.1\" xmlns=\"http://www.w3.org/2000/svg\" "
                 "width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
                 "data-left=\"{2}\" data-wide=\"{3}\" data-glyph=\"{4}\">\n<style>{5}</style>\n"
                 "<rect width=\"100%\" height=\"100%\" fill=\"#fbfbf8\"/>\n",
                 l.width, l.height, margin, l.wide, glyph, flame_style);
  fmt::format_to(to,
                 "<text x=\"{0}\" y=\"26\" style=\"font-size:17px;font-weight:bold\">{1}</text>\n"
                 "<text x=\"{0}\" y=\"46\">{2}</text>\n"
                 "<text x=\"{0}\" y=\"64\" style=\"fill:#57606a\">{3}</text>\n",
                 margin, for_xml(how.title), for_xml(about), for_xml(help));
  const auto right = l.width - margin;
  fmt::format_to(to,
                 "<text id=\"search\" class=\"button live\" x=\"{0}\" y=\"26\" "
                 "text-anchor=\"end\">search</text>\n"
                 "<text id=\"reset\" class=\"button live\" x=\"{1}\" y=\"26\" "
                 "text-anchor=\"end\">reset zoom</text>\n"
                 "<text id=\"found\" x=\"{2}\" y=\"26\" text-anchor=\"end\"></text>\n"
                 "<text id=\"details\" x=\"{3}\" y=\"{4:.0f}\"></text>\n",
                 right, right - 120, right - 220, margin, l.height - 12);
}

} // namespace

std::string frame_colour(std::string_view name, std::size_t ranks, std::size_t of) {
  fnv1a hash;
  hash.take(name);
  const auto shade = static_cast<unsigned>(hash.value() >> 8 & 7);
  if (ranks >= of) // Python's blue and yellow, pale
    return (hash.value() & 1) == 0 ? fmt::format("hsl(207,55%,{}%)", 76 + shade)
                                   : fmt::format("hsl(48,85%,{}%)", 76 + shade);
  const auto share = static_cast<double>(ranks) / static_cast<double>(of);
  return fmt::format("hsl({:.0f},85%,{:.0f}%)", share * 36, 46 + share * 26 + shade * 0.5);
}

std::string svg_of(const stack_trie& trie, const merged_stacks& stacks, const flame_graph& how) {
  const auto what = ordered(trie);
  const auto l = lay_out(what, how);
  const auto world = rank_set::below(stacks.world_size);
  const picture p{trie, stacks.ranks, world, stacks.ranks.size()};
  std::string out;
  append_head(out, l, how, subtitle(what, stacks), reading_help(what, l, trie));
  for (const auto& row : what.rows)
    if (row.stacks >= l.drawn_from)
      append_frame(out, l, p, row);
  out += "<script type=\"text/javascript\"><![CDATA[";
  out += flame_script;
  out += "]]></script>\n</svg>\n";
  return out;
}

} // namespace troupe::diag
