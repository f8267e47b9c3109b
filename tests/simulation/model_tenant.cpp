#include "tests/simulation/model_tenant.hpp"

#include <fmt/format.h>

namespace leasehold::simulation {

Tenant::Tenant(Dependencies deps, std::string name, FindWorker find_worker)
    : Process(Role::Tenant),
      deps_(deps),
      name_(std::move(name)),
      find_worker_(std::move(find_worker)) {
  connect();
}

void Tenant::connect() {
  broker_ = deps_.persistent.broker;
  link_ = &broker_->connect(*this, [this] { call_pending_ = false; });
}

/// Connects to the restarted broker: repeats unanswered calls and claims its leases.
void Tenant::reconnect() {
  if (deps_.persistent.broker->is_dead()) return;
  connect();
  const bool answered = asked_ && granted_.contains(asked_->request_id.value);
  if (asked_ && !answered) return send_acquire();
  asked_.reset();
  if (lease_) resume_holding();
}

void Tenant::resume_holding() {
  broker_->ask(*link_, wire::LeaseHold{.lease = *lease_, .token = token_},
               [this, lease = *lease_](const Result<Answer>& answer) {
                 if (answer || lease_ != lease) return;
                 lost_lease_ = lease_;
                 lease_.reset();
                 request_ = nullptr;
               });
}

template <class Sent>
void Tenant::notify_broker(Sent message) {
  broker_->ask(*link_, std::move(message), [](const Result<Answer>&) {});
}

void Tenant::act() {
  if (!is_connected() && deps_.machine.one_in(2)) return reconnect();
  if (!lease_ && !call_pending_ && is_connected()) return acquire();
  if (asked_ && is_connected() && deps_.machine.one_in(6))
    return send_acquire();  // as if the reply were lost
  if (!lease_) return;
  if (request_ == nullptr && deps_.machine.pick(4) != 0) return submit();
  resize_or_leave();
}

void Tenant::resize_or_leave() {
  switch (deps_.machine.pick(9)) {
    case 0:
    case 1:
      return notify_broker(wire::LeaseRenew{.lease = *lease_});
    case 2:
    case 3:
      return notify_broker(wire::LeaseGrow{
          .lease = *lease_,
          .extents = 1 + deps_.machine.pick(2),
          .pool = deps_.machine.one_in(8) ? MemoryPool::Swap : MemoryPool::Kv});  // refused
    case 4:
    case 5:
      return notify_broker(
          wire::LeaseShrink{.lease = *lease_, .extents = 1 + deps_.machine.pick(2)});
    case 6:
      if (stream_ != nullptr) deps_.machine.close(*stream_, Connection::kClient);
      request_ = nullptr;
      return;
    case 7:
      if (!call_pending_) replace();
      return;
    default:
      notify_broker(wire::LeaseRelease{.lease = *lease_});
      lease_.reset();  // the worker ends a request that runs
  }
}

void Tenant::acquire() {
  Machine& machine = deps_.machine;
  const bool waits_for_worker = lost_lease_ && machine.one_in(2);  // and then for its memory
  asked_ = wire::LeaseAcquire{
      .tenant = {name_},
      .blocks = machine.pick(28),
      .ttl_ms = machine.one_in(3) ? 400 + machine.pick(3000) : 0,
      .worker = waits_for_worker ? std::optional(worker_) : std::nullopt,
      .replaces = waits_for_worker || machine.one_in(2) ? lost_lease_ : std::nullopt,
      .request_id = {fmt::format("{}-{}", link_->id.value, machine.step)}};
  send_acquire();
}

void Tenant::send_acquire() {
  call_pending_ = true;
  broker_->ask(*link_, *asked_,
               [this, request = asked_->request_id.value](const Result<Answer>& answer) {
                 acquired(request, answer);
               });
}

void Tenant::acquired(const std::string& request, const Result<Answer>& answer) {
  call_pending_ = false;
  if (!answer) return;
  const auto& given = std::get<wire::LeaseAcquired>(answer->body);
  const auto [known, fresh] = granted_.try_emplace(request, given.lease);
  if (known->second != given.lease) violated("one request id returned two leases");
  if (!fresh) return;
  lease_ = given.lease;
  worker_ = given.worker;
  token_ = given.token;
  request_ = nullptr;
  deps_.machine.reach_then(FaultSite::TenantLeaseAcquired, *this, [this] { submit(); });
}

/// What runs under the old lease goes on there until its drain ends it.
void Tenant::replace() {
  call_pending_ = true;
  const wire::LeaseReplace ask{
      .lease = *lease_,
      .request_id = {fmt::format("{}-{}-replace", link_->id.value, deps_.machine.step)}};
  broker_->ask(*link_, ask, [this, old = *lease_](const Result<Answer>& answer) {
    call_pending_ = false;
    if (!answer) return;
    const auto& given = std::get<wire::LeaseAcquired>(answer->body);
    if (lease_ && lease_ != old) return notify_broker(wire::LeaseRelease{.lease = given.lease});
    lease_ = given.lease;
    worker_ = given.worker;
    token_ = given.token;
    request_ = nullptr;
  });
}

void Tenant::submit() {
  Worker* worker = lease_ ? find_worker_(worker_) : nullptr;
  if (worker == nullptr) return;
  stream_ = &deps_.machine.connect(*this, *worker);
  Request& request = deps_.judge.submitted(*lease_, *this, *worker, *stream_);
  request_ = &request;
  stream_->ends[Connection::kClient].on_closed = [this, &request] { handle_end(request); };
  stream_->ends[Connection::kServer].on_closed = [worker, &request] { worker->cancel(request); };
  deps_.machine.send(*stream_, Connection::kServer, [this, worker, &request, stream = stream_] {
    worker->on_submit(
        request, *stream, [this, &request] { handle_token(request); },
        [this, &request] { handle_end(request); });
  });
  deps_.machine.reach_then(FaultSite::TenantRequestSubmitted, *this, [] {});
}

void Tenant::handle_token(const Request& request) {
  if (request_ != &request) return;
  deps_.machine.reach_then(FaultSite::TenantTokenReceived, *this, [] {});
}

/// The typed end, or the end of the stream: after either, this lease serves no more.
void Tenant::handle_end(const Request& request) {
  if (request_ != &request) return;
  request_ = nullptr;
  if (lease_ != request.lease) return;
  lost_lease_ = lease_;
  if (deps_.machine.one_in(2)) notify_broker(wire::LeaseRelease{.lease = *lease_});
  lease_.reset();
}

}  // namespace leasehold::simulation
