#include "tests/simulation/cell/host_worker.hpp"

#include <utility>

#include "tests/support/exited_process.hpp"

namespace leasehold::cell::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr ConnectionId kWorker{10};
constexpr const char* kName = "w";
constexpr Duration kRenewEvery = seconds(3);
constexpr Duration kAskMoreAfter = milliseconds(600);
constexpr Duration kRefuseAfter = seconds(4);

wire::WorkerReady readiness() {
  return {.address = "/run/w", .model = "m", .kv_block_size_bytes = kBlockBytes};
}

}  // namespace

HostWorker::HostWorker(Network& network, const Terms& terms, Machine& machine,
                       BrokerProcess& broker, Links links)
    : network_(network),
      terms_(terms),
      machine_(machine),
      broker_(broker),
      links_(std::move(links)),
      quotas_(terms.tenants.size()),
      reported_(terms.tenants.size()) {}

void HostWorker::start() {
  attach(std::nullopt);
  network_.at(network_.between(0, 300), &machine_, [this] { step(); });
}

void HostWorker::at_broker(std::function<void()> action) {
  network_.at(to_broker_.delay(network_, 15), &broker_.machine,
              [this, life = broker_.life, action = std::move(action)] {
                if (life == broker_.life) action();
              });
}

// ---------------------------------------------------------------- the broker

void HostWorker::attach(std::optional<AttachmentId> resume) {
  const auto call = [this](auto message, HostBroker::OnAnswer done) {
    broker_.core->call(kWorker, std::move(message), network_.clock_of(broker_.machine),
                       std::move(done));
  };
  bool is_refused = false;
  call(wire::WorkerAttach{.worker = kName, .resume = resume}, [&](const auto& answer) {
    is_refused = !answer;
    if (answer && !resume) attachment_ = std::get<WorkerDescriptors>(answer->descriptors).worker;
  });
  if (is_refused) return start_again();
  for (const auto& [lease, extents] : mapped_)
    call(wire::LeaseRedeliver{.lease = lease, .extents = extents}, nullptr);
  call(readiness(), nullptr);
}

/// A worker that came back too late exits, and the next one begins.
void HostWorker::start_again() {
  const TimePoint now = network_.clock_of(broker_.machine);
  broker_.core->post(ConnectionClosed{kWorker}, now);
  broker_.core->post(WorkerExited{testing::exit_of(attachment_)}, now);
  std::vector<TextNews> news;
  for (Request& request : requests_) {
    request.lease = {};
    end(request, TextEnd::Lost, news);
  }
  requests_.clear();
  mapped_.clear();
  quotas_.assign(quotas_.size(), {});
  reported_.assign(reported_.size(), {});
  links_.send_news(std::move(news));
  attach(std::nullopt);
}

/// Requests that wait for an answer of the broker end. Others go on until their deadlines.
void HostWorker::broker_restarted() {
  std::erase_if(
      mapped_, [this](const auto& entry) { return broker_.core->extents_of(entry.first).empty(); });
  at_broker([this] { attach(attachment_); });
}

void HostWorker::receive(ToWorker message) {
  network_.at(from_broker_.delay(network_, 15), &machine_,
              [this, life = broker_.life, message = std::move(message)] {
                if (const auto* quota = std::get_if<wire::TenantQuota>(&message))
                  return apply(*quota);
                if (life == broker_.life) map(std::get<wire::LeaseGrant>(message));
              });
}

void HostWorker::apply(const wire::TenantQuota& quota) {
  for (std::size_t i = 0; i < quotas_.size(); ++i)
    if (terms_.tenants[i] == quota.tenant) quotas_[i] = quota;
  report_usage();
}

void HostWorker::map(const wire::LeaseGrant& grant) {
  mapped_[grant.lease] = grant.extents;
  at_broker([this, grant] {
    broker_.core->post(GrantAnswered{grant.lease, grant.extents, std::nullopt},
                       network_.clock_of(broker_.machine));
  });
}

