// NVIDIA's compute-sanitizer over a short run, where it is there and starts.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "common/child_process.hpp"
#include "tools/gpu_check_program/orchestrate.hpp"
#include "tools/gpu_check_program/stages.hpp"

namespace leasehold::gpu_check {
namespace {

namespace fs = std::filesystem;

constexpr int kFoundSomething = 99;  // no program of ours ends with it

std::optional<std::string> find_sanitizer() {
  const char* const path = std::getenv("PATH");
  std::istringstream places(std::string(path == nullptr ? "" : path) + ":/usr/local/cuda/bin");
  for (std::string place; std::getline(places, place, ':');) {
    const std::string program = place + "/compute-sanitizer";
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return std::nullopt;
}

std::string end_of(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.substr(text.size() > 300 ? text.size() - 300 : 0);
}

Result<void> watch(const Settings& settings, StageReport& report, const std::string& tool) {
  const std::optional<std::string> sanitizer = find_sanitizer();
  if (!sanitizer) {
    report.unknown(tool, "no compute-sanitizer in PATH or /usr/local/cuda/bin");
    return {};
  }
  const std::string inner = settings.out_dir + "/" + tool + "-run";
  std::error_code ignored;  // the stage itself says when it cannot write there
  fs::create_directories(inner, ignored);
  const std::string log = settings.out_dir + "/" + tool + "-output.log";
  Child child = TRY(Child::start(
      {.argv = {*sanitizer, "--tool", tool, "--error-exitcode", std::to_string(kFoundSomething),
                fs::read_symlink("/proc/self/exe"), "--stage", "short", "--model-dir",
                settings.model_dir, "--out", inner, "--ordinal", std::to_string(settings.ordinal)},
       .log_path = log}));
  pollfd gone{child.pidfd().get(), POLLIN, 0};
  ::poll(&gone, 1, -1);  // whoever started this stage ends it in time
  const int status = child.status().value_or(-1);
  if (status == 0 || status == kFoundSomething || status == kNotAllRight) {
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
