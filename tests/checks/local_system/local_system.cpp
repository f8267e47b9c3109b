#include "tests/checks/local_system/local_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "common/errc.hpp"
#include "common/machine/process.hpp"

namespace leasehold {
namespace {

/// Short enough that the benchmark, which times restarts, does not measure this interval.
constexpr Duration kStartPollInterval = std::chrono::milliseconds(2);

}  // namespace

Result<std::unique_ptr<LocalSystem>> LocalSystem::create(LocalSystemConfig config) {
  auto directory = TRY(TemporaryDirectory::create(config.name));
  return std::unique_ptr<LocalSystem>(new LocalSystem(std::move(config), std::move(directory)));
}

LocalSystem::LocalSystem(LocalSystemConfig config, TemporaryDirectory directory)
    : config_(std::move(config)),
      directory_(std::move(directory)),
      programs_(config_.bin_dir, directory_.path(), config_.store) {}

LocalSystem::~LocalSystem() {
  workers_.clear();
  kill_broker();
}

Result<void> LocalSystem::start_broker(StartOptions options, Duration timeout) {
  kill_broker();
  broker_.emplace(TRY(programs_.start_broker(std::move(options))));
  const SystemClock clock;
  for (const TimePoint deadline = clock.now() + timeout; clock.now() < deadline;) {
    TRY(check_broker());
    if (auto view = BrokerView::connect(programs_.broker_socket())) {
      view_.emplace(*std::move(view));
      (void)view_->status();  // the broker closes a connection that makes no call in 10 s
      return {};
    }
    TRY(pause());
  }
  return fail(Errc::TimedOut, "the broker does not listen; " + programs_.end_of_log("broker"));
}

Result<void> LocalSystem::start_worker(const std::string& worker, const std::string& model_path,
                                       StartOptions options) {
  kill_worker(worker);
  workers_.emplace(worker, TRY(programs_.start_worker(worker, model_path, std::move(options))));
  return {};
}

Result<bool> LocalSystem::worker_is_ready(const std::string& worker) {
  const auto child = workers_.find(worker);
  if (child == workers_.end()) return false;
  return std::ranges::any_of(TRY(view_->workers()), [&](const wire::WorkerView& view) {
    return view.worker == worker && view.state == "ready" && view.pid == child->second.pid();
  });
}

Result<void> LocalSystem::await_worker(const std::string& worker, Duration timeout) {
  const SystemClock clock;
  for (const TimePoint deadline = clock.now() + timeout; clock.now() < deadline;) {
    TRY(check_broker());
    TRY(check_worker(worker));
    if (TRY(worker_is_ready(worker))) return {};
    TRY(pause());
  }
  return fail(Errc::TimedOut,
              "the worker is not ready; " + programs_.end_of_log("worker-" + worker));
}

void LocalSystem::kill_broker() {
  view_.reset();
  broker_.reset();
}

Result<void> LocalSystem::check_alive() {
  TRY(check_broker());
  for (const auto& [name, child] : workers_) TRY(check_worker(name));
  return {};
}

Result<void> LocalSystem::check_broker() {
  return broker_ ? check("the broker", "broker", *broker_) : Result<void>{};
}

Result<void> LocalSystem::check_worker(const std::string& worker) {
  return check("the worker", "worker-" + worker, workers_.at(worker));
}

/// Returns the error of a program that has exited, so that the caller reports the cause.
Result<void> LocalSystem::check(const std::string& what, const std::string& log_name,
                                Child& child) const {
  if (!has_exited(child.pidfd())) return {};
  const int status = child.status().value_or(0);
  return fail(errc_from_exit_code(status).value_or(Errc::ConnectionLost),
              fmt::format("{} ended with {}; {}", what, status, programs_.end_of_log(log_name)));
}

Result<int> LocalSystem::run(const std::string& program, StartOptions options, Duration timeout) {
  Child child = TRY(programs_.start(program, std::move(options)));
  const SystemClock clock;
  for (const TimePoint deadline = clock.now() + timeout; clock.now() < deadline;) {
    if (const auto status = child.status()) return *status;
    TRY(pause());
  }
  return fail(Errc::TimedOut, program + " does not end");
}

Result<void> LocalSystem::pause() const {
  if (config_.pause) return config_.pause(kStartPollInterval);
  std::this_thread::sleep_for(kStartPollInterval);
  return {};
}

}  // namespace leasehold
