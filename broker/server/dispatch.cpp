#include "broker/server/dispatch.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <span>
#include <utility>

#include "broker/server/connections/operators.hpp"
#include "broker/server/lists.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kMaxReportedEvents = 1024;

/// The requests that the worker has stopped for this call; none for a call that stops nothing.
template <class Message>
std::vector<std::string> stopped_ids(const Result<control::Payload>& reply) {
  if constexpr (std::is_same_v<Message, wire::RequestStop>) {
    const auto stopped =
        reply ? wire::RequestsStopped::from_json(reply->body) : std::unexpected(reply.error());
    if (stopped) return stopped->ids;
  }
  return {};
}

}  // namespace

Dispatch::Dispatch(DispatchHooks hooks, RoleUsers users)
    : hooks_(std::move(hooks)), users_(std::move(users)) {}

/// True for users that are only observers. A user that is also a worker or an operator has the
/// rights of that role.
bool Dispatch::is_observer(uid_t uid) const {
  return users_.observers.contains(uid) && !users_.workers.contains(uid) && !is_operator(uid);
}

Result<void> Dispatch::check_role(Role role, const control::Credentials& credentials) const {
  const uid_t uid = credentials.uid;
  switch (role) {
    case Role::Anyone:
      if (!is_observer(uid)) return {};
      return fail(
          Errc::PermissionDenied,
          fmt::format("user {} is an observer and may only query; call as another user", uid));
    case Role::Observer:
      if (is_operator(uid) || users_.observers.contains(uid)) return {};
      return fail(
          Errc::PermissionDenied,
          fmt::format("user {} may not query the state; call as root or the broker's user, or "
                      "start the broker with --observer-uid {}",
                      uid, uid));
    case Role::Operator:
      if (is_operator(uid)) return {};
      return fail(
          Errc::PermissionDenied,
          fmt::format("user {} is not an operator; call as root or as the broker's user", uid));
    case Role::Worker:
      if (users_.workers.contains(uid)) return {};
      return fail(Errc::PermissionDenied,
                  fmt::format("user {} may not run workers; start the broker with --worker-uid {}",
                              uid, uid));
  }
  return fail(Errc::PermissionDenied, "unknown role");
}

template <class Message>
Result<void> Dispatch::post_call(const std::string& method, Incoming& incoming) {
  Message message = TRY(Message::from_json(incoming.params.body));
  constexpr bool kHolds = std::is_same_v<Message, wire::LeaseAcquire> ||
                          std::is_same_v<Message, wire::LeaseReplace> ||
                          std::is_same_v<Message, wire::LeaseHold>;
  if constexpr (kHolds) TRY(hooks_.watch_holder(incoming.connection));
  if constexpr (std::is_same_v<Message, wire::LeaseRedeliver>) {
    TRY(hooks_.take_memory(incoming.connection, message, std::move(incoming.params.fds)));
  }
  Caller caller{.connection = incoming.connection,
                .pid = incoming.credentials.pid,
                .uid = incoming.credentials.uid,
                .is_operator = check_role(Role::Operator, incoming.credentials).has_value()};
  // After a restart the broker identifies these processes by pid and start time.
  if constexpr (kHolds || std::is_same_v<Message, wire::WorkerAttach>) {
    caller.start_ticks = hooks_.start_ticks(incoming.connection);
  }
  // An attach is bound to its connection, so its reply is not cached under its request id.
  constexpr bool kAttach = std::is_same_v<Message, wire::WorkerAttach>;
  if constexpr (kAttach) TRY(hooks_.prepare_worker(incoming.connection, message));
  if constexpr (!kAttach && requires { message.request_id; }) {
    caller.request_id = message.request_id;
    caller.fingerprint = method + message.to_json().dump();
  }
  caller.call = hooks_.wait_for_answer(std::move(incoming.respond));
  hooks_.post(Call<Message>{std::move(caller), std::move(message)});
  return {};
}

Dispatch::Rows Dispatch::with_queries(Rows rows) {
  for (const Query& query : queries())
    rows.emplace(query.method, Row{.role = query.role, .handler = nullptr, .query = &query});
  return rows;
}

