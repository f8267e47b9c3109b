// Operator → broker → worker: requests.
#include "ipc/control/messages/requests.hpp"

#include "ipc/control/messages/codec.hpp"
#include "ipc/control/messages/json_columns.hpp"
#include "ipc/control/messages/limits.hpp"

namespace leasehold::wire {

std::string_view name(RequestState state) {
  constexpr std::string_view kNames[] = {"parsing",   "waiting", "prefill",        "decode",
                                         "preempted", "swapped", "awaiting_lease", "ending"};
  static_assert(std::size(kNames) == kRequestStateCount);
  return kNames[static_cast<std::size_t>(state)];
}

std::string_view without_answer_prefix(std::string_view id) {
  for (const std::string_view prefix : {"chatcmpl-", "cmpl-", "embd-", "resp_", "msg_"})
    if (id.starts_with(prefix)) return id.substr(prefix.size());
  return id;
}

void describe(Is<RequestList> auto& m, auto& fields) {
  fields.field("worker", m.worker, TextRule::Name);
  fields.field("tenant", m.tenant);
  fields.field("id", m.id, TextRule::Sentence);
  fields.field("after", m.after, TextRule::Sentence);
  fields.with_default("limit", m.limit, kPageItems.high, kPageItems);
}

void describe(Is<RequestView> auto& m, auto& fields) {
  fields.field("id", m.id, TextRule::Sentence);
  fields.with_default("worker", m.worker, {}, TextRule::NameOrEmpty);
  fields.field("state", m.state, EnumCount{kRequestStateCount});
  fields.field("lease", m.lease);
  fields.field("prompt_tokens", m.prompt_tokens);
  fields.field("emitted_tokens", m.emitted_tokens);
  fields.field("max_emitted_tokens", m.max_emitted_tokens);
  fields.field("age_ms", m.age_ms);
  fields.with_default("embeds", m.embeds, false);
  fields.with_default("detached", m.detached, false);
  fields.field("key", m.key);
  fields.field("answer", m.answer, TextRule::Sentence);
  fields.field("x_request_id", m.x_request_id, TextRule::Sentence);
}

void describe(Is<EndedRequest> auto& m, auto& fields) {
  fields.field("id", m.id, TextRule::Sentence);
  fields.field("reason", m.reason, TextRule::Sentence);
  fields.field("ago_ms", m.ago_ms);
}

void describe(Is<RequestPage> auto& m, auto& fields) {
  fields.columns("items", m.items);
  fields.field("more", m.more);
  fields.field("ended", m.ended);
}

void describe(Is<RequestStop> auto& m, auto& fields) {
  fields.field("worker", m.worker, TextRule::Name);
  fields.field("ids", m.ids, MaxItems{RequestStop::kMaxIds}, TextRule::Sentence);
}

void describe(Is<RequestsStopped> auto& m, auto& fields) {
  fields.field("ids", m.ids, MaxItems{RequestStop::kMaxIds * 16}, TextRule::Sentence);
}

static Result<void> validate(const RequestStop& m) {
  if (!m.ids.empty()) return {};
  return fail(Errc::BadRequest, "'ids' is empty; name at least one request");
}

template struct Message<RequestList>;
template struct Message<RequestView>;
template struct Message<EndedRequest>;
template struct Message<RequestPage>;
template struct Message<RequestStop>;
template struct Message<RequestsStopped>;

}  // namespace leasehold::wire
