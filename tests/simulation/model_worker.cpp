#include "tests/simulation/model_worker.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tests/simulation/card_launcher.hpp"

namespace leasehold::simulation {
namespace {

constexpr Duration kBrokerPatience = std::chrono::seconds(5);

}  // namespace

Worker::Worker(Surroundings around, std::string name)
    : Process(Role::Worker), around_(around), name_(std::move(name)), path_(kBrokerPatience) {
  connect();
  attach();
}

Worker::~Worker() = default;

void Worker::connect() {
  broker_ = around_.estate.broker;
  link_ = &broker_->connect(*this, [this] { broker_lost(); });
}

void Worker::on_death() {
  for (Thread& thread : threads_) {
    thread.fiber.reset();
    thread.buffer = {};
    thread.unit.open = false;
  }
  launcher_.reset();  // what it had queued ends with its context
  around_.judge.died(*this);
}

// -----------------------------------------------------------------------------------------
// attaching

void Worker::attach() {
  broker_->ask(*link_, wire::WorkerAttach{.worker = name_},
               [this](const Result<Answer>& answer) { attached(answer); });
}

void Worker::attached(const Result<Answer>& answer) {
  if (!answer) return;
  index_ = std::get<wire::WorkerAttached>(answer->body).worker;
  attachment = std::get<WorkerDescriptors>(answer->descriptors).worker;
  line_ = &broker_->line_of(attachment);
  table_ = &broker_->reader;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    threads_[i].gate = std::make_unique<BasicThreadGate<SimulatedMemory>>(
        BasicThreadGate<SimulatedMemory>::Dependencies{.thread = i,
                                                       .announce = &line_->writer.announce(i),
                                                       .revocations = &table_->revocations(index_),
                                                       .stops = &stops_});
  }
  take_up_card();
  threads_[0].fiber = std::make_unique<Fiber>([this] { engine(); });
  threads_[1].fiber = std::make_unique<Fiber>([this] { helper(); });
  around_.machine.reach_then(FaultSite::WorkerAttached, *this, [this] { open_weights(); });
}

void Worker::open_weights() {
  asking_ = true;
  broker_->ask(*link_,
               wire::WeightsOpen{
                   .model = "m",
                   .file_size_bytes = 1,
                   .layout_digest = around_.machine.one_in(4) ? fmt::format("of {}", pid) : "same",
                   .size_bytes = 4ull << 20},
               [this](const Result<Answer>& answer) { weights_opened(answer); });
}

void Worker::weights_opened(const Result<Answer>& answer) {
  asking_ = false;
  if (!answer) return;  // asks again later
  const auto& opened = std::get<wire::WeightsOpened>(answer->body);
  region_ = opened.region;
  engine_lease_ = opened.lease;
  if (opened.published) return say_ready();
  if (around_.machine.one_in(8)) kill_pending = true;  // a loader is busy for long, and may die
  around_.machine.reach_then(FaultSite::WorkerWeightsFilled, *this, [this] { publish_weights(); });
}

void Worker::publish_weights() {
  asking_ = true;
  broker_->ask(*link_, wire::WeightsPublish{.region = region_},
               [this](const Result<Answer>& answer) {
                 asking_ = false;
                 if (answer) return say_ready();
                 engine_lease_.reset();  // opens again
               });
}

void Worker::say_ready() {
  weights_ready_ = true;
  if (ready_) return;
  broker_->ask(*link_, wire::WorkerReady{.address = name_, .kv_block_size_bytes = kBlockBytes},
               [this](const Result<Answer>& answer) { ready_ = answer.has_value(); });
}

void Worker::look_around() {
  for (auto& [lease, held] : held_) {
    if (held.running && is_expired(lease)) {
      stops_.stop(held.running->place, LocalStop::LeaseExpired);
      around_.judge.told_expired(lease);
    }
    const bool down = state_of(lease) != LeaseState::Live;
    if (around_.plants.unmap_before_quiet && down) unmap_all(lease);
  }
  find_back();
  const bool known = attachment != AttachmentId{} && link_->is_open() && !is_away();
  if (known && !asking_ && !engine_lease_) open_weights();
}

// -------------------------------------------------------------------------------------------
// memory

LeaseState Worker::state_of(LeaseId lease) const {
  return table_->word_of(lease).state();
}

bool Worker::is_expired(LeaseId lease) const {
  const TimePoint deadline = table_->deadline(lease);
  return deadline != TimePoint{} && deadline <= around_.machine.clock.now();
}

void Worker::reply(std::uint64_t number, Event event) {
  around_.machine.send(
      *link_, Connection::kServer,
      [broker = broker_, number, event = std::move(event)] { broker->answered(number, event); });
}

void Worker::on_ping(AttachmentId called) {
  around_.machine.send(*link_, Connection::kServer,
                       [broker = broker_, called] { broker->receive(PingAnswered{called}); });
}

