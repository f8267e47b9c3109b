// The gate stage: runs the demo on the GPU, or threads where processes cannot share GPU memory.
#include <fmt/format.h>
#include <poll.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/child_process.hpp"
#include "tools/checks/gpu_check/stages.hpp"

namespace leasehold::gpu_check {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModel = "leasehold-stories-q8_0.gguf";

void add_checks(StageReport& report, const Json& judged) {
  for (const Json& check : judged.value("checks", Json::array())) {
    report.require("demo: " + check.value("promise", "?"), check.value("ok", false),
                   check.value("seen", ""));
  }
  report.numbers()["demo"] = judged;
}

Result<void> run_demo(const Settings& settings, StageReport& report) {
  const std::string demo_dir = settings.out_dir + "/gate-demo";
  const std::string log = demo_dir + ".log";
  Child child =
      TRY(Child::start({.argv = {settings.bin_dir + "/leasehold-demo", "--bin-dir",
                                 settings.bin_dir, "--model", settings.model_dir + "/" + kModel,
                                 "--device", fmt::format("cuda:{}", settings.ordinal), "--plain",
                                 "--max-tokens", "120", "--out", demo_dir},
                        .log_path = log}));
  pollfd gone{child.pidfd().get(), POLLIN, 0};
  ::poll(&gone, 1, -1);  // the orchestrator enforces the time limit
  const int status = child.status().value_or(-1);
  std::ifstream file(demo_dir + "/demo.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Json judged = Json::parse(text, nullptr, false);
  if (judged.is_object()) add_checks(report, judged);
  report.require("demo: broker, worker and four tenants on the card", status == 0,
                 fmt::format("exit code {}, see {}", status, log));
  return {};
}

}  // namespace

Result<void> check_gate(const Settings& settings, StageReport& report) {
  TRY(check_gate_as_threads(settings, report));
  if (!processes_share_memory(settings)) {
    report.unknown("demo: broker, worker and four tenants on the card",
                   "processes cannot share GPU memory here; see the lines above");
    return {};
  }
  const bool has_programs = fs::exists(settings.bin_dir + "/leasehold-demo") &&
                            fs::exists(settings.model_dir + "/" + kModel);
  if (settings.tiny || !has_programs) {
    report.unknown("demo: broker, worker and four tenants on the card",
                   settings.tiny ? "left out with --tiny" : "not in this bundle");
    return {};
  }
  return run_demo(settings, report);
}

}  // namespace leasehold::gpu_check
