#include "tests/checks/soak/supervisor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "ipc/control/event_file.hpp"

namespace leasehold::soak {
namespace {

constexpr Duration kPollInterval = std::chrono::milliseconds(10);
constexpr std::int64_t kTtl_ms = 5000;
constexpr const char* kFenceTimeout_ms = "1500";
constexpr const char* kReclaimGrace_ms = "50";  // less than a text takes
/// Tokens of the scavenger before the guaranteed tenant requests its memory.
constexpr std::size_t kTokensBeforeReclaim = 4;
constexpr std::uint64_t kAmpleBytes = 256ull << 20;
constexpr const char* kSwapCapacity = "16MiB";
constexpr std::uint32_t kManyBlocks = 1000;
constexpr const char* kEventLogBytes = "64GiB";  // the judge reads every event
constexpr std::uint64_t kSamplesPerUse = 20;     // a worker reports what it served once a second

}  // namespace

std::string TenantSlot::request_id() const {
  return spec->is_resumable ? fmt::format("{}-{}", spec->name, texts) : "";
}

Supervisor::Supervisor(const Settings& settings, const Workload& workload,
                       const demo::Poller& poller, std::filesystem::path directory)
    : settings_(settings),
      workload_(workload),
      poller_(poller),
      store_(settings.store ? std::make_unique<FdStore>() : nullptr),
      programs_(settings.bin_dir, std::move(directory), store_.get()),
      tight_tenant_(programs_.broker_socket(), settings.max_tokens),
      publisher_(programs_.broker_socket(), kPublishedText) {
  history_.canaries.emplace();
  history_.used_blocks.emplace();
  for (std::uint32_t i = 0; i < settings.workers; ++i) {
    workers_.push_back({.name = fmt::format("w{}", i)});
  }
  for (const TenantSpec& spec : workload.tenants) {
    tenants_.push_back({.spec = &spec});
    if (spec.max_lifetime_ms)
      history_.lifetimes[spec.name] = std::chrono::milliseconds(*spec.max_lifetime_ms);
  }
  history_.tiers = {.guaranteed = slot_of(wire::Tier::Guaranteed).spec->name,
                    .scavenger = slot_of(wire::Tier::Scavenger).spec->name};
}

Result<void> Supervisor::poll(bool tenants) {
  std::vector<int> outputs;
  for (TenantSlot& slot : tenants_) {
    if (slot.process.is_running()) outputs.push_back(slot.process.output().get());
  }
  TRY(poller_.wait(outputs, kPollInterval));
  for (TenantSlot& slot : tenants_) TRY(read(slot));
  for (TenantSlot& slot : tenants_) slot.process.count_poll();
  for (WorkerSlot& slot : workers_) slot.process.count_poll();
  TRY(collect_exits());
  TRY(start_missing(tenants));
  sample_status();
  refresh_workers();
  reserve_memory();
  poll_tight_tenant(tenants);
  poll_publisher(tenants);
  return {};
}

/// The undisturbed texts are computed without the publisher.
void Supervisor::poll_publisher(bool publishes) {
  std::vector<std::string> workers;
  for (const WorkerSlot& slot : workers_)
    if (publishes && workload_.extent && slot.ready) workers.push_back(slot.name);
  publisher_.poll(workers);
  history_.publications = publisher_.publications();
}

void Supervisor::poll_tight_tenant(bool starts) {
  tight_tenant_.poll(starts && std::ranges::any_of(workers_, &WorkerSlot::ready));
  for (TightText& text : tight_tenant_.take_texts()) {
    if (!workload_.tight_texts.empty()) text.undisturbed = workload_.tight_texts[text.number];
    history_.tight_texts.push_back(std::move(text));
  }
  history_.swaps = tight_tenant_.swaps();
}

BrokerView* Supervisor::view() {
  return view_ && broker_.is_running() && !broker_.is_stopped() ? &*view_ : nullptr;
}

// ------------------------------------------------------------------------------------------ exits

Result<void> Supervisor::read(TenantSlot& slot) {
  if (!slot.process.has_process()) return {};
  const std::size_t before = slot.record.tokens.size();
  (void)TRY(demo::read_available(slot.process.output(), slot.lines, slot.record));
  tokens_received_ += slot.record.tokens.size() - before;
  return {};
}

Result<void> Supervisor::collect_exits() {
  const auto note_end = [this](const std::string& name, const ProcessSlot& slot, int status) {
    if (!slot.was_killed()) history_.ends.push_back({name, status});
  };
  if (const auto status = broker_.take_exit_status()) {
    note_end("broker", broker_, *status);
    history_.brokers.back().ended_early = store_ == nullptr;
    view_.reset();
    is_reserved_ = false;
    for (WorkerSlot& slot : workers_) slot.ready = false;  // workers must attach to the next broker
  }
  for (WorkerSlot& slot : workers_) {
    if (const auto status = slot.process.take_exit_status())
      note_end(slot.name, slot.process, *status);
  }
  for (TenantSlot& slot : tenants_) {
    if (!slot.process.has_process() || slot.process.is_running()) continue;
    TRY(read(slot));  // the last output of the process
    const auto status = slot.process.take_exit_status();
    note_end(slot.spec->name, slot.process, status.value_or(0));
    record_tenant(slot);
  }
  return {};
}

void Supervisor::record_tenant(TenantSlot& slot) {
  const std::string request_id = slot.request_id();
  const bool is_asked_again = slot.process.was_killed() && !slot.record.completed;
  if (!is_asked_again || request_id.empty()) ++slot.texts;
  find_canaries(slot.spec->name, slot.record.tokens, workload_.canaries, *history_.canaries);
  history_.tenants.push_back({.tenant = slot.spec->name,
                              .record = std::move(slot.record),
                              .undisturbed = slot.spec->undisturbed,
                              .was_killed = slot.process.was_killed(),
                              .request_id = request_id});
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
    if (tenants && served && !slot.process.has_process() && may_start(slot))
      TRY(start_tenant(slot));
  }
  return {};
}