void Worker::map(LeaseId lease, const std::vector<ExtentId>& extents) {
  Held& held = held_[lease];
  for (const ExtentId extent : extents) {
    if (std::ranges::find(held.extents, extent) == held.extents.end()) {
      held.extents.push_back(extent);
    }
  }
}

void Worker::on_grant(const wire::LeaseGrant& grant, std::uint64_t number) {
  if (tracing)
    trace(fmt::format("{} gets {} extents", to_string(grant.lease), grant.extents.size()));
  if (around_.machine.one_in(10)) {
    return reply(number, GrantAnswered{grant.lease, grant.extents,
                                       Error{Errc::OutOfMemory, "cannot map"}, true});
  }
  for (const ExtentId extent : grant.extents) {
    around_.judge.mapped(*this, extent);
    objects_[grant.lease].insert(extent);
  }
  around_.machine.reach_then(FaultSite::WorkerExtentsMapped, *this, [this, grant, number] {
    ++grants_on_the_way_[grant.lease];
    posted_.push_back([this, grant, number] {
      map(grant.lease, grant.extents);
      --grants_on_the_way_[grant.lease];
      reply(number, GrantAnswered{grant.lease, grant.extents, std::nullopt, true});
    });
  });
}

void Worker::unmap_all(LeaseId lease) {
  const auto found = held_.find(lease);
  if (found == held_.end()) return;
  for (const ExtentId extent : found->second.extents) {
    if (around_.machine.one_in(10)) around_.judge.soil(extent);  // writes after its fence
    around_.judge.unmapped(*this, extent);
  }
  found->second.extents.clear();
  objects_.erase(lease);
}

void Worker::drop(LeaseId lease) {
  const auto found = held_.find(lease);
  if (found == held_.end()) return;
  unmap_all(lease);
  if (found->second.running) end(found->second);
  held_.erase(found);
}

/// The typed end goes out at once; the step may still be running.
void Worker::end(Held& held) {
  const Running running = std::move(*held.running);
  held.running.reset();
  around_.judge.ended(*running.request);
  around_.machine.send(*running.stream, Connection::kClient, running.on_end);
}

void Worker::on_unmap(LeaseId lease, std::uint64_t number) {
  if (state_of(lease) != LeaseState::Fenced) {
    return reply(number, UnmapAnswered{lease, Error{Errc::IllegalTransition, "not fenced"}});
  }
  const auto done = [this, lease, number] {
    around_.machine.reach_then(FaultSite::WorkerExtentsUnmapped, *this, [this, lease, number] {
      reply(number, UnmapAnswered{lease, std::nullopt});
    });
  };
  if (engine_lease_ == lease || grants_on_the_way_[lease] > 0) {
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

void Worker::on_reclaim(const effect::SendReclaim& asked, std::uint64_t number) {
  const auto give = [this, asked, number] {
    std::vector<ExtentId> given;
    const auto found = held_.find(asked.lease);
    for (std::uint32_t i = 0; found != held_.end() && i < asked.count; ++i) {
      std::vector<ExtentId>& extents = found->second.extents;
      if (extents.size() < 2) break;
      given.push_back(extents.back());
      extents.pop_back();
      objects_[asked.lease].erase(given.back());
      around_.judge.unmapped(*this, given.back());
    }
    for (const auto& [lease, held] : held_) {  // a lie: another lease's, or nobody's
      if (lease == asked.lease || !around_.machine.one_in(16)) continue;
      given.push_back(held.extents.empty() ? ExtentId{1000} : held.extents.front());
    }
    reply(number, ReclaimAnswered{asked.lease, asked.call, given});
  };
  if (around_.plants.ack_before_drain) return give();
  posted_.push_back(give);
}

// ------------------------------------------------------------------------------------------
// requests

std::optional<std::uint32_t> Worker::free_place() const {
  std::uint32_t used = 0;
  for (const auto& [lease, held] : held_) {
    if (held.running) used |= 1u << held.running->place;
  }
  for (std::uint32_t place = 0; place < 4; ++place) {
    if ((used >> place & 1) == 0) return place;
  }
  return std::nullopt;
}

void Worker::cancel(const Request& request) {
  for (auto& [lease, held] : held_) {
    if (held.running && held.running->request == &request) {
      stops_.stop(held.running->place, LocalStop::Cancelled);
    }
  }
}

void Worker::on_submit(Request& request, Connection& stream, Message on_token, Message on_end) {
  posted_.push_back(
      [this, &request, &stream, on_token = std::move(on_token), on_end = std::move(on_end)] {
        const auto found = held_.find(request.lease);
        const auto place = free_place();
        const bool draining = table_->drain_deadline(request.lease) != TimePoint{};
        if (found == held_.end() || found->second.running || !place || draining ||
            is_expired(request.lease) || state_of(request.lease) != LeaseState::Live) {
          return around_.machine.send(stream, Connection::kClient, on_end);
        }
        request.accepted = true;
        around_.judge.accepted(request.lease);
        stops_.clear(*place);
        found->second.running = Running{&request, &stream, on_token, on_end, *place};
      });
}

}  // namespace leasehold::simulation