const Dispatch::Rows& Dispatch::rows() {
  static const Rows kRows = with_queries({
      {"tenant.admit", {Role::Operator, &Dispatch::post_call<wire::TenantAdmit>}},
      {"tenant.remove", {Role::Operator, &Dispatch::post_call<wire::TenantRemove>}},
      {"cell.attach", {Role::Operator, &Dispatch::post_call<wire::CellAttach>}},
      {"cell.ceiling", {Role::Operator, &Dispatch::post_call<wire::CellCeiling>}},
      {"cell.admit", {Role::Operator, &Dispatch::post_call<wire::CellAdmit>}},
      {"key.create", {Role::Operator, &Dispatch::post_call<wire::KeyCreate>}},
      {"key.update", {Role::Operator, &Dispatch::post_call<wire::KeyUpdate>}},
      {"key.revoke", {Role::Operator, &Dispatch::post_call<wire::KeyRevoke>}},
      {"adapter.add", {Role::Operator, &Dispatch::post_call<wire::AdapterAdd>}},
      {"adapter.remove", {Role::Operator, &Dispatch::post_call<wire::AdapterRemove>}},
      {"adapter.load", {Role::Operator, &Dispatch::post_call<wire::AdapterLoad>}},
      {"adapter.unload", {Role::Operator, &Dispatch::post_call<wire::AdapterUnload>}},
      {"adapter.open", {Role::Worker, &Dispatch::post_call<wire::AdapterOpen>}},
      {"adapter.filled", {Role::Worker, &Dispatch::post_call<wire::AdapterFilled>}},
      {"adapter.close", {Role::Worker, &Dispatch::post_call<wire::AdapterClose>}},
      {"lease.revoke", {Role::Operator, &Dispatch::post_call<wire::LeaseRevoke>}},
      {"prefix.publish", {Role::Operator, &Dispatch::post_call<wire::PrefixPublish>}},
      {"lease.drain", {Role::Operator, &Dispatch::post_call<wire::LeaseDrain>}},
      {"lease.wait", {Role::Operator, &Dispatch::wait_for_leases}},
      {"lease.undrain", {Role::Operator, &Dispatch::post_call<wire::LeaseUndrain>}},
      {"worker.replace", {Role::Operator, &Dispatch::post_call<wire::WorkerReplace>}},
      {"worker.sleep", {Role::Operator, &Dispatch::post_call<wire::WorkerSleep>}},
      {"worker.wake", {Role::Operator, &Dispatch::post_call<wire::WorkerWake>}},
      {"quarantine.release", {Role::Operator, &Dispatch::post_call<wire::QuarantineRelease>}},
      {"request.list", {Role::Observer, &Dispatch::pass_to_worker<wire::RequestList>}},
      {"request.stop", {Role::Operator, &Dispatch::pass_to_worker<wire::RequestStop>}},
      {"step.watch", {Role::Operator, &Dispatch::post_call<wire::StepWatch>}},
      {"lease.acquire", {Role::Anyone, &Dispatch::post_call<wire::LeaseAcquire>}},
      {"lease.replace", {Role::Anyone, &Dispatch::post_call<wire::LeaseReplace>}},
      {"lease.renew", {Role::Anyone, &Dispatch::post_call<wire::LeaseRenew>}},
      {"lease.hold", {Role::Anyone, &Dispatch::post_call<wire::LeaseHold>}},
      {"lease.query", {Role::Anyone, &Dispatch::post_call<wire::LeaseQuery>}},
      {"lease.release", {Role::Anyone, &Dispatch::post_call<wire::LeaseRelease>}},
      {"lease.grow", {Role::Anyone, &Dispatch::post_call<wire::LeaseGrow>}},
      {"lease.shrink", {Role::Anyone, &Dispatch::post_call<wire::LeaseShrink>}},
      {"worker.attach", {Role::Worker, &Dispatch::post_call<wire::WorkerAttach>}},
      {"worker.ready", {Role::Worker, &Dispatch::post_call<wire::WorkerReady>}},
      {"spill.open", {Role::Worker, &Dispatch::open_spill}},
      {"weights.open", {Role::Worker, &Dispatch::post_call<wire::WeightsOpen>}},
      {"weights.publish", {Role::Worker, &Dispatch::post_call<wire::WeightsPublish>}},
      {"weights.sleep", {Role::Worker, &Dispatch::post_call<wire::WeightsSleep>}},
      {"weights.wake", {Role::Worker, &Dispatch::post_call<wire::WeightsWake>}},
      {"event.report", {Role::Worker, &Dispatch::answer_report}},
      {"usage_record.report", {Role::Worker, &Dispatch::post_call<wire::UsageReport>}},
      {"step.report", {Role::Worker, &Dispatch::post_call<wire::WorkerStep>}},
      {"lease.redeliver", {Role::Worker, &Dispatch::post_call<wire::LeaseRedeliver>}},
      {"lease.drained", {Role::Worker, &Dispatch::post_call<wire::LeaseDrained>}},
      {"lease.attach", {Role::Worker, &Dispatch::post_call<wire::LeaseAttach>}},
  });
  return kRows;
}

std::vector<std::string> Dispatch::methods() {
  std::vector<std::string> names;
  for (const auto& [method, row] : rows()) names.push_back(method);
  return names;
}

