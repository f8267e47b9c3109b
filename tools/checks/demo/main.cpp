/// leasehold-demo: four tenants, one revocation in the middle of a token, one death, and the proof
/// that nobody else noticed.
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "common/command_line.hpp"
#include "common/device_name.hpp"
#include "common/version.hpp"
#include "tools/checks/demo/report.hpp"
#include "tools/checks/demo/run_scenario.hpp"
#include "tools/cli/report_file.hpp"

namespace {

using namespace leasehold;
using namespace leasehold::demo;

constexpr int kChecksFailed = 1;
/// Up to here a model is so quick that nobody could follow.
constexpr std::uintmax_t kSmallModelBytes = 32u << 20;
constexpr std::uint32_t kSlowMotion_us = 100;
constexpr int kInterrupted = 130;  // As a shell calls the end by SIGINT.

std::unique_ptr<Display> make_display(bool plain) {
  winsize size{};
  const bool terminal = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  if (plain || !terminal || size.ws_col < 60) return std::make_unique<PlainDisplay>(std::cout);
  return std::make_unique<ColumnDisplay>(std::cout, size.ws_col);
}

std::string json_text(const wire::Json& json) {
  return json.dump(2, ' ', false, wire::Json::error_handler_t::replace) + "\n";
}

/// True when every promise was kept.
Result<bool> run_demo(const Settings& settings, const Poller& poller) {
  std::optional<cli::ReportFile> report;
  if (settings.report_path) report = TRY(cli::ReportFile::open(*settings.report_path));
  std::cout << "Loading " << settings.model_path << std::endl;
  const auto system = TRY(System::start(settings, poller));
  const auto display = make_display(settings.plain);
  auto seen = run_scenario(*system, *display, std::cout);
  const auto checks = seen ? judge(*seen) : std::vector<Check>{};
  if (!all_ok(checks) && !poller.interrupted()) {
    system->keep_logs();
    std::cerr << "Logs: " << system->directory().string() << "/*.log\n";
  }
  if (!seen) return std::unexpected(std::move(seen).error());
  std::cout << report_text(*seen, checks, settings);
  std::cout << (all_ok(checks) ? "\nAll promises kept.\n" : "\nNOT all promises were kept.\n");
  if (report) TRY(report->write(json_text(report_json(*seen, checks, settings))));
  return all_ok(checks);
}

std::uint32_t slow_motion_for(const std::string& model_path) {
  std::error_code ignored;  // the worker says what is wrong with the file
  return std::filesystem::file_size(model_path, ignored) <= kSmallModelBytes ? kSlowMotion_us : 0;
}

void describe(CLI::App& app, Settings& settings, std::optional<std::uint32_t>& slow_motion_us) {
  app.set_version_flag("--version", "leasehold-demo " + std::string(version()));
  app.add_option("--bin-dir", settings.bin_dir, "Where the programs are")->required();
  app.add_option("--model", settings.model_path, "A GGUF model")->required();
  app.add_option("--device", settings.device,
                 "Whose memory is lent and computed in: cpu, cuda:N; default: what there is")
      ->check(check_device);
  app.add_option("--report", settings.report_path, "Write the judgement there, as JSON");
  app.add_flag("--plain", settings.plain, "Lines instead of columns");
  app.add_option("--max-tokens", settings.max_tokens, "How long each stream is")
      ->check(CLI::Range(120, 1 << 20));
  app.add_option(
         "--slow-motion-us", slow_motion_us,
         "Pause after each unit of work, so that people can watch; default: 100 for a small "
         "model, 0 for others")
      ->check(CLI::Range(0, 1'000'000));
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app{"Shows leases taken back in the middle of a token, and checks every claim.",
               "leasehold-demo"};
  std::optional<std::uint32_t> slow_motion_us;
  describe(app, settings, slow_motion_us);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  settings.slow_motion_us = slow_motion_us.value_or(slow_motion_for(settings.model_path));
  const auto poller = Poller::create();
  if (!poller) return print_error(app.get_name(), poller.error());
  const auto all_passed = run_demo(settings, *poller);
  if (poller->interrupted()) {
    std::cerr << "leasehold-demo: interrupted; everything it started has ended\n";
    return kInterrupted;
  }
  if (!all_passed) return print_error(app.get_name(), all_passed.error());
  return finish_program(app.get_name(), *all_passed ? kExitOk : kChecksFailed);
}
