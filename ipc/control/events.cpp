#include "ipc/control/events.hpp"

#include <array>

#include "ipc/control/message_limits.hpp"

namespace leasehold::events {
namespace {

constexpr std::string_view kKinds[] = {"extent", "weights"};
constexpr std::string_view kAwaited[] = {"ping_reply", "answer", "delivery", "fence_proof",
                                         "unmap"};

// In the order of the variant's alternatives.
constexpr std::array<std::string_view, std::variant_size_v<Event>> kNames = {
    "lease_state",         "region_state",     "forward_revoked",
    "batched_decode_step", "rebind",           "request_completed",
    "operator_action",     "worker_untrusted", "worker_unresponsive",
    "lease_draining"};

void describe(auto& e, auto& fields, const LeaseStateChanged*) {
  fields.field("lease", e.lease);
  fields.field("state", e.state, EnumCount{4});
  fields.field("reason", e.reason, EnumCount{kRevokeReasonCount});
  fields.field("tenant", e.tenant, TextRule::NameOrEmpty);
  fields.field("proof", e.proof, TextRule::SentenceOrEmpty);
}

void describe(auto& e, auto& fields, const RegionStateChanged*) {
  fields.field("region", e.region);
  fields.field("kind", e.kind, Choice{kKinds});
  fields.field("state", e.state, TextRule::Sentence);
  fields.field("lease", e.lease, TextRule::LeaseOrEmpty);
}

void describe(auto& e, auto& fields, const ForwardRevoked*) {
  fields.field("lease", e.lease);
  fields.field("kernel_site", e.kernel_site, EnumCount{kLaunchSiteCount});
  fields.field("layer", e.layer);
  fields.field("kv_position", e.kv_position);
  fields.field("since_flip_ns", e.since_flip_ns);
}

void describe(auto& e, auto& fields, const BatchedDecodeStep*) {
  fields.field("step", e.step);
  fields.field("n_seqs", e.n_seqs);
  fields.field("emitted_tokens", e.emitted_tokens);
  fields.field("per_seq_kv_positions", e.per_seq_kv_positions, wire::kMaxStepItems);
  fields.field("per_seq_leases", e.per_seq_leases, wire::kMaxStepItems);
}

void describe(auto& e, auto& fields, const Rebind*) {
  fields.field("tenant", e.tenant, TextRule::Name);
  fields.field("request", e.request);
  fields.field("old_lease", e.old_lease);
  fields.field("new_lease", e.new_lease);
  fields.field("prompt_tokens", e.prompt_tokens);
}

void describe(auto& e, auto& fields, const RequestCompletedEvent*) {
  fields.field("request", e.request);
  fields.field("tenant", e.tenant, TextRule::Name);
  fields.field("lease", e.lease);
  fields.field("reason", e.reason, TextRule::Sentence);
  fields.field("emitted_tokens", e.emitted_tokens);
}

void describe(auto& e, auto& fields, const OperatorAction*) {
  fields.field("action", e.action, TextRule::Sentence);
  // May hold a part of the weights, 200 bytes by itself. No worker's word is kept here.
  fields.field("object", e.object, TextRule::NonEmpty);
  fields.field("uid", e.uid);
  fields.field("reason", e.reason, TextRule::SentenceOrEmpty);
  fields.field("done", e.done);
}

void describe(auto& e, auto& fields, const WorkerUntrusted*) {
  fields.field("what", e.what, TextRule::Sentence);
  fields.field("index", e.index);
  fields.field("lease", e.lease, TextRule::LeaseOrEmpty);
  fields.field("worker", e.worker, TextRule::NameOrEmpty);
}

void describe(auto& e, auto& fields, const WorkerUnresponsive*) {
  fields.field("worker", e.worker, TextRule::Name);
  fields.field("waiting_for", e.waiting_for, Choice{kAwaited});
  fields.field("timeout_ms", e.timeout_ms);
  fields.field("killed", e.killed);
}

void describe(auto& e, auto& fields, const LeaseDraining*) {
  fields.field("lease", e.lease);
  fields.field("tenant", e.tenant, TextRule::NameOrEmpty);
  fields.field("deadline_boottime_ns", e.deadline_boottime_ns);
}

struct Header {
  std::string event;
  std::int64_t at_boottime_ns = 0;
};

constexpr auto kHeader = [](auto& h, auto& fields) {
  fields.field("event", h.event, Choice{kNames});
  fields.field("at_boottime_ns", h.at_boottime_ns);
};

template <class Alternative>
Result<Event> read(const nlohmann::json& json) {
  return read_fields<Alternative>(json, [](auto& e, auto& fields) {
    describe(e, fields, static_cast<const Alternative*>(nullptr));
  });
}

/// The reader of the alternative with this name; `event` is one of kNames.
template <std::size_t... I>
Result<Event> read_named(std::string_view event, const nlohmann::json& json,
                         std::index_sequence<I...>) {
  using Read = Result<Event> (*)(const nlohmann::json&);
  constexpr Read kReaders[] = {read<std::variant_alternative_t<I, Event>>...};
  return kReaders[std::ranges::find(kNames, event) - kNames.begin()](json);
}

}  // namespace

std::string_view name(const Event& event) {
  return kNames[event.index()];
}

nlohmann::json to_json(const Event& event, TimePoint at) {
  FieldWriter writer;
  const Header header{.event = std::string(name(event)), .at_boottime_ns = at.boottime_ns};
  kHeader(header, writer);
  std::visit([&](const auto& e) { describe(e, writer, &e); }, event);
  return std::move(writer).take();
}

Result<StampedEvent> from_json(const nlohmann::json& json) {
  const Header header = TRY(read_fields<Header>(json, kHeader));
  Event event =
      TRY(read_named(header.event, json, std::make_index_sequence<std::variant_size_v<Event>>{}));
  return StampedEvent{std::move(event), TimePoint{header.at_boottime_ns}};
}

}  // namespace leasehold::events
