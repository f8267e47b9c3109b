#include "tests/checks/gpu_check/stage_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/machine/replace_file.hpp"

namespace leasehold::gpu_check {
namespace {

constexpr std::array<std::pair<Verdict, std::string_view>, 6> kVerdicts{
    {{Verdict::Pass, "right"},
     {Verdict::Fail, "WRONG"},
     {Verdict::Reached, "reached"},
     {Verdict::Missed, "missed"},
     {Verdict::Measured, "measured"},
     {Verdict::Unknown, "unknown"}}};

}  // namespace

std::string_view name(Verdict verdict) {
  return std::ranges::find(kVerdicts, verdict, &decltype(kVerdicts)::value_type::first)->second;
}

ReportEntry judged(std::string what, std::string measured, const std::optional<Target>& target) {
  ReportEntry row{.what = std::move(what), .measured = std::move(measured)};
  if (!target) return row;
  const bench::Limit& limit = target->limit;
  row.target =
      fmt::format("{}{} {:.0f} {}", target->statistic,
                  limit.max ? "<=" : ">=", limit.max ? *limit.max : *limit.min, target->unit);
  row.verdict = bench::is_within(limit, target->value) ? Verdict::Reached : Verdict::Missed;
  return row;
}

std::string text_of(const ReportEntry& line) {
  std::string text = fmt::format("  {:<9}{:<50} {}", name(line.verdict), line.what, line.measured);
  if (!line.target.empty()) text += fmt::format("   (target: {})", line.target);
  if (line.as_threads) text += "   [as threads of one process]";
  return text;
}

Json to_json(const ReportEntry& line) {
  return {{"what", line.what},
          {"measured", line.measured},
          {"target", line.target},
          {"verdict", name(line.verdict)},
          {"as_threads_of_one_process", line.as_threads}};
}

std::optional<ReportEntry> entry_from(const Json& json) {
  try {
    const auto verdict = std::ranges::find(kVerdicts, json.at("verdict").get<std::string>(),
                                           &decltype(kVerdicts)::value_type::second);
    if (verdict == kVerdicts.end()) return std::nullopt;
    return ReportEntry{.what = json.at("what"),
                       .measured = json.at("measured"),
                       .target = json.at("target"),
                       .verdict = verdict->first,
                       .as_threads = json.at("as_threads_of_one_process")};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

void StageReport::add(ReportEntry line) {
  lines_.push_back(std::move(line));
  (void)write(false);  // finish() returns the error
}

void StageReport::require(std::string what, bool holds, std::string measured) {
  if (measured.empty()) measured = holds ? "yes" : "no";
  add({.what = std::move(what),
       .measured = std::move(measured),
       .verdict = holds ? Verdict::Pass : Verdict::Fail});
}

void StageReport::measured(std::string what, std::string value) {
  add({.what = std::move(what), .measured = std::move(value)});
}

void StageReport::unknown(std::string what, std::string why) {
  add({.what = std::move(what), .measured = std::move(why), .verdict = Verdict::Unknown});
}

void StageReport::failed(std::string what, const Error& error) {
  add({.what = std::move(what),
       .measured = fmt::format("{} ({})", error.detail, leasehold::name(error.code)),
       .verdict = Verdict::Fail});
}

bool StageReport::all_right() const {
  return std::ranges::none_of(
      lines_, [](const ReportEntry& line) { return line.verdict == Verdict::Fail; });
}

Result<void> StageReport::finish() {
  return write(true);
}

Result<void> StageReport::write(bool finished) const {
  Json lines = Json::array();
  for (const ReportEntry& line : lines_) lines.push_back(to_json(line));
  const Json report{
      {"stage", stage_}, {"finished", finished}, {"lines", lines}, {"numbers", numbers_}};
  return write_report(path_, report);
}

Result<void> write_report(const std::string& path, const Json& report) {
  const std::string text = report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  return replace_file(path, text, {.mode = 0644, .survives_power_cut = false});
}

}  // namespace leasehold::gpu_check
