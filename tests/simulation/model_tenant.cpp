#include "tests/simulation/model_tenant.hpp"

#include <fmt/format.h>

#include "tests/simulation/adapters/adapter_operator.hpp"

namespace leasehold::simulation {

Tenant::Tenant(Dependencies deps, std::string name, FindWorker find_worker)
    : Process(Role::Tenant),
      deps_(deps),
      name_(std::move(name)),
      find_worker_(std::move(find_worker)) {
  connect();
  begin_text();
}

void Tenant::on_death() {
  request_ = nullptr;
  deps_.judge.tenant_died(text_.id);
}

/// Continues the resumable text that another process of the tenant did not finish.
void Tenant::begin_text() {
  BegunText& begun = deps_.persistent.texts[name_];
  is_continued_ = begun.id != 0 && is_resumable(begun.id);
  if (!is_continued_) begun = {deps_.persistent.next_text++, choose_adapter()};
  text_ = {.id = begun.id};
  adapter_ = begun.adapter;
}

/// Its own, the shared one, the base model, or any at all.
std::string Tenant::choose_adapter() const {
  if (!deps_.persistent.has_adapters) return {};
  switch (deps_.machine.pick(8)) {
    case 0:
    case 1:
      return {};
    case 2:
    case 3:
    case 4:
      return kAdapters[name_ == "b" ? 1 : 0].name;
    case 5:
    case 6:
      return kAdapters[2].name;
    default:
      return kAdapters[deps_.machine.pick(kAdapters.size())].name;
  }
}

void Tenant::abandon_text() {
  deps_.judge.text_abandoned(text_.id);
  deps_.persistent.texts[name_] = {};
  begin_text();
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

void Tenant::continue_text() {
  if (!is_connected()) return reconnect();
  if (call_pending_) return;
  if (!lease_) return acquire();
  if (request_ == nullptr) submit();
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
      return leave_stream();
    case 7:
      return replace(wire::RebindMode::Preemptive);
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
      .scavenger = machine.one_in(8),
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
  if (!answer) {
    if (tracing) trace(fmt::format("{} gets no lease: {}", name_, answer.error().detail));
    return;
  }
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

void Tenant::on_draining(const wire::LeaseDraining& notice) {
  if (lease_ != notice.lease) return;
  if (!notice.successor) return replace(wire::RebindMode::Checkpoint);
  deps_.judge.text_fails_over(text_.id);
  replace(wire::RebindMode::Failover);
}

void Tenant::replace(wire::RebindMode mode) {
  if (call_pending_ || !is_connected()) return;
  call_pending_ = true;
  const wire::LeaseReplace ask{
      .lease = *lease_,
      .mode = mode,
      .request_id = {fmt::format("{}-{}-replace", link_->id.value, deps_.machine.step)}};
  broker_->ask(*link_, ask, [this, mode, old = *lease_](const Result<Answer>& answer) {
    call_pending_ = false;
    if (answer) replaced(mode, old, std::get<wire::LeaseAcquired>(answer->body));
  });
}

/// What runs under the old lease moves. If it cannot, it goes on there until its drain ends it. A
/// failover has ended the old lease.
void Tenant::replaced(wire::RebindMode mode, LeaseId old, const wire::LeaseAcquired& given) {
  if (lease_ && lease_ != old) return notify_broker(wire::LeaseRelease{.lease = given.lease});
  lease_ = given.lease;
  worker_ = given.worker;
  token_ = given.token;
  if (mode == wire::RebindMode::Failover) request_ = nullptr;
  if (request_ == nullptr) return;
  Worker* worker = find_worker_(worker_);
  if (worker == nullptr) return;
  previous_ = old;
  deps_.machine.send(*stream_, Connection::kServer, [worker, request = request_, to = given.lease] {
    worker->on_move(*request, to);
  });
}

void Tenant::on_moved(const Request& request, bool moved) {
  const auto previous = std::exchange(previous_, std::nullopt);
  if (request_ != &request || !moved || !previous || deps_.machine.one_in(2)) return;
  notify_broker(wire::LeaseRelease{.lease = *previous});
}

void Tenant::submit() {
  Worker* worker = lease_ ? find_worker_(worker_) : nullptr;
  if (worker == nullptr) return;
  stream_ = &deps_.machine.connect(*this, *worker);
  Request& request = deps_.judge.submitted(*lease_, *this, *worker, *stream_);
  request.tenant = name_;
  request.adapter = adapter_;
  request.text = text_;
  request.resumes = std::exchange(resumes_next_, false);
  if (std::exchange(is_continued_, true)) deps_.judge.text_is_resumed(text_.id);
  request_ = &request;
  stream_->ends[Connection::kClient].on_closed = [this, &request] { handle_close(request); };
  stream_->ends[Connection::kServer].on_closed = [worker, &request] { worker->cancel(request); };
  deps_.machine.send(*stream_, Connection::kServer, [this, worker, &request, stream = stream_] {
    worker->on_submit(request, *stream, *this);
  });
  deps_.machine.reach_then(FaultSite::TenantRequestSubmitted, *this, [] {});
}

/// It comes back on another connection.
void Tenant::leave_stream() {
  if (stream_ != nullptr) deps_.machine.close(*stream_, Connection::kClient);
  request_ = nullptr;
  resumes_next_ = is_resumable(text_.id) && deps_.machine.one_in(2);
}

void Tenant::on_token(const Request& request, const Token& token) {
  if (request_ != &request) return;
  if (text_.size == 0) text_.adapter = token.adapter;
  deps_.judge.token_arrived(text_, token.position, token.token);
  text_.append(token.token);
  deps_.machine.reach_then(FaultSite::TenantTokenReceived, *this, [] {});
}

void Tenant::on_end(const Request& request, StreamEnd end) {
  if (request_ != &request) return;
  request_ = nullptr;
  if (end == StreamEnd::Unknown) return;      // submits it
  if (end == StreamEnd::AdapterOver) return;  // submits it again, under the same lease
  const bool gives_up = !deps_.persistent.is_finishing && deps_.machine.one_in(3);
  if (end == StreamEnd::AdapterLater) return gives_up ? abandon_text() : void();
  if (end == StreamEnd::LeaseOver) return lose_lease(request);
  if (end == StreamEnd::AdapterRefused) return abandon_text();
  deps_.judge.text_completed(text_);
  deps_.persistent.texts[name_] = {};
  begin_text();
}

/// The worker died, or the connection to it broke.
void Tenant::handle_close(const Request& request) {
  if (request_ != &request) return;
  request_ = nullptr;
  resumes_next_ = is_resumable(text_.id) && deps_.machine.one_in(2);
  if (!resumes_next_) lose_lease(request);
}

/// After a typed end, or the end of the stream, the lease serves no more.
void Tenant::lose_lease(const Request& request) {
  if (lease_ != request.lease) return;
  lost_lease_ = lease_;
  if (deps_.machine.one_in(4)) notify_broker(wire::LeaseRelease{.lease = *lease_});
  lease_.reset();
}

}  // namespace leasehold::simulation
