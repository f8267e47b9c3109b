#include "tools/checks/demo/system.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "common/error_hint.hpp"
#include "common/process.hpp"

namespace leasehold::demo {
namespace {

constexpr Duration kReadyPollInterval = std::chrono::milliseconds(20);
constexpr Duration kStartTimeout = std::chrono::minutes(2);
/// A large model from a slow disk; a worker that fails says so long before.
constexpr Duration kLoadTimeout = std::chrono::minutes(15);
/// Enough for four such texts of a 7B model without grouped heads, 0.5 MiB a token. Only what is
/// written takes up memory.
constexpr const char* kCapacity = "1GiB";
constexpr const char* kWeightsCapacity = "1TiB";
/// No worker hangs in the demo, so one that is silent is slow.
constexpr const char* kBrokerTimeout_ms = "300000";
constexpr std::size_t kLogEnd = 600;

Result<std::filesystem::path> fresh_directory() {
  std::string pattern = std::filesystem::temp_directory_path() / "leasehold-demo-XXXXXX";
  // mkdtemp makes it 0700.
  if (::mkdtemp(pattern.data()) == nullptr) {
    return fail_errno(Errc::SystemError, "mkdtemp " + pattern, errno);
  }
  return std::filesystem::path(pattern);
}

}  // namespace

System::~System() {
  worker_.reset();
  broker_.reset();
  std::error_code ignored;
  if (!keep_logs_) std::filesystem::remove_all(directory_, ignored);
}

Result<std::unique_ptr<System>> System::start(const Settings& settings, const Poller& poller) {
  std::unique_ptr<System> system(new System(settings, poller, TRY(fresh_directory())));
  auto started = system->start_broker();
  if (started) started = system->start_worker();
  if (!started) {
    system->keep_logs();
    return fail(started.error().code,
                fmt::format("{} (logs: {})", started.error().detail, system->directory_.string()));
  }
  return system;
}

Result<void> System::start_broker() {
  std::vector<std::string> argv{program("leasehold-broker"),
                                "--socket",
                                broker_socket(),
                                "--capacity",
                                kCapacity,
                                "--weights-capacity",
                                kWeightsCapacity,
                                "--allow-memory-check",
                                "--fence-timeout-ms",
                                kBrokerTimeout_ms,
                                "--worker-timeout-ms",
                                kBrokerTimeout_ms};
  if (!settings_.device.empty()) argv.insert(argv.end(), {"--device", settings_.device});
  broker_.emplace(
      TRY(Child::start({.argv = std::move(argv), .log_path = directory_ / "broker.log"})));
  const SystemClock clock;
  const TimePoint deadline = clock.now() + kStartTimeout;
  while (clock.now() < deadline) {
    TRY(check_alive());
    auto view = BrokerView::connect(broker_socket());
    if (view) {
      broker_view_.emplace(*std::move(view));
      return {};
    }
    TRY(poller_.wait(std::array{broker_->pidfd().get()}, kReadyPollInterval));
  }
  return fail(Errc::TimedOut, "the broker does not listen; " + end_of_log("broker"));
}

Result<void> System::start_worker() {
  worker_.emplace(TRY(Child::start(
      {.argv = {program("leasehold-worker"), "--broker", broker_socket(), "--name", "demo",
                "--model", settings_.model_path, "--listen", directory_ / "worker.sock",
                "--slow-motion-us", std::to_string(settings_.slow_motion_us)},
       .log_path = directory_ / "worker.log"})));
  const SystemClock clock;
  const TimePoint deadline = clock.now() + kLoadTimeout;
  while (clock.now() < deadline) {
    TRY(check_alive());
    for (const wire::WorkerView& worker : TRY(broker_view_->workers())) {
      if (worker.state == "ready") return {};
    }
    TRY(poller_.wait(std::array{broker_->pidfd().get(), worker_->pidfd().get()},
                     kReadyPollInterval));
  }
  return fail(Errc::TimedOut, "the worker is not ready; " + end_of_log("worker"));
}

Result<void> System::check_alive() {
  if (broker_ && has_exited(broker_->pidfd())) return ended("broker", *broker_);
  if (worker_ && has_exited(worker_->pidfd())) return ended("worker", *worker_);
  return {};
}

/// With the code it ended with, so that whoever runs the demo hears what was wrong, not that
/// something was.
std::unexpected<Error> System::ended(const std::string& name, Child& child) const {
  const int status = child.status().value_or(0);
  return fail(errc_from_exit_code(status).value_or(Errc::ConnectionLost),
              fmt::format("the {} ended with {}; {}", name, status, end_of_log(name)));
}

Result<void> System::run_to_end(const std::string& name, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program(name));
  auto child =
      TRY(Child::start({.argv = std::move(arguments), .log_path = directory_ / (name + ".log")}));
  const SystemClock clock;
  const TimePoint deadline = clock.now() + kStartTimeout;
  while (clock.now() < deadline) {
    TRY(poller_.wait(std::array{child.pidfd().get()}, deadline - clock.now()));
    const auto status = child.status();
    if (status == 0) return {};
    if (status) {
      return fail(Errc::SystemError,
                  fmt::format("{} ended with {}; {}", name, *status, end_of_log(name)));
    }
  }
  return fail(Errc::TimedOut, name + " does not end");
}

std::string System::end_of_log(const std::string& name) const {
  std::ifstream file(directory_ / (name + ".log"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return "its log ends: " + text.substr(text.size() > kLogEnd ? text.size() - kLogEnd : 0);
}

}  // namespace leasehold::demo
