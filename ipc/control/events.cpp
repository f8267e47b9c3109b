#include "ipc/control/events.hpp"

#include <array>

#include "ipc/control/messages/limits.hpp"

namespace leasehold::events {

constexpr std::string_view kKinds[] = {"extent", "weights"};
constexpr std::string_view kAwaited[] = {"ping_reply", "answer", "delivery", "fence_proof",
                                         "unmap"};
constexpr std::string_view kEventScopes[] = {"", "engine", "tenant", "shared", "adapter"};
constexpr std::string_view kReplacementStates[] = {"begun", "done", "dropped"};
constexpr std::string_view kServiceStates[] = {"out_of_service", "in_service", "asleep", "waking"};

// Names in the order of Event's alternatives.
constexpr std::array<std::string_view, std::variant_size_v<Event>> kNames = {"lease_state",
                                                                             "region_state",
                                                                             "forward_revoked",
                                                                             "batched_decode_step",
                                                                             "rebind",
                                                                             "request_completed",
                                                                             "operator_action",
                                                                             "worker_untrusted",
                                                                             "worker_unresponsive",
                                                                             "lease_draining",
                                                                             "worker_replacement",
                                                                             "worker_service",
                                                                             "key_expired",
                                                                             "cell_membership",
                                                                             "adapter_loaded",
                                                                             "adapter_evicted"};

void describe(Is<LeaseStateChanged> auto& e, auto& fields) {
  fields.field("lease", e.lease);
  fields.field("state", e.state, EnumCount{4});
  fields.field("reason", e.reason, EnumCount{kRevokeReasonCount});
  fields.field("tenant", e.tenant, TextRule::NameOrEmpty);
  fields.field("proof", e.proof, TextRule::SentenceOrEmpty);
}

void describe(Is<RegionStateChanged> auto& e, auto& fields) {
  fields.field("region", e.region);
  fields.field("kind", e.kind, Choice{kKinds});
  fields.field("state", e.state, TextRule::Sentence);
  fields.field("lease", e.lease, TextRule::LeaseOrEmpty);
}

void describe(Is<ForwardRevoked> auto& e, auto& fields) {
  fields.field("lease", e.lease);
  fields.field("kernel_site", e.kernel_site, EnumCount{kLaunchSiteCount});
  fields.field("layer", e.layer);
  fields.field("kv_position", e.kv_position);
  fields.field("since_flip_ns", e.since_flip_ns);
}

void describe(Is<BatchedDecodeStep> auto& e, auto& fields) {
  fields.field("step", e.step);
  fields.field("n_seqs", e.n_seqs);
  fields.field("emitted_tokens", e.emitted_tokens);
  fields.field("per_seq_kv_positions", e.per_seq_kv_positions, wire::kMaxStepItems);
  fields.field("per_seq_leases", e.per_seq_leases, wire::kMaxStepItems);
}

void describe(Is<Rebind> auto& e, auto& fields) {
  fields.field("tenant", e.tenant, TextRule::Name);
  fields.field("request", e.request);
  fields.field("old_lease", e.old_lease);
  fields.field("new_lease", e.new_lease);
  fields.field("prompt_tokens", e.prompt_tokens);
  fields.field("emitted_tokens", e.emitted_tokens);
  fields.with_default("latency_ns", e.latency_ns, std::int64_t{-1});
  fields.may_be_missing("mode", e.mode, EnumCount{wire::kRebindModeCount});
  fields.with_default("trace_id", e.trace_id, std::string(), TextRule::SentenceOrEmpty);
}

void describe(Is<RequestCompletedEvent> auto& e, auto& fields) {
  fields.field("request", e.request);
  fields.field("tenant", e.tenant, TextRule::Name);
  fields.field("lease", e.lease);
  fields.field("reason", e.reason, TextRule::Sentence);
  fields.field("emitted_tokens", e.emitted_tokens);
  fields.with_default("scope", e.scope, std::string(), Choice{kEventScopes});
  fields.with_default("trace_id", e.trace_id, std::string(), TextRule::SentenceOrEmpty);
}

void describe(Is<OperatorAction> auto& e, auto& fields) {
  fields.field("action", e.action, TextRule::Sentence);
  // This is not a Sentence, because a part of the weights alone may have 200 bytes.
  fields.field("object", e.object, TextRule::NonEmpty);
  fields.field("uid", e.uid);
  fields.field("reason", e.reason, TextRule::SentenceOrEmpty);
  fields.field("done", e.done);
}

void describe(Is<WorkerUntrusted> auto& e, auto& fields) {
  fields.field("what", e.what, TextRule::Sentence);
  fields.field("index", e.index);
  fields.field("lease", e.lease, TextRule::LeaseOrEmpty);
  fields.field("worker", e.worker, TextRule::NameOrEmpty);
}

void describe(Is<WorkerUnresponsive> auto& e, auto& fields) {
  fields.field("worker", e.worker, TextRule::Name);
  fields.field("waiting_for", e.waiting_for, Choice{kAwaited});
  fields.field("timeout_ms", e.timeout_ms);
  fields.field("killed", e.killed);
}

void describe(Is<LeaseDraining> auto& e, auto& fields) {
  fields.field("lease", e.lease);
  fields.field("tenant", e.tenant, TextRule::NameOrEmpty);
  fields.field("deadline_boottime_ns", e.deadline_boottime_ns);
}

void describe(Is<WorkerReplacement> auto& e, auto& fields) {
  fields.field("worker", e.worker, TextRule::Name);
  fields.field("by", e.by, TextRule::Name);
  fields.field("state", e.state, Choice{kReplacementStates});
  fields.field("leases_moved", e.leases_moved);
  fields.field("leases_ended", e.leases_ended);
}

void describe(Is<WorkerService> auto& e, auto& fields) {
  fields.field("worker", e.worker, TextRule::Name);
  fields.field("state", e.state, Choice{kServiceStates});
  fields.field("reason", e.reason, TextRule::SentenceOrEmpty);
}

void describe(Is<KeyExpired> auto& e, auto& fields) {
  fields.field("key", e.key, TextRule::Name);
  fields.field("tenant", e.tenant, TextRule::Name);
  fields.field("name", e.name, TextRule::NameOrEmpty);
  fields.field("expires_unix_ms", e.expires_unix_ms, wire::kExpiry_ms);
}

void describe(Is<CellMembership> auto& e, auto& fields) {
  fields.field("cell", e.cell);
  fields.field("incarnation", e.incarnation);
}

void describe(Is<AdapterLoaded> auto& e, auto& fields) {
  fields.field("adapter", e.adapter);
  fields.field("version", e.version);
  fields.field("tenant", e.tenant, TextRule::NameOrEmpty);
  fields.field("lease", e.lease);
  fields.field("worker", e.worker, TextRule::Name);
  fields.field("size_bytes", e.size_bytes);
}

void describe(Is<AdapterEvicted> auto& e, auto& fields) {
  fields.field("adapter", e.adapter);
  fields.field("version", e.version);
  fields.field("tenant", e.tenant, TextRule::NameOrEmpty);
  fields.field("lease", e.lease);
  fields.field("worker", e.worker, TextRule::Name);
  fields.field("reason", e.reason, EnumCount{kRevokeReasonCount});
}

template <class Alternative>
static Result<Event> read(const nlohmann::json& json) {
  return read_fields<Alternative>(json);
}

/// Reads the alternative with this name; `event` is one of kNames.
template <std::size_t... I>
static Result<Event> read_named(std::string_view event, const nlohmann::json& json,
                                std::index_sequence<I...>) {
  using Read = Result<Event> (*)(const nlohmann::json&);
  constexpr Read kReaders[] = {read<std::variant_alternative_t<I, Event>>...};
  return kReaders[std::ranges::find(kNames, event) - kNames.begin()](json);
}

std::string_view name(const Event& event) {
  return kNames[event.index()];
}

nlohmann::json to_json(const Event& event, TimePoint at) {
  FieldWriter writer;
  writer.field("event", std::string(name(event)));
  writer.field("at_boottime_ns", at.boottime_ns);
  std::visit([&](const auto& e) { describe(e, writer); }, event);
  return std::move(writer).take();
}

Result<StampedEvent> from_json(const nlohmann::json& json) {
  FieldReader reader(json);
  std::string name;
  TimePoint at;
  reader.field("event", name, Choice{kNames});
  reader.field("at_boottime_ns", at.boottime_ns);
  if (auto error = reader.error()) return std::unexpected(*std::move(error));
  Event event = TRY(read_named(name, json, std::make_index_sequence<kNames.size()>{}));
  return StampedEvent{std::move(event), at};
}

}  // namespace leasehold::events