/// Sent when it changes.
void HostWorker::report_usage() {
  for (std::size_t i = 0; i < quotas_.size(); ++i) {
    wire::TenantUsage usage{.tenant = terms_.tenants[i], .revision = quotas_[i].revision};
    if (usage.revision == 0) continue;
    for (const Request& request : requests_) {
      if (request.text.tenant != i) continue;
      usage.running += request.stage == Stage::Running;
      usage.waiting += request.stage == Stage::Waiting;
    }
    const wire::TenantUsage& last = reported_[i];
    const bool is_known = last.revision == usage.revision && last.running == usage.running &&
                          last.waiting == usage.waiting;
    if (is_known) continue;
    reported_[i] = usage;
    at_broker([this, usage] {
      broker_.core->post(UsageReported{kWorker, usage}, network_.clock_of(broker_.machine));
    });
  }
}

// ---------------------------------------------------------------- requests

void HostWorker::begin(StartText text) {
  const std::size_t tenant = text.tenant;
  const std::uint64_t attempt = text.attempt;
  const auto moved_from = text.moved_from;
  requests_.push_back({.text = std::move(text), .since = now(), .life = broker_.life});
  if (broker_.core->state().tenants.find(terms_.tenants[tenant])) return acquire(attempt);
  links_.resolve(tenant, moved_from, [this, attempt](std::optional<TextEnd> refused) {
    if (!refused) return acquire(attempt);
    for (Request& request : requests_) {
      if (request.text.attempt != attempt) continue;
      std::vector<TextNews> news;
      end(request, *refused, news);
      links_.send_news(std::move(news));
      std::erase_if(requests_, [&](const Request& each) { return each.text.attempt == attempt; });
      return;
    }
  });
}

void HostWorker::cancel(std::uint64_t attempt) {
  for (const Request& request : requests_)
    if (request.text.attempt == attempt) release(request);
  std::erase_if(requests_, [&](const Request& each) { return each.text.attempt == attempt; });
}

void HostWorker::acquire(std::uint64_t attempt) {
  for (Request& request : requests_) {
    if (request.text.attempt != attempt) continue;
    request.stage = Stage::Acquiring;
    request.since = now();
    request.life = broker_.life;
    at_broker([this, attempt, tenant = terms_.tenants[request.text.tenant]] {
      broker_.core->call(
          kWorker,
          wire::LeaseAcquire{.tenant = tenant, .blocks = kRequestBlocks, .model = ModelName{"m"}},
          network_.clock_of(broker_.machine), [this, attempt, tenant](const auto& answer) {
            const Tenant* const known = broker_.core->state().tenants.find(tenant);
            const auto incarnation =
                known ? static_cast<std::int64_t>(known->part.incarnation) : std::int64_t{0};
            network_.at(from_broker_.delay(network_, 15), &machine_,
                        [this, attempt, answer, incarnation] {
                          acquired(attempt, answer, Incarnation{incarnation});
                        });
          });
    });
  }
}

/// A request that has ended meanwhile does not need the lease.
void HostWorker::acquired(std::uint64_t attempt, const Result<Answer>& answer,
                          Incarnation incarnation) {
  const LeaseId lease = answer ? std::get<wire::LeaseAcquired>(answer->body).lease : LeaseId{};
  for (Request& request : requests_) {
    if (request.text.attempt != attempt) continue;
    if (!answer) {
      links_.want(request.text.tenant, request.text.moved_from);
      std::vector<TextNews> news;
      end(request, TextEnd::Refused, news);
      links_.send_news(std::move(news));
      std::erase_if(requests_, [&](const Request& each) { return each.text.attempt == attempt; });
      return;
    }
    request.stage = Stage::Waiting;
    request.since = now();
    request.lease = lease;
    request.owner = {.host = HostName{machine_.name}, .incarnation = incarnation};
    request.renewal = now() + kRenewEvery;
    return;
  }
  if (answer)
    release(Request{
        .text = {}, .stage = Stage::Waiting, .since = {}, .life = broker_.life, .lease = lease});
}

void HostWorker::release(const Request& request) {
  if (request.lease == LeaseId{}) return;
  at_broker([this, lease = request.lease] {
    broker_.core->call(kWorker, wire::LeaseRelease{.lease = lease},
                       network_.clock_of(broker_.machine), nullptr);
  });
}

void HostWorker::end(Request& request, TextEnd end, std::vector<TextNews>& news) {
  news.push_back({.attempt = request.text.attempt, .positions = {}, .end = end});
  release(request);
  request.text.attempt = 0;
}

