#include "tests/checks/gpu_check/stages.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <set>
#include <sstream>

#include "common/cli/print_error.hpp"
#include "common/errc.hpp"
#include "tests/checks/gpu_check/answers.hpp"

namespace leasehold::gpu_check {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::string_view kProgram = "leasehold-gpu-check";
constexpr int kPollInterval_ms = 200;
constexpr std::size_t kLogEnd = 800;

struct StageRow {
  const char* name;
  Result<void> (*run)(const Settings& settings, StageReport& report);
  double share_of_time;  ///< In proportion to the others. Unused time goes to the next stage.
  bool needs_peer = false;
};

/// The stages in the order of execution.
constexpr std::array<StageRow, 15> kStages{{{"machine", check_machine, 0.02},
                                            {"bits", check_bits, 0.06},
                                            {"kills", check_kills, 0.06},
                                            {"clocks", check_clocks, 0.18},
                                            {"bandwidth", check_bandwidth, 0.06},
                                            {"speed", check_speed, 0.27},
                                            {"launches", check_launches, 0.06},
                                            {"peers", check_peers, 0.09},
                                            {"llama", check_llama, 0.28, true},
                                            {"probe", probe, 0.04},
                                            {"correctness", check_correctness, 0.05},
                                            {"gate", check_gate, 0.04},
                                            {"swap", check_swap, 0.02},
                                            {"memcheck", run_memcheck, 0.02},
                                            {"racecheck", run_racecheck, 0.03}}};

/// The runs for sanitizers and profilers. They are not stages of a report.
constexpr std::array<StageRow, 2> kPrograms{{{"short", run_short, 0}, {"profile", run_profile, 0}}};

std::string part_path(const Settings& settings, const std::string& stage) {
  return settings.out_dir + "/" + stage + ".json";
}

std::vector<std::string> arguments_of(const Settings& settings, const std::string& stage) {
  std::vector<std::string> arguments{std::filesystem::read_symlink("/proc/self/exe"),
                                     "--stage",
                                     stage,
                                     "--bin-dir",
                                     settings.bin_dir,
                                     "--model-dir",
                                     settings.model_dir,
                                     "--out",
                                     settings.out_dir,
                                     "--ordinal",
                                     std::to_string(settings.ordinal)};
  if (settings.tiny) arguments.emplace_back("--tiny");
  if (!settings.peer_dir.empty()) arguments.insert(arguments.end(), {"--peer", settings.peer_dir});
  return arguments;
}

/// How a stage ended.
struct Ending {
  std::string state = "ended";  ///< "ended", "failed", "cut off"
  std::string why;
  std::optional<int> exit_code;
  double seconds = 0;
};

ReportEntry cut_off_line(const Ending& ending) {
  return {.what = "the rest of the stage", .measured = ending.why, .verdict = Verdict::Unknown};
}

class StageRun {
 public:
  StageRun(const Settings& settings, std::string stage, std::ostream& out)
      : settings_(settings), stage_(std::move(stage)), out_(out) {}

  Ending run(Seconds budget) {
    out_ << "\n" << stage_ << "\n" << std::flush;
    std::remove(part_path(settings_, stage_).c_str());
    const auto begun = SteadyClock::now();
    Ending ending = watch(begun, budget);
    print_new_entries();
    ending.seconds = Seconds(SteadyClock::now() - begun).count();
    if (ending.state == "failed") out_ << "  failed: " << ending.why << "\n";
    if (ending.state == "cut off") out_ << text_of(cut_off_line(ending)) << "\n";
    return ending;
  }

  /// The stage's own report, possibly incomplete.
  Json part() const {
    Json part = Json::parse(text_of_file(part_path(settings_, stage_)), nullptr, false);
    return part.is_object() ? part : Json{{"stage", stage_}, {"lines", Json::array()}};
  }

 private:
  Ending watch(SteadyClock::time_point begun, Seconds budget) {
    const std::string log = settings_.out_dir + "/" + stage_ + ".log";
    std::remove(log.c_str());  // children append to their logs
    auto child = Child::start({.argv = arguments_of(settings_, stage_), .log_path = log});
    if (!child) return {.state = "failed", .why = child.error().detail, .exit_code = {}};
    std::optional<int> status;
    while (!(status = child->status())) {
      if (SteadyClock::now() - begun > budget) {
        return {.state = "cut off",
                .why = fmt::format("not done after its {:.0f} s; give more with --minutes, or run "
                                   "it alone with --only {}",
                                   budget.count(), stage_),
                .exit_code = {}};
      }
      pollfd gone{child->pidfd().get(), POLLIN, 0};
      ::poll(&gone, 1, kPollInterval_ms);
      print_new_entries();
    }
    if (*status == 0) return {.exit_code = 0};
    const std::string text = text_of_file(log);
    return {.state = "failed",
            .why = fmt::format("exit code {}; its log ({}) ends: {}", *status, log,
                               text.substr(text.size() > kLogEnd ? text.size() - kLogEnd : 0)),
            .exit_code = status};
  }

  void print_new_entries() {
    const Json written = part();
    const Json lines = written.value("lines", Json::array());
    for (; printed_ < lines.size(); ++printed_) {
      if (const auto line = entry_from(lines[printed_])) out_ << text_of(*line) << "\n";
    }
    out_ << std::flush;
  }

