#include "tests/simulation/model_worker.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tests/simulation/adapters/worker_adapters.hpp"
#include "tests/simulation/card_launcher.hpp"

namespace leasehold::simulation {
namespace {

constexpr Duration kBrokerTimeout = std::chrono::seconds(5);

}  // namespace

Worker::Worker(Dependencies deps, std::string name)
    : Process(Role::Worker), deps_(deps), name_(std::move(name)), path_(kBrokerTimeout) {
  if (deps_.persistent.has_adapters) adapters_ = std::make_unique<WorkerAdapters>(deps_, *this);
  connect();
  attach();
}

Worker::~Worker() = default;

void Worker::connect() {
  broker_ = deps_.persistent.broker;
  link_ = &broker_->connect(*this, [this] { broker_lost(); });
}

void Worker::on_death() {
  for (Thread& thread : threads_) {
    thread.fiber.reset();
    thread.buffer = {};
    thread.unit.open = false;
  }
  launcher_.reset();  // what it had queued ends with its context
  deps_.judge.died(*this);
  deps_.adapters->died(*this);
}

// -----------------------------------------------------------------------------------------
// attaching

void Worker::attach() {
  broker_->ask(*link_, wire::WorkerAttach{.worker = name_},
               [this](const Result<Answer>& answer) { attached(answer); });
}

void Worker::attached(const Result<Answer>& answer) {
  if (!answer) {  // it exits, and is started again
    kill_pending = true;
    return;
  }
  index_ = std::get<wire::WorkerAttached>(answer->body).worker;
  attachment = std::get<WorkerDescriptors>(answer->descriptors).worker;
  segment_ = &broker_->segment_of(attachment);
  table_ = &broker_->reader;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    threads_[i].gate = std::make_unique<BasicThreadGate<SimulatedMemory>>(
        BasicThreadGate<SimulatedMemory>::Dependencies{.thread = i,
                                                       .announce = &segment_->writer.announce(i),
                                                       .revocations = &table_->revocations(index_),
                                                       .stops = &stops_});
  }
  open_card();
  threads_[0].fiber = std::make_unique<Fiber>([this] { engine(); });
  threads_[1].fiber = std::make_unique<Fiber>([this] { helper(); });
  deps_.machine.reach_then(FaultSite::WorkerAttached, *this, [this] { open_weights(); });
}

void Worker::retry_start() {
  if (!ready_ && engine_lease_ && state_of(*engine_lease_) != LeaseState::Live) {
    engine_lease_.reset();
    weights_ready_ = false;
  }
  if (asleep_) return wake_up();
  const bool was_open = region_ != RegionId{};
  if (!engine_lease_ && !(was_open && deps_.planted_bugs.weights_not_reopened)) open_weights();
  if (weights_ready_ && !ready_) report_ready();
  const bool is_idle = ready_ && weights_ready_ && deps_.machine.one_in(8);
  if (is_idle) broker_->ask(*link_, wire::WeightsSleep{}, [](const Result<Answer>&) {});
}

void Worker::on_asleep(bool asleep) {
  asleep_ = asleep;
}

/// Its texts wake it, or a request that arrives.
void Worker::wake_up() {
  const bool has_texts = std::ranges::any_of(held_, [](const auto& entry) {
    return entry.second.running.has_value() || entry.second.fill.has_value();
  });
  if (!has_texts && !deps_.machine.one_in(8)) return;
  call_pending_ = true;
  broker_->ask(*link_, wire::WeightsWake{}, [this](const Result<Answer>& answer) {
    call_pending_ = false;
    if (answer) asleep_ = false;
  });
}

void Worker::report_weights() {
  deps_.machine.send(*link_, Connection::kServer,
                     [broker = broker_, link = link_->id, asleep = asleep_] {
                       broker->receive(WeightsReported{link, {.asleep = asleep}});
                     });
}

void Worker::open_weights() {
  call_pending_ = true;
  broker_->ask(*link_,
               wire::WeightsOpen{
                   .model = "m",
                   .file_size_bytes = 1,
                   .layout_digest = deps_.machine.one_in(4) ? fmt::format("of {}", pid) : "same",
                   .size_bytes = 4ull << 20},
               [this](const Result<Answer>& answer) { weights_opened(answer); });
}

void Worker::weights_opened(const Result<Answer>& answer) {
  call_pending_ = false;
  if (!answer && ready_) post([this] { give_up_fills(); });
  if (!answer) {  // retries later, but exits when the broker found it untrusted while it started
    kill_pending = kill_pending || (!ready_ && answer.error().code == Errc::PermissionDenied);
    return;
  }
  const auto& opened = std::get<wire::WeightsOpened>(answer->body);
  region_ = opened.region;
  engine_lease_ = opened.lease;
  if (opened.published) return report_ready();
  if (deps_.machine.one_in(8)) kill_pending = true;  // a loader is busy for long, and may die
  deps_.machine.reach_then(FaultSite::WorkerWeightsFilled, *this, [this] { publish_weights(); });
}

