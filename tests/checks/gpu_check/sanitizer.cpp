// Runs NVIDIA's compute-sanitizer over a short run, if it is installed and starts.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <vector>

#include "tests/checks/gpu_check/stages.hpp"

namespace leasehold::gpu_check {
namespace {

namespace fs = std::filesystem;

constexpr int kFoundSomething = 99;  // not an exit code of our programs

std::optional<std::string> find_sanitizer() {
  const char* const path = std::getenv("PATH");
  std::istringstream places(std::string(path == nullptr ? "" : path) + ":/usr/local/cuda/bin");
  for (std::string place; std::getline(places, place, ':');) {
    std::string program = place + "/compute-sanitizer";
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return std::nullopt;
}

std::string end_of(const std::string& path) {
  const std::string text = text_of_file(path);
  return text.substr(text.size() > 300 ? text.size() - 300 : 0);
}

/// memcheck must not report failed driver calls: the search for a kernel tries image after image,
/// and callers check all other calls.
std::vector<std::string> sanitizer_command(const std::string& sanitizer, const std::string& tool) {
  std::vector<std::string> argv{sanitizer, "--tool", tool, "--error-exitcode",
                                std::to_string(kFoundSomething)};
  if (tool == "memcheck") argv.insert(argv.end(), {"--report-api-errors", "no"});
  return argv;
}

Result<void> watch(const Settings& settings, StageReport& report, const std::string& tool) {
  const std::optional<std::string> sanitizer = find_sanitizer();
  if (!sanitizer) {
    report.unknown(tool, "no compute-sanitizer in PATH or /usr/local/cuda/bin");
    return {};
  }
  const std::string internal = settings.out_dir + "/" + tool + "-run";
  std::error_code ignored;  // if it fails, the stage reports a directory that it cannot write
  fs::create_directories(internal, ignored);
  const std::string log = settings.out_dir + "/" + tool + "-output.log";
  std::vector<std::string> argv = sanitizer_command(*sanitizer, tool);
  argv.insert(argv.end(), {fs::read_symlink("/proc/self/exe"), "--stage", "short", "--model-dir",
                           settings.model_dir, "--out", internal, "--ordinal",
                           std::to_string(settings.ordinal)});
  const int status =
      TRY(run_to_end({.argv = std::move(argv), .log_path = log, .share_process_group = true}));
  if (status == 0 || status == kFoundSomething || status == kChecksFailed) {
    report.require(tool + " over a short run", status == 0,
                   status == 0 ? "nothing found" : "see " + log);
    return {};
  }
  report.unknown(tool + " over a short run",
                 fmt::format("it does not start here (exit code {}): {}", status, end_of(log)));
  return {};
}

}  // namespace

Result<void> run_memcheck(const Settings& settings, StageReport& report) {
  return watch(settings, report, "memcheck");
}

Result<void> run_racecheck(const Settings& settings, StageReport& report) {
  return watch(settings, report, "racecheck");
}

}  // namespace leasehold::gpu_check
