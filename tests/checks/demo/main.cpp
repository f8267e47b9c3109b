/// leasehold-demo: four tenants, one lease revoked in the middle of a token, one tenant killed, and
/// a check that the others are not affected; then an adapter is revoked and the worker is killed,
/// and all texts continue.
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "common/cli/command_line.hpp"
#include "common/cli/version.hpp"
#include "common/machine/device_name.hpp"
#include "tests/checks/demo/run_scenario.hpp"
#include "tests/checks/report/report_directory.hpp"
#include "tests/checks/runner/program.hpp"

namespace {

using namespace leasehold;
using namespace leasehold::demo;

/// Models up to this size run too fast for people to follow.
constexpr std::uintmax_t kSmallModelBytes = 32u << 20;
constexpr std::uint32_t kSlowMotion_us = 100;

std::unique_ptr<Display> make_display(bool plain) {
  winsize size{};
  const bool terminal = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  if (plain || !terminal || size.ws_col < 60) return std::make_unique<PlainDisplay>(std::cout);
  return std::make_unique<ColumnDisplay>(std::cout, size.ws_col);
}

std::string json_text(const wire::Json& json) {
  return json.dump(2, ' ', false, wire::Json::error_handler_t::replace) + "\n";
}

Result<int> run_demo(const Settings& settings, const runner::Poller& poller) {
  const auto reports = TRY(ReportDirectory::open(settings.out_dir, "demo", {"json", "txt"}));
  std::cout << "Loading " << settings.model_path << std::endl;
  return runner::run_in_directory(
      "demo", "Logs", poller, [&](const std::filesystem::path& directory) -> Result<int> {
        const auto display = make_display(settings.plain);
        const Observation seen =
            TRY(run_scenario(settings, poller, directory, *display, std::cout));
        const auto checks = judge(seen);
        const bool all_passed = runner::all_ok(checks);
        const std::string text =
            report_text(seen, checks, settings) + std::string(runner::verdict(all_passed));
        std::cout << text;
        TRY(reports.write("json", json_text(report_json(seen, checks, settings))));
        TRY(reports.write("txt", text));
        return all_passed ? kExitOk : runner::kChecksFailed;
      });
}

std::uint32_t slow_motion_for(const std::string& model_path) {
  std::error_code ignored;  // the worker reports the error
  return std::filesystem::file_size(model_path, ignored) <= kSmallModelBytes ? kSlowMotion_us : 0;
}

void describe(CLI::App& app, Settings& settings, std::optional<std::uint32_t>& slow_motion_us) {
  app.set_version_flag("--version", "leasehold-demo " + std::string(version()));
  app.add_option("--bin-dir", settings.bin_dir, "Directory of the programs")->required();
  app.add_option("--model", settings.model_path, "GGUF model")->required();
  app.add_option("--device", settings.device,
                 "Device that holds and computes: cpu, cuda:N; default: the broker's choice")
      ->check(check_device);
  app.add_option("--adapters", settings.adapters_dir,
                 "Directory of leasehold-stories-sailor.gguf, which is revoked, and of "
                 "leasehold-stories-lines.gguf; default: use no adapters")
      ->check(CLI::ExistingDirectory);
  app.add_option("--out", settings.out_dir, "Directory for demo.json and demo.txt");
  app.add_flag("--chat", settings.chat,
               "Ask questions through the model's chat template, and check that the answers read "
               "like answers");
  app.add_flag("--plain", settings.plain, "Print lines instead of columns");
  app.add_option("--max-tokens", settings.max_tokens, "Length of each stream in tokens")
      ->check(CLI::Range(12, 1 << 20));
  app.add_option("--slow-motion-us", slow_motion_us,
                 "Pause after each unit of work, so that people can follow; default: 100 for a "
                 "small model, 0 for others")
      ->check(CLI::Range(0, 1'000'000));
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app{
      "Revoke a lease in the middle of a token, kill a tenant and the worker, and check the result",
      "leasehold-demo"};
  std::optional<std::uint32_t> slow_motion_us;
  describe(app, settings, slow_motion_us);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  settings.slow_motion_us = slow_motion_us.value_or(slow_motion_for(settings.model_path));
  return runner::run_program(
      app.get_name(), [&](const runner::Poller& poller) { return run_demo(settings, poller); });
}
