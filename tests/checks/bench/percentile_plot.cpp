#include "tests/checks/bench/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string/replace.hpp>
#include <cmath>
#include <utility>

namespace leasehold::bench {
namespace {

constexpr double kWidth = 820;
constexpr double kPanelHeight = 330;
constexpr double kLeft = 70, kRight = 120, kTop = 40, kBottom = 45;
constexpr double kNines = 4;  ///< The axis ends at 99.99 %.
constexpr double kSmallestUs = 1;
constexpr double kLargestUs = 100'000;
constexpr std::array kColours = {"#1b6ca8", "#d9a441", "#c8553d", "#2a9d5c", "#7b4fa3", "#5c5c5c"};

/// Number of nines of a share: 0.9 → 1, 0.99 → 2.
double nines(double share) {
  return std::min(-std::log10(1 - share), kNines);
}

double to_x(double share) {
  return kLeft + nines(share) / kNines * (kWidth - kLeft - kRight);
}

double to_y(double top, double us) {
  const double bounded = std::clamp(us, kSmallestUs, kLargestUs);
  const double up = std::log10(bounded / kSmallestUs) / std::log10(kLargestUs / kSmallestUs);
  return top + kPanelHeight - kBottom - up * (kPanelHeight - kTop - kBottom);
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     text);
}

std::string line(double x1, double y1, double x2, double y2) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", x1, y1,
                     x2, y2);
}

std::string escaped(std::string text) {
  boost::replace_all(text, "&", "&amp;");
  boost::replace_all(text, "<", "&lt;");
  boost::replace_all(text, ">", "&gt;");
  return text;
}

std::string grid(double top) {
  constexpr std::array<std::pair<double, const char*>, 6> kShares = {
      {{0, "0"}, {0.5, "50"}, {0.9, "90"}, {0.99, "99"}, {0.999, "99.9"}, {0.9999, "99.99 %"}}};
  constexpr std::array<std::pair<double, const char*>, 6> kGridTimes = {{{1, "1 µs"},
                                                                         {10, "10 µs"},
                                                                         {100, "100 µs"},
                                                                         {1'000, "1 ms"},
                                                                         {10'000, "10 ms"},
                                                                         {100'000, "100 ms"}}};
  std::string lines = "<g stroke=\"#ddd\">\n";
  std::string words;
  for (const auto& [share, name] : kShares) {
    const double x = to_x(share);
    lines += line(x, to_y(top, kLargestUs), x, to_y(top, kSmallestUs));
    words += text_at(x, top + kPanelHeight - kBottom + 18, "middle", name);
  }
  for (const auto& [time, name] : kGridTimes) {
    const double y = to_y(top, time);
    lines += line(kLeft, y, kWidth - kRight, y);
    words += text_at(kLeft - 8, y + 4, "end", name);
  }
  return lines + "</g>\n" + words;
}

/// Draws one point per value, at the share of values below it.
std::string curve_line(double top, const Curve& curve, const char* colour) {
  std::vector<double> sorted = curve.values_us;
  std::ranges::sort(sorted);
  std::string points;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(sorted.size());
    points += fmt::format("{:.1f},{:.1f} ", to_x(share), to_y(top, sorted[i]));
  }
  if (points.empty()) return {};
  return fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" points=\"{}\"/>\n",
                     colour, points);
}

std::string target_mark(double top, const Curve& curve, const char* colour) {
  if (curve.target_us <= 0) return {};
  const double x = to_x(0.99);
  const double y = to_y(top, curve.target_us);
  return fmt::format("<path d=\"M{:.1f} {:.1f} l-7 -5 v10 z\" fill=\"{}\"/>\n", x, y, colour);
}

std::string panel_svg(double top, const Panel& panel) {
  std::string svg = text_at(kLeft, top + 24, "start",
                            "<tspan font-weight=\"bold\">" + escaped(panel.title) + "</tspan>");
  svg += grid(top);
  for (std::size_t i = 0; i < std::min(panel.curves.size(), kColours.size()); ++i) {
    const Curve& curve = panel.curves[i];
    svg += curve_line(top, curve, kColours[i]) + target_mark(top, curve, kColours[i]);
    svg += fmt::format("<g fill=\"{}\">{}</g>\n", kColours[i],
                       text_at(kWidth - kRight + 10, top + kTop + 20 * static_cast<double>(i) + 10,
                               "start", escaped(curve.name)));
  }
  return svg;
}

}  // namespace

std::string percentile_svg(const std::vector<Panel>& panels) {
  const double height = kPanelHeight * static_cast<double>(panels.size());
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kWidth, height);
  double top = 0;
  for (const Panel& panel : panels) {
    svg += panel_svg(top, panel);
    top += kPanelHeight;
  }
  return svg + "</svg>\n";
}

}  // namespace leasehold::bench
