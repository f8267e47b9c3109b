#include "tools/checks/soak/supervisor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>

#include "ipc/control/event_file.hpp"

namespace leasehold::soak {
namespace {

constexpr Duration kPollInterval = std::chrono::milliseconds(10);
constexpr std::int64_t kTtl_ms = 5000;
constexpr const char* kFenceTimeout_ms = "1500";

}  // namespace

Supervisor::Supervisor(const Settings& settings, const Workload& workload,
                       const demo::Poller& poller, std::filesystem::path directory)
    : settings_(settings), workload_(workload), poller_(poller), directory_(std::move(directory)) {
  history_.canaries.emplace();
  if (settings.store) store_ = std::make_unique<FdStore>();
  for (std::uint32_t i = 0; i < settings.workers; ++i) {
    workers_.push_back({.process = {}, .name = fmt::format("w{}", i)});
  }
  for (const TenantSpec& spec : workload.tenants)
    tenants_.push_back({.process = {}, .spec = &spec});
}

Result<void> Supervisor::poll(bool tenants) {
  std::vector<int> outputs;
  for (TenantSlot& slot : tenants_) {
    if (slot.process.is_running()) outputs.push_back(slot.process.output().get());
  }
  TRY(poller_.wait(outputs, kPollInterval));
  for (TenantSlot& slot : tenants_) TRY(read(slot));
  TRY(collect_exits());
  TRY(start_missing(tenants));
  sample_status();
  refresh_workers();
  return {};
}

client::BrokerView* Supervisor::view() {
  return view_ && broker_.is_running() && !broker_.is_stopped() ? &*view_ : nullptr;
}

// ------------------------------------------------------------------------------------------- ends

Result<void> Supervisor::read(TenantSlot& slot) {
  if (!slot.process.has_process()) return {};
  std::array<char, 16 * 1024> bytes;
  while (true) {
    const ssize_t got = ::read(slot.process.output().get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};  // nothing more now, or ever
    slot.lines.append({bytes.data(), static_cast<std::size_t>(got)});
    while (const auto line = slot.lines.next()) {
      const std::size_t before = slot.record.tokens.size();
      TRY(demo::note(slot.record, *line));
      tokens_received_ += slot.record.tokens.size() - before;
    }
  }
}

Result<void> Supervisor::collect_exits() {
  const auto note_end = [this](const std::string& name, const ProcessSlot& slot, int status) {
    if (!slot.was_killed()) history_.ends.push_back({name, status});
  };
  if (const auto status = broker_.take_exit_status()) {
    note_end("broker", broker_, *status);
    history_.brokers.back().ended_early = store_ == nullptr;
    view_.reset();
    for (WorkerSlot& slot : workers_) slot.ready = false;  // the next broker knows none of them
  }
  for (WorkerSlot& slot : workers_) {
    if (const auto status = slot.process.take_exit_status())
      note_end(slot.name, slot.process, *status);
  }
  for (TenantSlot& slot : tenants_) {
    if (!slot.process.has_process() || slot.process.is_running()) continue;
    TRY(read(slot));  // what it wrote before it ended
    const auto status = slot.process.take_exit_status();
    note_end(slot.spec->name, slot.process, status.value_or(0));
    TRY(record_tenant(slot));
  }
  return {};
}

Result<void> Supervisor::record_tenant(TenantSlot& slot) {
  find_canaries(slot.spec->name, slot.record.tokens, workload_.canaries, *history_.canaries);
  history_.tenants.push_back({.tenant = slot.spec->name,
                              .record = std::move(slot.record),
                              .undisturbed = slot.spec->undisturbed,
                              .was_killed = slot.process.was_killed()});
  return {};
}

// ----------------------------------------------------------------------------------------- starts

Result<void> Supervisor::start_missing(bool tenants) {
  if (!broker_.has_process()) TRY(start_broker());
  if (!view_) TRY(connect_broker());
  if (view() == nullptr) return {};
  for (WorkerSlot& slot : workers_) {
    if (!slot.process.has_process()) TRY(start_worker(slot));
  }
  const bool served = std::ranges::any_of(workers_, &WorkerSlot::ready);
  for (TenantSlot& slot : tenants_) {
    if (tenants && served && !slot.process.has_process()) TRY(start_tenant(slot));
  }
  return {};
}

/// With a store the next broker takes up where the last one ended, and lease ids go on.
Result<void> Supervisor::start_broker() {
  const bool resumes = store_ && !history_.brokers.empty();
  if (resumes) {
    history_.brokers.back().restarts.push_back(clock_.now());
  } else {
    history_.brokers.emplace_back();
  }
  const std::string name = fmt::format("broker-{}", broker_instances_.size());
  broker_instances_.push_back(history_.brokers.size() - 1);
  ChildConfig config{.argv = {program("leasehold-broker"), "--socket", socket(), "--capacity",
                              "64MiB", "--allow-memory-check", "--fence-timeout-ms",
                              kFenceTimeout_ms, "--event-log", directory_ / (name + ".jsonl")},
                     .log_path = log(name)};
  if (!store_) return broker_.start(config);
  const std::filesystem::path state = directory_ / "state";
  std::error_code ignored;  // the broker says what is wrong with it
  std::filesystem::create_directory(state, ignored);
  config.argv.insert(config.argv.end(), {"--state-dir", state});
  broker_.adopt(TRY(store_->start(config)));
  return {};
}

/// Tries once; a broker that has just been started takes a moment.
Result<void> Supervisor::connect_broker() {
  auto connected = client::BrokerView::connect(socket());
  if (!connected) return {};
  for (const TenantSpec& spec : workload_.tenants) {
    const auto admitted = connected->command(wire::TenantAdmit{
        .tenant = {spec.name}, .max_concurrent = 4, .max_blocks = 1000, .ttl_ms = kTtl_ms});
    if (!admitted) return {};  // it went away again
  }
  view_.emplace(*std::move(connected));
  return {};
}

Result<void> Supervisor::start_worker(WorkerSlot& slot) {
  slot.instance = history_.workers.size();
  slot.ready = false;
  history_.workers.push_back({.name = slot.name, .broker = history_.brokers.size() - 1});
  const std::string file = fmt::format("worker-{}", slot.instance);
  return slot.process.start(
      {.argv = {program("leasehold-worker"), "--broker", socket(), "--name", slot.name, "--model",
                settings_.model_path, "--listen", directory_ / (slot.name + ".sock"), "--threads",
                "1", "--slow-motion-us", std::to_string(settings_.slow_motion_us), "--event-log",
                directory_ / (file + ".jsonl")},
       .log_path = log(file)});
}

Result<void> Supervisor::start_tenant(TenantSlot& slot) {
  slot.lines = {};
  slot.record = {.name = slot.spec->name};
  return slot.process.start(
      {.argv = {program("leasehold-tenant"), "--socket", socket(), "--tenant", slot.spec->name,
                "--prompt", slot.spec->prompt, "--temperature", "0.8", "--seed",
                std::to_string(slot.spec->seed), "--max-tokens",
                std::to_string(settings_.max_tokens), "--ignore-eos", "--rebind", "-o", "json"},
       .log_path = log("tenant-" + slot.spec->name),
       .read_output = true});
}

// ------------------------------------------------------------------------------------------ looks

bool Supervisor::all_workers_ready() const {
  return std::ranges::all_of(workers_, &WorkerSlot::ready);
}

void Supervisor::refresh_workers() {
  const bool known = std::ranges::all_of(
      workers_, [](WorkerSlot& slot) { return slot.ready && slot.process.is_running(); });
  client::BrokerView* broker = known ? nullptr : view();
  if (broker == nullptr) return;
  const auto listed = broker->workers();
  if (!listed) return;
  for (WorkerSlot& slot : workers_) {
    slot.ready = slot.process.is_running() &&
                 std::ranges::any_of(*listed, [&](const wire::WorkerView& worker) {
                   return worker.worker == slot.name && worker.state == "ready" &&
                          worker.pid == slot.process.pid();
                 });
  }
}

void Supervisor::sample_status() {
  client::BrokerView* broker = view();
  if (broker == nullptr) return;
  if (const auto status = broker->status()) history_.brokers.back().samples.push_back(*status);
}

void Supervisor::resume_all() {
  broker_.resume();
  for (WorkerSlot& slot : workers_) slot.process.resume();
  for (TenantSlot& slot : tenants_) slot.process.resume();
}

void Supervisor::count_action() {
  broker_.count_action();
  for (WorkerSlot& slot : workers_) slot.process.count_action();
  for (TenantSlot& slot : tenants_) slot.process.count_action();
}

Result<void> Supervisor::collect_event_logs() {
  for (std::size_t i = 0; i < broker_instances_.size(); ++i) {
    auto reported = TRY(events::read_event_file(directory_ / fmt::format("broker-{}.jsonl", i)));
    auto& events = history_.brokers[broker_instances_[i]].events;
    events.insert(events.end(), std::make_move_iterator(reported.begin()),
                  std::make_move_iterator(reported.end()));
  }
  for (std::size_t i = 0; i < history_.workers.size(); ++i) {
    // A worker that ended before it could begin wrote nothing.
    auto steps = events::read_event_file(directory_ / fmt::format("worker-{}.jsonl", i));
    if (steps)
      history_.workers[i].steps = *std::move(steps);
    else if (steps.error().code != Errc::FileNotFound)
      return std::unexpected(steps.error());
  }
  return {};
}

}  // namespace leasehold::soak