TenantSlot& Supervisor::slot_of(wire::Tier tier) {
  return *std::ranges::find(tenants_, tier, [](const TenantSlot& slot) { return slot.spec->tier; });
}

/// The guaranteed tenant starts once beside each process of the scavenger, in the middle of its
/// text. Otherwise it would reclaim the memory whenever the scavenger gets it.
bool Supervisor::may_start(const TenantSlot& slot) {
  if (slot.spec->tier != wire::Tier::Guaranteed) return true;
  const TenantSlot& scavenger = slot_of(wire::Tier::Scavenger);
  if (!is_reserved_ || scavenger.starts == scavenger_process_) return false;
  if (scavenger.record.tokens.size() < kTokensBeforeReclaim) return false;
  scavenger_process_ = scavenger.starts;
  return true;
}

/// With a store, the new broker continues the state and lease ids of its predecessor.
Result<void> Supervisor::start_broker() {
  const bool resumes = store_ && !history_.brokers.empty();
  if (resumes) {
    history_.brokers.back().restarts.push_back(clock_.now());
  } else {
    history_.brokers.emplace_back();
  }
  const std::string name = fmt::format("broker-{}", broker_instances_.size());
  broker_instances_.push_back(history_.brokers.size() - 1);
  StartOptions options{
      .arguments = {"--capacity", std::to_string(capacity_bytes()), "--swap-capacity",
                    kSwapCapacity, "--allow-memory-check", "--fence-timeout-ms", kFenceTimeout_ms,
                    "--reclaim-grace-ms", kReclaimGrace_ms, "--event-log", event_log(name),
                    "--event-log-bytes", kEventLogBytes},
      .log_name = name};
  if (store_) {
    const std::filesystem::path state = programs_.directory() / "state";
    std::error_code ignored;  // the broker reports it
    std::filesystem::create_directory(state, ignored);
    options.arguments.insert(options.arguments.end(), {"--state-dir", state});
  }
  broker_.adopt(TRY(programs_.start_broker(std::move(options))));
  return {};
}

/// Tries to connect once. A failure is not an error, because a new broker needs time to listen.
Result<void> Supervisor::connect_broker() {
  auto connected = BrokerView::connect(programs_.broker_socket());
  if (!connected) return {};
  wire::TenantAdmit tight = policy_of({.name = TightTenant::kName});
  if (workload_.extent) tight.max_blocks = TightTenant::kBlocks;
  if (!connected->command(tight)) return {};  // it died
  for (const TenantSpec& spec : workload_.tenants)
    if (!connected->command(policy_of(spec))) return {};
  view_.emplace(*std::move(connected));
  return {};
}

wire::TenantAdmit Supervisor::policy_of(const TenantSpec& spec) const {
  return {.tenant = {spec.name},
          .max_concurrent = 4,
          .max_blocks = std::max(kManyBlocks, 2 * large_lease_blocks()),
          .tier = spec.tier,
          .ttl_ms = kTtl_ms,
          .max_lifetime_ms = spec.max_lifetime_ms};
}

/// Reserves the guaranteed tenant's memory, once a worker has reported the size of a block.
void Supervisor::reserve_memory() {
  BrokerView* broker = view();
  if (is_reserved_ || broker == nullptr || std::ranges::none_of(workers_, &WorkerSlot::ready))
    return;
  wire::TenantAdmit policy = policy_of(*slot_of(wire::Tier::Guaranteed).spec);
  policy.reserved_blocks = large_lease_blocks();
  is_reserved_ = broker->command(policy).has_value();
}