void Worker::publish_weights() {
  call_pending_ = true;
  broker_->ask(*link_, wire::WeightsPublish{.region = region_},
               [this](const Result<Answer>& answer) {
                 call_pending_ = false;
                 if (answer) return report_ready();
                 engine_lease_.reset();  // opens it again
               });
}

void Worker::report_ready() {
  weights_ready_ = true;
  if (ready_) return report_weights();
  call_pending_ = true;
  broker_->ask(*link_, readiness(), [this](const Result<Answer>& answer) {
    call_pending_ = false;
    ready_ = answer.has_value();
    if (!answer && tracing) trace(fmt::format("{} is not ready: {}", name_, answer.error().detail));
    // Schedules are short, so an operator publishes early.
    if (ready_ && deps_.machine.one_in(2))
      broker_->call(wire::PrefixPublish{.worker = name_, .text = "a text"});
    if (ready_ && adapters_ && deps_.machine.one_in(2))
      broker_->call(wire::PrefixPublish{
          .worker = name_, .text = "a text", .adapter = AdapterName{kSharedAdapter}});
  });
}

wire::WorkerReady Worker::readiness() const {
  return {.address = name_,
          .kv_block_size_bytes = kBlockBytes,
          .kv_identity = "one model",
          .can_sleep = true};
}

void Worker::poll_timers() {
  stop_expired();
  for (auto& [lease, held] : held_) {
    const bool down = state_of(lease) != LeaseState::Live;
    if (deps_.planted_bugs.unmap_before_quiet && down) unmap_all(lease);
  }
  forget_kept_texts();
  if (adapters_) post([] {});  // gives the adapters their time
  reconnect();
  const bool known = attachment != AttachmentId{} && link_->is_open() && !is_reconnecting();
  if (known && !call_pending_) retry_start();
  if (known && deps_.machine.one_in(16)) report_falsely();
}

// -------------------------------------------------------------------------------------------
// memory

LeaseState Worker::state_of(LeaseId lease) const {
  return table_->word_of(lease).state();
}

/// Does what the watcher of deadlines does, and LeaseChecks::stop_due before each commit.
void Worker::stop_expired() {
  for (const auto& [lease, held] : held_) {
    if (!held.running || !is_expired(lease)) continue;
    stops_.stop(held.running->stop_slot, LocalStop::LeaseExpired);
    deps_.judge.notified_expired(lease);
  }
}

bool Worker::is_expired(LeaseId lease) const {
  const TimePoint deadline = table_->deadline(lease);
  return deadline != TimePoint{} && deadline <= deps_.machine.clock.now();
}

void Worker::reply(std::uint64_t number, Event event) {
  deps_.machine.send(
      *link_, Connection::kServer,
      [broker = broker_, number, event = std::move(event)] { broker->answered(number, event); });
}

void Worker::on_ping(AttachmentId called) {
  deps_.machine.send(*link_, Connection::kServer,
                     [broker = broker_, called] { broker->receive(PingAnswered{called}); });
}

void Worker::map(const wire::LeaseGrant& grant) {
  Held& held = held_[grant.lease];
  std::vector<ExtentId>& extents = held.of(grant.pool);
  for (const ExtentId extent : grant.extents) {
    if (grant.adopted_from) read_record(held, deps_.judge.record_in(extent));
    if (std::ranges::find(extents, extent) == extents.end()) extents.push_back(extent);
  }
  if (grant.adapter) adapters_->granted(grant);
}

void Worker::read_record(Held& held, const TextRecord& record) {
  const Text* text = deps_.planted_bugs.torn_record_read ? record.unchecked() : record.checked();
  if (text == nullptr || (held.adopted && held.adopted->size >= text->size)) return;
  held.adopted = *text;
  held.adopted_from_torn = record.is_torn();
}

/// Asks for swap of any lease that it serves.
void Worker::grow_swap() {
  if (held_.empty() || !link_->is_open() || is_reconnecting()) return;
  const auto found = std::next(held_.begin(), deps_.machine.pick(held_.size()));
  broker_->ask(
      *link_,
      wire::LeaseGrow{
          .lease = found->first, .extents = 1 + deps_.machine.pick(2), .pool = MemoryPool::Swap},
      [](const Result<Answer>&) {});
}