  const Settings& settings_;
  std::string stage_;
  std::ostream& out_;
  std::size_t printed_ = 0;
};

std::set<std::string> split(const std::string& names) {
  std::set<std::string> all;
  std::istringstream text(names);
  for (std::string one; std::getline(text, one, ',');) all.insert(one);
  return all;
}

/// The stages that --only names; without it, all that have what they need.
std::vector<StageRow> stages_to_run(const Settings& settings) {
  const std::set<std::string> wanted = split(settings.only);
  std::vector<StageRow> rows;
  for (const StageRow& row : kStages) {
    const bool can_run = !row.needs_peer || !settings.peer_dir.empty();
    if (wanted.empty() ? can_run : wanted.contains(row.name)) rows.push_back(row);
  }
  return rows;
}

double total_share(const std::vector<StageRow>& rows) {
  double share = 0;
  for (const StageRow& row : rows) share += row.share_of_time;
  return share;
}

bool is_no_card(std::optional<Errc> code) {
  return code == Errc::NoDevice || code == Errc::DeviceUnsupported;
}

bool has_failed_line(const Json& part) {
  return std::ranges::any_of(part.value("lines", Json::array()), [](const Json& line) {
    const auto entry = entry_from(line);
    return entry && entry->verdict == Verdict::Fail;
  });
}

/// Null if there is no stage of that name.
const StageRow* find_stage(const std::string& name) {
  const auto has_name = [&](const StageRow& row) { return row.name == name; };
  if (const auto found = std::ranges::find_if(kStages, has_name); found != kStages.end())
    return &*found;
  const auto program = std::ranges::find_if(kPrograms, has_name);
  return program == kPrograms.end() ? nullptr : &*program;
}

/// The error if the stage found no usable GPU, which prevents every other stage.
std::optional<Errc> fatal_error_of(const Ending& ending) {
  if (!ending.exit_code) return std::nullopt;
  const std::optional<Errc> code = errc_from_exit_code(*ending.exit_code);
  return is_no_card(code) ? code : std::nullopt;
}

}  // namespace

std::string stage_names() {
  std::string names;
  for (const StageRow& row : kStages) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

std::string check_stages(const std::string& names) {
  for (const std::string& one : split(names)) {
    const auto has_name = [&](const StageRow& row) { return row.name == one; };
    if (std::ranges::none_of(kStages, has_name))
      return fmt::format("there is no stage {}; --help names them", one);
  }
  return {};
}

Result<int> orchestrate(const Settings& settings, std::ostream& out) {
  const std::vector<StageRow> rows = stages_to_run(settings);
  const Seconds per_share = Seconds(settings.minutes * 60) / total_share(rows);
  const std::string path = settings.out_dir + "/report.json";
  Json report{{"stages", Json::array()},
              {"answers", Json::array()},
              {"all_right", true},
              {"minutes", settings.minutes}};
  Seconds spare{0};
  std::optional<Errc> nothing_runs;
  for (const StageRow& row : rows) {
    StageRun stage(settings, row.name, out);
    const Seconds budget = spare + per_share * row.share_of_time;
    const Ending ending = stage.run(budget);
    spare = budget - Seconds(ending.seconds);
    Json part = stage.part();
    part["state"] = ending.state;
    part["why"] = ending.why;
    part["seconds"] = ending.seconds;
    // The checks that ran before the time was over are judged; the others are unknown.
    const bool is_right =
        ending.state == "cut off" ? !has_failed_line(part) : ending.state == "ended";
    if (ending.state == "cut off") part["lines"].push_back(to_json(cut_off_line(ending)));
    report["stages"].push_back(std::move(part));
    if (!is_right) report["all_right"] = false;
    report["answers"] = answers_from(report["stages"]);
    TRY(write_report(path, report));
    nothing_runs = fatal_error_of(ending);
    if (nothing_runs) break;
  }
  out << "\nreport: " << path << "\n";
  if (nothing_runs) {
    out << fmt::format(
        "\nNothing can run here ({}); next: see `nvidia-smi`, or use another machine.\n",
        name(*nothing_runs));
    return exit_code(*nothing_runs);
  }
  out << text_of_answers(report["answers"]);
  const bool all_right = report["all_right"];
  out << (all_right ? "\nAll checks that ran passed.\n" : "\nSome checks FAILED.\n");
  return all_right ? 0 : kChecksFailed;
}

int run_stage(const Settings& settings, const std::string& stage) {
  const StageRow* const row = find_stage(stage);
  if (row == nullptr)
    return print_error(kProgram, {Errc::BadRequest, fmt::format("there is no stage {}", stage)});
  StageReport report(row->name, part_path(settings, row->name));
  const Result<void> done = row->run(settings, report);
  if (!done) {
    if (is_no_card(done.error().code)) {
      report.unknown("the stage", done.error().detail);
    } else {
      report.failed("the stage ended early", done.error());
    }
  }
  const Result<void> written = report.finish();
  if (!written) print_error(kProgram, written.error());
  if (!done) return print_error(fmt::format("{}: {}", kProgram, row->name), done.error());
  return report.all_right() && written ? 0 : kChecksFailed;
}

Result<int> run_to_end(const ChildConfig& config) {
  Child child = TRY(Child::start(config));
  pollfd gone{child.pidfd().get(), POLLIN, 0};
  ::poll(&gone, 1, -1);
  return child.status().value_or(-1);
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool processes_share_memory(const Settings& settings) {
  const Json probed = Json::parse(text_of_file(part_path(settings, "kills")), nullptr, false);
  if (!probed.is_object() || !probed.contains("numbers")) return true;
  return probed["numbers"].value("processes_share_memory", true);
}

}  // namespace leasehold::gpu_check