/// Blocks of a large lease; 0 in the undisturbed run, where nothing is reclaimed.
std::uint32_t Supervisor::large_lease_blocks() const {
  return workload_.extent ? workload_.large_lease_extents * workload_.extent->blocks : 0;
}

std::uint64_t Supervisor::capacity_bytes() const {
  if (!workload_.extent) return kAmpleBytes;
  return 2 * workload_.large_lease_extents * workload_.extent->bytes;
}

Result<void> Supervisor::start_worker(WorkerSlot& slot) {
  slot.instance = history_.workers.size();
  slot.ready = false;
  history_.workers.push_back({.broker = history_.brokers.size() - 1});
  const std::string file = fmt::format("worker-{}", slot.instance);
  slot.process.adopt(TRY(programs_.start_worker(
      slot.name, settings_.model_path,
      {.arguments = {"--threads", "1", "--slow-motion-us", std::to_string(settings_.slow_motion_us),
                     "--event-log", event_log(file), "--event-log-bytes", kEventLogBytes},
       .log_name = file})));
  return {};
}

Result<void> Supervisor::start_tenant(TenantSlot& slot) {
  ++slot.starts;
  slot.lines = {};
  slot.record = {.name = slot.spec->name};
  StartOptions options{.arguments = {"--temperature", "0.8", "--seed",
                                     std::to_string(slot.spec->seed), "--max-tokens",
                                     std::to_string(slot.spec->max_tokens), "--ignore-eos",
                                     "--rebind"}};
  if (slot.spec->tier != wire::Tier::Standard)
    options.arguments.insert(options.arguments.end(),
                             {"--blocks", std::to_string(large_lease_blocks())});
  if (slot.spec->is_resumable)
    options.arguments.insert(options.arguments.end(),
                             {"--resumable", "--request-id", slot.request_id()});
  slot.process.adopt(
      TRY(programs_.start_tenant(slot.spec->name, slot.spec->prompt, std::move(options))));
  return {};
}

// ---------------------------------------------------------------------------------------- status

bool Supervisor::all_workers_ready() const {
  return std::ranges::all_of(workers_, &WorkerSlot::ready);
}

void Supervisor::refresh_workers() {
  const bool known = std::ranges::all_of(
      workers_, [](WorkerSlot& slot) { return slot.ready && slot.process.is_running(); });
  BrokerView* broker = known ? nullptr : view();
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
  BrokerView* broker = view();
  if (broker == nullptr) return;
  const auto status = broker->status();
  if (!status) return;  // it died or stopped
  history_.brokers.back().samples.push_back(*status);
  if (samples_++ % kSamplesPerUse == 0) sample_used_blocks(*broker);
}

/// A broker counts from its start, so a count that is smaller than before is the whole count of a
/// new broker.
void Supervisor::sample_used_blocks(BrokerView& broker) {
  const auto tenants = broker.tenants();
  if (!tenants) return;
  UsedBlocks now;
  for (const wire::TenantView& tenant : *tenants) {
    now.published += tenant.served.shared_hit_blocks;
    now.cross_tenant += tenant.served.cross_tenant_hits;
  }
  const auto add = [](std::uint64_t& sum, std::uint64_t& before, std::uint64_t count) {
    sum += count - (count < before ? 0 : before);
    before = count;
  };
  add(history_.used_blocks->published, used_of_broker_.published, now.published);
  add(history_.used_blocks->cross_tenant, used_of_broker_.cross_tenant, now.cross_tenant);
}

void Supervisor::resume_all() {
  broker_.resume();
  for (WorkerSlot& slot : workers_) {
    slot.process.resume();
    slot.process.spare();
  }
  for (TenantSlot& slot : tenants_) {
    slot.process.resume();
    slot.process.spare();
  }
}

void Supervisor::count_action() {
  broker_.count_action();
  for (WorkerSlot& slot : workers_) slot.process.count_action();
  for (TenantSlot& slot : tenants_) slot.process.count_action();
}

Result<void> Supervisor::collect_event_logs() {
  for (std::size_t i = 0; i < broker_instances_.size(); ++i) {
    auto reported = TRY(events::read_event_file(event_log(fmt::format("broker-{}", i))));
    auto& events = history_.brokers[broker_instances_[i]].events;
    events.insert(events.end(), std::make_move_iterator(reported.begin()),
                  std::make_move_iterator(reported.end()));
  }
  for (std::size_t i = 0; i < history_.workers.size(); ++i) {
    // A worker that ended during its start has no event log.
    auto steps = events::read_event_file(event_log(fmt::format("worker-{}", i)));
    if (steps)
      history_.workers[i].steps = *std::move(steps);
    else if (steps.error().code != Errc::FileNotFound)
      return std::unexpected(steps.error());
  }
  return {};
}

}  // namespace leasehold::soak