void Worker::on_grant(const wire::LeaseGrant& grant, std::uint64_t number) {
  if (tracing)
    trace(fmt::format("{} receives {} extents", to_string(grant.lease), grant.extents.size()));
  if (deps_.machine.one_in(10)) {
    return reply(number, GrantAnswered{grant.lease, grant.extents,
                                       Error{Errc::OutOfMemory, "cannot map"}, true});
  }
  for (const ExtentId extent : grant.extents) {
    deps_.judge.mapped(*this, extent);
    objects_[grant.lease].insert(extent);
  }
  deps_.machine.reach_then(FaultSite::WorkerExtentsMapped, *this, [this, grant, number] {
    ++grants_in_flight_[grant.lease];
    posted_.push_back([this, grant, number] {
      map(grant);
      --grants_in_flight_[grant.lease];
      reply(number, GrantAnswered{grant.lease, grant.extents, std::nullopt, true});
    });
  });
}

void Worker::unmap_all(LeaseId lease) {
  const auto found = held_.find(lease);
  if (found == held_.end()) return;
  for (const MemoryPool pool : kMemoryPools) {
    const std::uint32_t rarely = pool == MemoryPool::Kv ? 10 : 3;  // fewer leases have swap
    for (const ExtentId extent : std::exchange(found->second.of(pool), {})) {
      if (deps_.machine.one_in(rarely)) deps_.judge.taint(extent);  // writes after its fence
      deps_.judge.unmapped(*this, extent);
    }
  }
  objects_.erase(lease);
}

void Worker::drop(LeaseId lease) {
  const auto found = held_.find(lease);
  if (found == held_.end()) return;
  unmap_all(lease);
  if (found->second.running) end(found->second);
  if (found->second.fill) refuse_fill(lease, found->second);
  end_readers(lease);
  held_.erase(found);
}

void Worker::on_unmap(LeaseId lease, std::uint64_t number) {
  if (state_of(lease) != LeaseState::Fenced) {
    return reply(number, UnmapAnswered{lease, Error{Errc::IllegalTransition, "not fenced"}});
  }
  const auto done = [this, lease, number] {
    deps_.machine.reach_then(FaultSite::WorkerExtentsUnmapped, *this, [this, lease, number] {
      reply(number, UnmapAnswered{lease, std::nullopt});
    });
  };
  if (engine_lease_ == lease || grants_in_flight_[lease] > 0) {
    posted_.push_back([this, lease, done] {
      if (engine_lease_ == lease) {
        engine_lease_.reset();
        weights_ready_ = false;
      }
      drop(lease);
      done();
    });
    return;
  }
  unmap_all(lease);
  done();
  posted_.push_back([this, lease] { drop(lease); });
}

/// The engine looks for drained leases after it has run what was posted.
void Worker::on_draining() {
  posted_.push_back([] {});
}

void Worker::report_drained() {
  for (auto& [lease, held] : held_) {
    const bool drained = !held.running && table_->drain_deadline(lease) != TimePoint{};
    if (!drained || std::exchange(held.reported_drained, true)) continue;
    broker_->ask(*link_, wire::LeaseDrained{.lease = lease}, [](const Result<Answer>&) {});
  }
}

/// Reports a lease that may still run requests, may not drain, or may be on another worker.
void Worker::report_falsely() {
  const auto open = broker_->state.leases.open_leases();
  if (open.empty()) return;
  broker_->ask(*link_, wire::LeaseDrained{.lease = open[deps_.machine.pick(open.size())]},
               [](const Result<Answer>&) {});
}

void Worker::on_reclaim(const effect::SendReclaim& asked, std::uint64_t number) {
  const auto give = [this, asked, number] {
    std::vector<ExtentId> given;
    const auto found = held_.find(asked.lease);
    for (std::uint32_t i = 0; found != held_.end() && i < asked.count; ++i) {
      std::vector<ExtentId>& extents = found->second.of(asked.pool);
      if (extents.size() < (asked.pool == MemoryPool::Kv ? 2 : 1)) break;
      given.push_back(extents.back());
      extents.pop_back();
      objects_[asked.lease].erase(given.back());
      deps_.judge.unmapped(*this, given.back());
    }
    for (const auto& [lease, held] : held_) {  // a false report: another lease or pool, or none
      const bool other = lease != asked.lease || asked.pool == MemoryPool::Swap;
      if (!other || !deps_.machine.one_in(16)) continue;
      given.push_back(held.extents.empty() ? ExtentId{1000} : held.extents.front());
    }
    reply(number, ReclaimAnswered{asked.lease, asked.call, given, asked.pool});
  };
  if (deps_.planted_bugs.ack_before_drain) return give();
  posted_.push_back(give);
}

void Worker::end_readers(LeaseId ended) {
  for (auto& [lease, held] : held_) {
    if (held.fill && held.fill->adapter && held.fill->adapter->lease == ended)
      refuse_fill(lease, held);
    if (!held.running) continue;
    if (held.running->shared == ended) {
      end(held);
    } else if (held.running->adapter && held.running->adapter->lease == ended) {
      end(held, StreamEnd::AdapterOver);
    }
  }
}

}  // namespace leasehold::simulation
