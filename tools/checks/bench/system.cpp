#include "tools/checks/bench/system.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <cstdlib>
#include <thread>

#include "common/clock.hpp"
#include "common/process.hpp"
#include "common/random.hpp"
#include "tools/client/all_pages.hpp"
#include "tools/client/parse_message.hpp"

namespace leasehold::bench {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(2);
constexpr Duration kStartTimeout = std::chrono::seconds(60);
constexpr int kExitTimeout_ms = 10'000;
constexpr const char* kWorkerName = "bench";

Result<std::filesystem::path> fresh_directory() {
  std::string pattern = std::filesystem::temp_directory_path() / "leasehold-bench-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) {
    return fail_errno(Errc::SystemError, "mkdtemp " + pattern, errno);
  }
  return std::filesystem::path(pattern);
}

Result<void> kill_and_wait(std::optional<Child>& child) {
  TRY(child->signal(SIGKILL));
  pollfd exit{child->pidfd().get(), POLLIN, 0};
  if (::poll(&exit, 1, kExitTimeout_ms) <= 0) return fail(Errc::TimedOut, "it does not die");
  child.reset();
  return {};
}

}  // namespace

System::~System() {
  worker_.reset();
  broker_.reset();
  std::error_code ignored;
  if (!keep_logs_) std::filesystem::remove_all(directory_, ignored);
}

Result<std::unique_ptr<System>> System::start(const SystemConfig& config) {
  std::unique_ptr<System> system(new System(config, TRY(fresh_directory())));
  if (!config.model_path.empty()) system->partition_cores();
  auto started = system->start_broker();
  if (started && !config.model_path.empty()) started = system->start_worker();
  if (started) return system;
  system->keep_logs_ = true;
  return fail(started.error().code,
              fmt::format("{} (logs: {})", started.error().detail, system->directory_.string()));
}

/// When this thread may use all cores there are; somebody else has shared them out otherwise.
void System::partition_cores() {
  const std::uint32_t cores = std::thread::hardware_concurrency();
  if (config_.threads >= cores) return;
  const auto others = CpuSet::parse(fmt::format("0-{}", cores - config_.threads - 1));
  const auto all = CpuSet::parse(fmt::format("0-{}", cores - 1));
  if (!others || !all || !CpuSet::of_this_thread().contains(*all)) return;
  compute_cpus_ = fmt::format("{}-{}", cores - config_.threads, cores - 1);
  other_cpus_.emplace(*others);
}

Result<void> System::start_broker() {
  std::vector<std::string> argv = {config_.bin_dir + "/leasehold-broker",
                                   "--socket",
                                   broker_socket(),
                                   "--capacity",
                                   config_.capacity,
                                   "--weights-capacity",
                                   "4GiB",
                                   "--fence-timeout-ms",
                                   "30000"};
  argv.insert(argv.end(), config_.broker_options.begin(), config_.broker_options.end());
  if (config_.journal) {
    const auto state = directory_ / "state";
    std::filesystem::create_directories(state);
    std::filesystem::permissions(state, std::filesystem::perms::owner_all);
    argv.insert(argv.end(), {"--state-dir", state.string()});
  }
  client_.reset();
  ChildConfig broker{.argv = std::move(argv), .log_path = directory_ / "broker.log"};
  if (config_.keep_descriptors && !store_) store_.emplace();
  broker_.emplace(TRY(store_ ? store_->start(std::move(broker)) : Child::start(broker)));
  return connect();
}

Result<void> System::connect() {
  const SystemClock clock;
  for (const TimePoint deadline = clock.now() + kStartTimeout; clock.now() < deadline;) {
    if (has_exited(broker_->pidfd())) return fail(Errc::ConnectionLost, "the broker ended");
    auto client = control::Client::connect(broker_socket());
    if (client) {
      client_.emplace(*std::move(client));
      return {};
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return fail(Errc::TimedOut, "the broker does not listen");
}

Result<void> System::start_worker() {
  std::vector<std::string> argv = {config_.bin_dir + "/leasehold-worker",
                                   "--broker",
                                   broker_socket(),
                                   "--name",
                                   kWorkerName,
                                   "--model",
                                   config_.model_path,
                                   "--listen",
                                   directory_ / "worker.sock",
                                   "--threads",
                                   std::to_string(config_.threads)};
  if (!compute_cpus_.empty()) argv.insert(argv.end(), {"--compute-cpus", compute_cpus_});
  worker_.emplace(
      TRY(Child::start({.argv = std::move(argv), .log_path = directory_ / "worker.log"})));
  return await_worker();
}

Result<void> System::await_worker() {
  const SystemClock clock;
  for (const TimePoint deadline = clock.now() + kStartTimeout; clock.now() < deadline;) {
    if (has_exited(worker_->pidfd())) return fail(Errc::ConnectionLost, "the worker ended");
    const auto view = worker_view();
    if (view && view->state == "ready" && view->pid == worker_->pid()) return {};
    std::this_thread::sleep_for(kPollInterval);
  }
  return fail(Errc::TimedOut, "the worker is not ready");
}

Result<wire::Json> System::ask(const std::string& method, wire::Json params) {
  return TRY(client_->call(method, {.body = std::move(params)}, kStartTimeout)).body;
}

Result<void> System::admit(const std::string& tenant, std::uint32_t max_blocks) {
  const wire::TenantAdmit message{.tenant = {tenant},
                                  .max_concurrent = 4,
                                  .max_blocks = max_blocks,
                                  .ttl_ms = 3'600'000,
                                  .request_id = {mint_request_id()}};
  TRY(ask(std::string(message.kMethod), message.to_json()));
  return {};
}

Result<void> System::revoke(LeaseId lease) {
  const wire::LeaseRevoke message{.lease = lease, .request_id = {mint_request_id()}};
  TRY(ask(std::string(message.kMethod), message.to_json()));
  return {};
}

Result<wire::StatusView> System::status() {
  const wire::Json reply = TRY(ask("status"));
  return client::parse_message<wire::StatusView>(reply);
}

Result<std::vector<wire::LeaseView>> System::leases() {
  return client::all_pages<wire::LeaseView>(
      [this](const std::string& method, const wire::Json& params) { return ask(method, params); });
}

Result<std::vector<events::StampedEvent>> System::events_since(std::uint64_t& after) {
  std::vector<events::StampedEvent> found;
  while (true) {
    const wire::Json reply = TRY(ask("event.list", {{"after", after}, {"limit", 1000}}));
    const wire::Json items = reply.value("items", wire::Json::array());
    if (items.empty()) return found;
    for (const wire::Json& item : items) {
      found.push_back(TRY(events::from_json(item)));
      after = item.value("sequence", after);
    }
  }
}

Result<wire::WorkerView> System::worker_view() {
  const wire::Json reply = TRY(ask("worker.list"));
  std::optional<wire::WorkerView> newest;
  for (const wire::Json& item : reply.value("items", wire::Json::array())) {
    auto view = TRY(client::parse_message<wire::WorkerView>(item));
    if (view.worker == kWorkerName && (!newest || view.state == "ready")) newest = std::move(view);
  }
  if (newest) return *newest;
  return fail(Errc::NoModelLoaded, "the broker lists no worker of ours");
}

Result<void> System::kill_broker() {
  client_.reset();
  return kill_and_wait(broker_);
}

Result<void> System::kill_worker() {
  return kill_and_wait(worker_);
}

}  // namespace leasehold::bench
