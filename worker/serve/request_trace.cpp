#include "worker/serve/request_trace.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "worker/trace/lease_events.hpp"

namespace leasehold {
namespace {

/// OpenTelemetry's default limit for the events of a span. Only preemptions can be as many.
constexpr std::size_t kMaxEvents = 128;

bool is_reached(TimePoint phase) {
  return phase != TimePoint{};
}

/// The finish reason of OpenAI's API; empty for a text that did not end by itself.
std::string_view finish_reason(CompletionReason reason) {
  using enum CompletionReason;
  if (reason == EndOfSequence || reason == StopSequence) return "stop";
  if (reason == MaxTokensReached || reason == ContextFull) return "length";
  return {};
}

}  // namespace

RequestTrace::RequestTrace(SpanStart start, TracedRequest request, TimePoint submitted_at)
    : start_(std::move(start)), request_(std::move(request)), submitted_at_(submitted_at) {}

void RequestTrace::parsed(std::uint32_t prompt_tokens, TimePoint now) {
  prompt_tokens_ = prompt_tokens;
  parsed_at_ = now;
}

void RequestTrace::preempted(const Preempted& preempted, TimePoint now) {
  if (events_.size() >= kMaxEvents) return;
  events_.push_back(
      {.name = "request.preempted",
       .at = now,
       .attributes = {{"leasehold.cause", std::string(name(preempted.cause))},
                      {"leasehold.freed_blocks", std::int64_t{preempted.freed_blocks}},
                      {"leasehold.swapped_blocks", std::int64_t{preempted.swapped_blocks}}}});
}

void RequestTrace::rebound(const Rebound& rebound, TimePoint now) {
  request_.lease = rebound.new_lease;
  events_.push_back(
      lease_rebound_event(rebound.old_lease, rebound.new_lease, rebound.emitted_tokens, now));
}

void RequestTrace::revoked(const RevocationInfo& revocation, TimePoint now) {
  events_.push_back(lease_revoked_event(revocation.lease, std::string(name(revocation.reason)),
                                        std::string(name(revocation.scope)), now));
}

std::vector<Span> RequestTrace::completed(const Completed& completed, std::uint32_t tokens,
                                          TimePoint now) {
  if (completed.revocation) revoked(*completed.revocation, now);
  SpanAttributes result{{"gen_ai.usage.input_tokens", std::int64_t{prompt_tokens_}},
                        {"gen_ai.usage.output_tokens", std::int64_t{tokens}}};
  if (completed.cached_tokens)
    result.push_back(
        {"gen_ai.usage.cache_read.input_tokens", std::int64_t{*completed.cached_tokens}});
  const std::string reason(completed.error ? name(completed.error->code) : name(completed.reason));
  result.push_back({"leasehold.completion", reason});
  const std::string_view finished = finish_reason(completed.reason);
  if (!finished.empty())
    result.push_back({"gen_ai.response.finish_reasons", std::vector{std::string(finished)}});
  const bool is_failed = finished.empty() && completed.reason != CompletionReason::Cancelled;
  return finish(std::move(result), is_failed ? reason : std::string(), now);
}

std::vector<Span> RequestTrace::refused(Errc why, TimePoint now) {
  return finish({}, std::string(name(why)), now);
}

SpanAttributes RequestTrace::attributes() const {
  SpanAttributes all{
      {"gen_ai.operation.name", std::string(request_.is_chat ? "chat" : "text_completion")},
      {"gen_ai.provider.name", std::string("leasehold")},
      {"gen_ai.request.model", request_.model},
      {"gen_ai.request.max_tokens", std::int64_t{request_.max_emitted_tokens}},
      {"leasehold.tenant", request_.tenant.value},
      {"leasehold.request", request_.client_request_id.value},
      {"leasehold.lease", to_string(request_.lease)}};
  if (!request_.x_request_id.empty())
    all.push_back({"leasehold.x_request_id", request_.x_request_id});
  return all;
}

Span RequestTrace::span(std::string name, TimePoint begin, TimePoint end) const {
  return {.context = start_.context.child(),
          .parent_span_id = start_.context.span_id,
          .name = std::move(name),
          .begin = begin,
          .end = std::max(begin, end)};
}

/// Each phase ends where the next one begins, or with the request.
std::vector<Span> RequestTrace::finish(SpanAttributes result, std::string error, TimePoint now) {
  Span whole{.context = start_.context,
             .parent_span_id = start_.parent_span_id,
             .name = (request_.is_chat ? "chat " : "text_completion ") + request_.model,
             .begin = submitted_at_,
             .end = std::max(submitted_at_, now),
             .attributes = attributes(),
             .events = std::move(events_),
             .error = error};
  std::ranges::move(result, std::back_inserter(whole.attributes));
  if (!error.empty()) whole.attributes.push_back({"error.type", std::move(error)});
  std::vector<Span> spans{std::move(whole)};
  struct Phase {
    const char* name;
    TimePoint begin;
  };
  // A revocation in the first step is delivered before the admission, which is then not known.
  if (!is_reached(admitted_at_)) admitted_at_ = first_token_at_;
  const Phase phases[] = {{"admission", submitted_at_},
                          {"queue", parsed_at_},
                          {"prefill", admitted_at_},
                          {"decode", first_token_at_}};
  for (std::size_t i = 0; i < std::size(phases) && is_reached(phases[i].begin); ++i) {
    const bool is_last = i + 1 == std::size(phases) || !is_reached(phases[i + 1].begin);
    spans.push_back(span(phases[i].name, phases[i].begin, is_last ? now : phases[i + 1].begin));
  }
  return spans;
}

}  // namespace leasehold