bool HostWorker::may_commit(LeaseId lease) const {
  const LeaseTable& table = broker_.core->table();
  const LeaseWord word = table.word(lease.slot);
  const bool is_live = word.generation() == lease.generation && word.state() == LeaseState::Live;
  return is_live && now() < table.deadline(lease.slot);
}

std::uint32_t HostWorker::running(std::size_t tenant) const {
  std::uint32_t count = 0;
  for (const Request& request : requests_)
    count += request.text.tenant == tenant && request.stage == Stage::Running;
  return count;
}

// ---------------------------------------------------------------- steps

void HostWorker::step() {
  network_.at(network_.between(150, 350) * terms_.pace, &machine_, [this] { step(); });
  std::vector<TextNews> news;
  for (Request& request : requests_) step(request, news);
  std::erase_if(requests_, [](const Request& each) { return each.text.attempt == 0; });
  report_usage();
  links_.send_news(std::move(news));
  std::erase_if(mapped_, [this](const auto& entry) {
    const LeaseWord word = broker_.core->table().word(entry.first.slot);
    return word.generation() != entry.first.generation || word.state() == LeaseState::Fenced;
  });
}

void HostWorker::step(Request& request, std::vector<TextNews>& news) {
  const bool is_asking = request.stage == Stage::Resolving || request.stage == Stage::Acquiring;
  if (is_asking) {
    const bool is_lost =
        request.life != broker_.life || now() - request.since > kRefuseAfter * terms_.pace;
    return is_lost ? end(request, TextEnd::Refused, news) : void();
  }
  if (!may_commit(request.lease)) return end(request, TextEnd::Lost, news);
  if (now() >= request.renewal) renew(request);
  const std::size_t tenant = request.text.tenant;
  if (request.stage == Stage::Waiting) {
    if (running(tenant) >= quotas_[tenant].max_concurrent) {
      if (now() - request.since > kRefuseAfter * terms_.pace)
        return end(request, TextEnd::Refused, news);
      return ask_more(request);
    }
    request.stage = Stage::Running;
  }
  TextNews& own = news.emplace_back(TextNews{.attempt = request.text.attempt});
  commit(request, own);
  if (request.text.position < request.text.length) return;
  own.end = TextEnd::Complete;
  release(request);
  request.text.attempt = 0;
}

void HostWorker::commit(Request& request, TextNews& news) {
  links_.committed(request.text.tenant, request.owner);
  news.positions.push_back(request.text.position++);
}

void HostWorker::renew(Request& request) {
  request.renewal = now() + kRenewEvery;
  at_broker([this, lease = request.lease] {
    const TimePoint now = network_.clock_of(broker_.machine);
    broker_.core->call(kWorker, wire::LeaseRenew{.lease = lease}, now, nullptr);
    const bool is_live = broker_.core->table().word(lease.slot).generation() == lease.generation;
    if (is_live && network_.has(PlantedBug::RenewalPastCeiling))
      broker_.core->table().set_deadline(lease, now + seconds(10));
  });
}

/// Once, after it has waited.
void HostWorker::ask_more(Request& request) {
  if (now() - request.since < kAskMoreAfter * terms_.pace ||
      std::exchange(request.has_asked_more, true))
    return;
  links_.want(request.text.tenant, request.text.moved_from);
}

void HostWorker::add_running(std::size_t tenant, std::vector<simulation::Running>& all) const {
  const std::size_t first = all.size();
  for (const Request& request : requests_) {
    const bool has_lease = request.text.tenant == tenant && request.lease != LeaseId{};
    if (!has_lease || !may_commit(request.lease)) continue;
    const auto known = std::find_if(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(),
                                    [&](const auto& each) { return each.owner == request.owner; });
    simulation::Running& running =
        known == all.end() ? all.emplace_back(simulation::Running{request.owner, {}}) : *known;
    running.share.blocks += kRequestBlocks;
    running.share.concurrent += request.stage == Stage::Running;
  }
  if (all.size() == first) return;
  // Under a live lease, requests may begin at any time.
  Share& newest = std::max_element(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(),
                                   [](const auto& a, const auto& b) { return a.owner < b.owner; })
                      ->share;
  newest.concurrent = std::max(newest.concurrent, quotas_[tenant].max_concurrent);
}

}  // namespace leasehold::cell::simulation
