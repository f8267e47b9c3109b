// The gate stage: runs the demo on the GPU, or uses threads where processes cannot share GPU
// memory.
#include <fmt/format.h>

#include <filesystem>

#include "tools/checks/gpu_check/stages.hpp"

namespace leasehold::gpu_check {
namespace {

namespace fs = std::filesystem;

/// Options for the length of the demo's streams, which have at least 12 tokens. A driver that
/// computes on the CPU needs seconds for each token.
std::vector<std::string> length_of_demo(const Settings& settings) {
  if (!settings.tiny) return {"--max-tokens", "120"};
  return {"--max-tokens", "60", "--slow-motion-us", "0"};
}

std::string model_of_demo(const Settings& settings) {
  return settings.model_dir + "/" + (settings.tiny ? kSmallestModel : kDemoModel) + ".gguf";
}

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
  std::vector<std::string> argv{settings.bin_dir + "/leasehold-demo",
                                "--bin-dir",
                                settings.bin_dir,
                                "--model",
                                model_of_demo(settings),
                                "--device",
                                fmt::format("cuda:{}", settings.ordinal),
                                "--plain",
                                "--out",
                                demo_dir};
  for (std::string& one : length_of_demo(settings)) argv.push_back(std::move(one));
  const int status = TRY(run_to_end({.argv = std::move(argv), .log_path = log}));
  const Json judged = Json::parse(text_of_file(demo_dir + "/demo.json"), nullptr, false);
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
  const bool has_programs =
      fs::exists(settings.bin_dir + "/leasehold-demo") && fs::exists(model_of_demo(settings));
  if (!has_programs) {
    report.unknown("demo: broker, worker and four tenants on the card", "not in this bundle");
    return {};
  }
  return run_demo(settings, report);
}

}  // namespace leasehold::gpu_check
