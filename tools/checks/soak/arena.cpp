#include "tools/checks/soak/arena.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>

#include "ipc/control/event_file.hpp"

namespace leasehold::soak {
namespace {

constexpr Duration kRound = std::chrono::milliseconds(10);
constexpr std::int64_t kTtl_ms = 5000;
constexpr const char* kFencePatience_ms = "1500";

}  // namespace

Arena::Arena(const Settings& settings, const Cast& cast, const demo::Patience& patience,
             std::filesystem::path directory)
    : settings_(settings), cast_(cast), patience_(patience), directory_(std::move(directory)) {
  history_.canaries.emplace();
  if (settings.store) store_ = std::make_unique<FdStore>();
  for (std::uint32_t i = 0; i < settings.workers; ++i) {
    workers_.push_back({.process = {}, .name = fmt::format("w{}", i)});
  }
  for (const Part& part : cast.parts) tenants_.push_back({.process = {}, .part = &part});
}

Result<void> Arena::tend(bool tenants) {
  std::vector<int> outputs;
  for (TenantSlot& slot : tenants_) {
    if (slot.process.runs()) outputs.push_back(slot.process.output().get());
  }
  TRY(patience_.wait(outputs, kRound));
  for (TenantSlot& slot : tenants_) TRY(read(slot));
  TRY(take_in_ends());
  TRY(start_missing(tenants));
  count_bytes();
  look_at_workers();
  return {};
}

demo::BrokerView* Arena::view() {
  return view_ && broker_.runs() && !broker_.stands() ? &*view_ : nullptr;
}

// ------------------------------------------------------------------------------------------- ends

Result<void> Arena::read(TenantSlot& slot) {
  if (!slot.process.filled()) return {};
  std::array<char, 16 * 1024> bytes;
  while (true) {
    const ssize_t got = ::read(slot.process.output().get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};  // nothing more now, or ever
    slot.lines.append({bytes.data(), static_cast<std::size_t>(got)});
    while (const auto line = slot.lines.next()) {
      const std::size_t before = slot.record.tokens.size();
      TRY(demo::note(slot.record, *line));
      tokens_told_ += slot.record.tokens.size() - before;
    }
  }
}

Result<void> Arena::take_in_ends() {
  const auto note_end = [this](const std::string& name, const ProcessSlot& slot, int status) {
    if (!slot.was_killed()) history_.ends.push_back({name, status});
  };
  if (const auto status = broker_.take_end()) {
    note_end("broker", broker_, *status);
    history_.brokers.back().ended_early = store_ == nullptr;
    view_.reset();
    for (WorkerSlot& slot : workers_) slot.ready = false;  // the next broker knows none of them
  }
  for (WorkerSlot& slot : workers_) {
    if (const auto status = slot.process.take_end()) note_end(slot.name, slot.process, *status);
  }
  for (TenantSlot& slot : tenants_) {
    if (!slot.process.filled() || slot.process.runs()) continue;
    TRY(read(slot));  // what it wrote before it ended
    const auto status = slot.process.take_end();
    note_end(slot.part->name, slot.process, status.value_or(0));
    TRY(take_in(slot));
  }
  return {};
}

Result<void> Arena::take_in(TenantSlot& slot) {
  look_for_canaries(slot.part->name, slot.record.tokens, cast_.canaries, *history_.canaries);
  history_.tenants.push_back({.tenant = slot.part->name,
                              .record = std::move(slot.record),
                              .undisturbed = slot.part->undisturbed,
                              .was_killed = slot.process.was_killed()});
  return {};
}

// ----------------------------------------------------------------------------------------- starts

Result<void> Arena::start_missing(bool tenants) {
  if (!broker_.filled()) TRY(start_broker());
  if (!view_) TRY(meet_broker());
  if (view() == nullptr) return {};
  for (WorkerSlot& slot : workers_) {
    if (!slot.process.filled()) TRY(start_worker(slot));
  }
  const bool served = std::ranges::any_of(workers_, &WorkerSlot::ready);
  for (TenantSlot& slot : tenants_) {
    if (tenants && served && !slot.process.filled()) TRY(start_tenant(slot));
  }
  return {};
}

/// With a store the next broker takes up where the last one ended, and lease ids go on.
Result<void> Arena::start_broker() {
  const bool takes_up = store_ && !history_.brokers.empty();
  if (takes_up) {
    history_.brokers.back().restarts.push_back(clock_.now());
  } else {
    history_.brokers.emplace_back();
  }
  const std::string name = fmt::format("broker-{}", broker_lives_.size());
  broker_lives_.push_back(history_.brokers.size() - 1);
  ChildConfig config{.argv = {program("leasehold-broker"), "--socket", socket(), "--capacity",
                              "64MiB", "--allow-memory-check", "--fence-timeout-ms",
                              kFencePatience_ms, "--event-log", directory_ / (name + ".jsonl")},
                     .log_path = log(name)};
  if (!store_) return broker_.start(config);
  const std::filesystem::path state = directory_ / "state";
  std::error_code ignored;  // the broker says what is wrong with it
  std::filesystem::create_directory(state, ignored);
  config.argv.insert(config.argv.end(), {"--state-dir", state});
  broker_.fill(TRY(store_->start(config)));
  return {};
}

/// Tries once; a broker that has just been started takes a moment.
Result<void> Arena::meet_broker() {
  auto connected = demo::BrokerView::connect(socket());
  if (!connected) return {};
  for (const Part& part : cast_.parts) {
    const auto admitted = connected->command(wire::TenantAdmit{
        .tenant = {part.name}, .max_concurrent = 4, .max_blocks = 1000, .ttl_ms = kTtl_ms});
    if (!admitted) return {};  // it went away again
  }
  view_.emplace(*std::move(connected));
  return {};
}

Result<void> Arena::start_worker(WorkerSlot& slot) {
  slot.life = history_.workers.size();
  slot.ready = false;
  history_.workers.push_back({.name = slot.name, .broker = history_.brokers.size() - 1});
  const std::string file = fmt::format("worker-{}", slot.life);
  return slot.process.start(
      {.argv = {program("leasehold-worker"), "--broker", socket(), "--name", slot.name, "--model",
                settings_.model_path, "--listen", directory_ / (slot.name + ".sock"), "--threads",
                "1", "--slow-motion-us", std::to_string(settings_.slow_motion_us), "--event-log",
                directory_ / (file + ".jsonl")},
       .log_path = log(file)});
}

Result<void> Arena::start_tenant(TenantSlot& slot) {
  slot.lines = {};
  slot.record = {.name = slot.part->name};
  return slot.process.start(
      {.argv = {program("leasehold-tenant"), "--socket", socket(), "--tenant", slot.part->name,
                "--prompt", slot.part->prompt, "--temperature", "0.8", "--seed",
                std::to_string(slot.part->seed), "--max-tokens",
                std::to_string(settings_.max_tokens), "--ignore-eos", "--rebind", "-o", "json"},
       .log_path = log("tenant-" + slot.part->name),
       .read_output = true});
}

// ------------------------------------------------------------------------------------------ looks

bool Arena::all_workers_ready() const {
  return std::ranges::all_of(workers_, &WorkerSlot::ready);
}

void Arena::look_at_workers() {
  const bool known = std::ranges::all_of(
      workers_, [](WorkerSlot& slot) { return slot.ready && slot.process.runs(); });
  demo::BrokerView* broker = known ? nullptr : view();
  if (broker == nullptr) return;
  const auto listed = broker->workers();
  if (!listed) return;
  for (WorkerSlot& slot : workers_) {
    slot.ready =
        slot.process.runs() && std::ranges::any_of(*listed, [&](const wire::WorkerView& worker) {
          return worker.worker == slot.name && worker.state == "ready" &&
                 worker.pid == slot.process.pid();
        });
  }
}

void Arena::count_bytes() {
  demo::BrokerView* broker = view();
  if (broker == nullptr) return;
  if (const auto status = broker->status()) history_.brokers.back().samples.push_back(*status);
}

void Arena::wake_all() {
  broker_.go_on();
  for (WorkerSlot& slot : workers_) slot.process.go_on();
  for (TenantSlot& slot : tenants_) slot.process.go_on();
}

void Arena::count_deed() {
  broker_.count_deed();
  for (WorkerSlot& slot : workers_) slot.process.count_deed();
  for (TenantSlot& slot : tenants_) slot.process.count_deed();
}

Result<void> Arena::collect_event_logs() {
  for (std::size_t i = 0; i < broker_lives_.size(); ++i) {
    auto told = TRY(events::read_event_file(directory_ / fmt::format("broker-{}.jsonl", i)));
    auto& events = history_.brokers[broker_lives_[i]].events;
    events.insert(events.end(), std::make_move_iterator(told.begin()),
                  std::make_move_iterator(told.end()));
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
