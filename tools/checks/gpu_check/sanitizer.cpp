// Runs NVIDIA's compute-sanitizer over a short run, if it is installed and starts.
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
#include <vector>

#include "common/child_process.hpp"
#include "tools/checks/gpu_check/orchestrate.hpp"
#include "tools/checks/gpu_check/stages.hpp"

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
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.substr(text.size() > 300 ? text.size() - 300 : 0);
}

/// memcheck must not report failed driver calls: the search for a kernel tries image after image,
/// and every other call is checked by its caller.
std::vector<std::string> options_of(const std::string& tool) {
  std::vector<std::string> options{"--tool", tool, "--error-exitcode",
                                   std::to_string(kFoundSomething)};
  if (tool == "memcheck") options.insert(options.end(), {"--report-api-errors", "no"});
  return options;
}

Result<void> watch(const Settings& settings, StageReport& report, const std::string& tool) {
  const std::optional<std::string> sanitizer = find_sanitizer();
  if (!sanitizer) {
    report.unknown(tool, "no compute-sanitizer in PATH or /usr/local/cuda/bin");
    return {};
  }
  const std::string internal = settings.out_dir + "/" + tool + "-run";
  std::error_code ignored;  // the stage reports a directory that it cannot write
  fs::create_directories(internal, ignored);
  const std::string log = settings.out_dir + "/" + tool + "-output.log";
  std::vector<std::string> argv{*sanitizer};
  for (const std::string& option : options_of(tool)) argv.push_back(option);
  for (const std::string& word :
       {fs::read_symlink("/proc/self/exe").string(), std::string("--stage"), std::string("short"),
        std::string("--model-dir"), settings.model_dir, std::string("--out"), internal,
        std::string("--ordinal"), std::to_string(settings.ordinal)})
    argv.push_back(word);
  Child child =
      TRY(Child::start({.argv = std::move(argv), .log_path = log, .share_process_group = true}));
  pollfd gone{child.pidfd().get(), POLLIN, 0};
  ::poll(&gone, 1, -1);  // the orchestrator enforces the time limit
  const int status = child.status().value_or(-1);
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