void Dispatch::call(const std::string& method, Incoming incoming) {
  const auto handle = [&]() -> Result<void> {
    const auto row = rows().find(method);
    if (row == rows().end()) {
      return fail(Errc::UnknownMethod, fmt::format("the broker has no method {}", method));
    }
    TRY(check_role(row->second.role, incoming.credentials));
    if (row->second.query == nullptr) return (this->*row->second.handler)(method, incoming);
    const Query& query = *row->second.query;
    if (!query.shows_touched) {
      hooks_.query(query, incoming.params.body, std::move(incoming.respond));
      return {};
    }
    hooks_.count_touched([this, &query, params = std::move(incoming.params.body),
                          respond = std::move(incoming.respond)]() mutable {
      hooks_.query(query, params, std::move(respond));
    });
    return {};
  };
  if (auto handled = handle(); !handled) incoming.respond(std::unexpected(handled.error()));
}

Result<void> Dispatch::open_spill(const std::string&, Incoming& incoming) {
  TRY(wire::Empty::from_json(incoming.params.body));
  hooks_.open_spill(incoming.connection, std::move(incoming.respond));
  return {};
}

Result<void> Dispatch::wait_for_leases(const std::string&, Incoming& incoming) {
  return hooks_.wait_for_leases(
      incoming.connection, TRY(wire::LeaseWait::from_json(incoming.params.body)), incoming.respond);
}

/// Answers with the worker's first reply, or with TimedOut. For each request that the worker has
/// stopped an operator action is recorded, even if the caller has stopped waiting.
template <class Message>
Result<void> Dispatch::pass_to_worker(const std::string& method, Incoming& incoming) {
  const Message message = TRY(Message::from_json(incoming.params.body));
  const auto respond = std::make_shared<control::Responder>(std::move(incoming.respond));
  const auto on_reply = [this, uid = incoming.credentials.uid, worker = message.worker,
                         respond](Result<control::Payload> reply) {
    if (auto ids = stopped_ids<Message>(reply); !ids.empty())
      hooks_.post(RequestsCancelled{uid, worker, std::move(ids)});
    if (reply) reply->fds.clear();
    if (*respond) std::exchange(*respond, nullptr)(std::move(reply));
  };
  hooks_.pass_to_worker(message.worker, method, message.to_json(), on_reply);
  return {};
}

/// A worker sends one report call at a time, so reports do not pile up in front of a busy broker.
Result<void> Dispatch::answer_report(const std::string&, Incoming& incoming) {
  TRY(take_report(incoming.connection, incoming.params.body));
  incoming.respond(control::Payload{.body = wire::Empty{}.to_json()});
  return {};
}

Result<void> Dispatch::take_report(ConnectionId connection, const control::Json& params) {
  const auto report = TRY(wire::EventReport::from_json(params));
  if (report.events.size() > kMaxReportedEvents) {
    return fail(Errc::BadRequest, fmt::format("the report has {} events; send at most {}",
                                              report.events.size(), kMaxReportedEvents));
  }
  const std::size_t taken = hooks_.admit_events(connection, report.events.size());
  std::size_t malformed = 0;
  std::string first;
  for (const std::string& text : std::span(report.events).first(taken)) {
    const auto event = events::from_json(control::Json::parse(text, nullptr, false));
    if (event) hooks_.post(WorkerReported{connection, *event});
    if (!event && ++malformed == 1) first = event.error().detail;
  }
  if (malformed == 0) return {};
  spdlog::warn("dropped malformed events connection={} events={} first=\"{}\"", connection.value,
               malformed, first);
  return {};
}

template <class Message, class Report>
Result<void> Dispatch::post_report(ConnectionId connection, const control::Json& params) {
  hooks_.post(Report{connection, TRY(Message::from_json(params))});
  return {};
}

void Dispatch::notification(const std::string& method, ConnectionId connection,
                            const control::Credentials& credentials,
                            const control::Payload& params) {
  if (!check_role(Role::Worker, credentials)) return;
  const auto take = [&]() -> Result<void> {
    const control::Json& body = params.body;
    if (method == wire::EventReport::kMethod) return take_report(connection, body);
    if (method == wire::TenantUsage::kMethod)
      return post_report<wire::TenantUsage, UsageReported>(connection, body);
    if (method == wire::TenantServed::kMethod)
      return post_report<wire::TenantServed, ServedReported>(connection, body);
    if (method == wire::WorkerWeights::kMethod)
      return post_report<wire::WorkerWeights, WeightsReported>(connection, body);
    if (method == wire::WorkerDraining::kMethod) hooks_.post(DrainReported{connection});
    return {};
  };
  const Result<void> taken = take();
  if (taken) return;
  spdlog::warn("dropped a report method={} connection={} detail=\"{}\"", method, connection.value,
               taken.error().detail);
}

}  // namespace leasehold
