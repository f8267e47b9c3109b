#include "worker/serve/deliveries.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>

#include "worker/kv/request_ids.hpp"

namespace leasehold {
namespace {

constexpr int kDeliveryBatchSize = 16;

/// True if a text that ended for this reason was not interrupted.
bool is_complete(std::string_view reason) {
  using enum CompletionReason;
  return reason == name(EndOfSequence) || reason == name(StopSequence) ||
         reason == name(MaxTokensReached) || reason == name(ContextFull);
}

/// True if a new submission of a resumable text does not generate the rest.
bool is_final(std::string_view reason) {
  return is_complete(reason) || reason == name(CompletionReason::RequestCancelled);
}

/// What the client calls the request, as the end of a log line; empty for nothing.
std::string labels_of(const ClientRequest& request) {
  std::string labels;
  const auto& [x_request_id, trace_id, trace] = request.labels;
  if (!x_request_id.empty()) labels += " x_request_id=" + x_request_id;
  if (!trace_id.empty()) labels += " trace_id=" + trace_id;
  return labels;
}

}  // namespace

void Deliveries::deliver(std::vector<SchedulerEvent> events) {
  if (events.empty()) return;
  queue_.add(std::move(events));
  boost::asio::post(*deps_.io, [this] { deliver_batch(); });
}

void Deliveries::complete_early(Completed completed) {
  queue_.add_urgent(std::move(completed));
  boost::asio::post(*deps_.io, [this] { deliver_batch(); });
}

/// Delivers a few events and yields, because the broker's calls wait for the same thread.
void Deliveries::deliver_batch() {
  for (int delivered = 0; delivered < kDeliveryBatchSize; ++delivered) {
    const auto next = queue_.take();
    if (!next) return;
    std::visit([this](const auto& event) { deliver_one(event); }, *next);
  }
  boost::asio::post(*deps_.io, [this] { deliver_batch(); });
}

void Deliveries::deliver_one(const Token& token) {
  ClientRequest* request = requests_->find_parsed(token.engine_request_id);
  if (request == nullptr) return;
  if (request->first_token_at == TimePoint{}) {
    request->first_token_at = deps_.clock->now();
    if (request->labels.trace) request->labels.trace->first_token(request->first_token_at);
  }
  request->progress.emitted_tokens = token.position + 1;
  request->progress.is_generating = true;
  if (deps_.metrics != nullptr)
    deps_.metrics->token(request->timing, token.position, deps_.clock->now());
  if (request->unread_end) return;
  if (request->is_resumable)
    return resumable_->add(token.engine_request_id, request->text->send_token(token));
  auto excess =
      unread_->excess(tenant_of(token.engine_request_id), request->text->unread_output_bytes());
  if (excess) {
    return stop_unread(
        *request, {.engine_request_id = token.engine_request_id, .emitted_tokens = token.position},
        *std::move(excess));
  }
  (void)request->text->send_token(token);
}

void Deliveries::deliver_one(const PromptLogprobs& logprobs) {
  const RequestId& id = logprobs.engine_request_id;
  ClientRequest* request = requests_->find_parsed(id);
  if (request == nullptr || request->unread_end) return;
  auto excess = unread_->excess(tenant_of(id), request->text->unread_output_bytes());
  if (excess) return stop_unread(*request, {.engine_request_id = id}, *std::move(excess));
  request->text->send_prompt_logprobs(logprobs);
  pacer_.sent(id, static_cast<std::uint32_t>(logprobs.tokens.size()));
}

/// Nothing for a request that has ended.
std::optional<std::size_t> Deliveries::unread_bytes(const RequestId& engine_request_id) const {
  const ClientRequest* request = requests_->find_parsed(engine_request_id);
  if (request == nullptr || request->unread_end) return std::nullopt;
  return request->text->unread_output_bytes();
}

void Deliveries::logprobs_taken(const RequestId& engine_request_id, std::uint32_t positions) {
  deps_.loop->post([engine_request_id, positions](Engine& engine) {
    engine.scheduler().running().logprobs_taken(engine_request_id, positions);
  });
}

void Deliveries::logprobs_stalled(const RequestId& engine_request_id) {
  ClientRequest* request = requests_->find_parsed(engine_request_id);
  stop_unread(*request, {.engine_request_id = engine_request_id},
              {Errc::QueueFull,
               "the client has not read the prompt's log probabilities for 10 s; "
               "read faster"});
}

/// The client gets the end with the error `why` only once the engine has ended the request, so that
/// the id stays in use until then.
void Deliveries::stop_unread(ClientRequest& request, Completed end, Error why) {
  const RequestId engine_request_id = end.engine_request_id;
  end.reason = CompletionReason::EngineError;
  end.error = std::move(why);
  request.unread_end = std::move(end);
  deps_.running_requests->stop(engine_request_id, LocalStop::Cancelled);
  deps_.loop->post([engine_request_id](Engine& engine) { (void)engine.cancel(engine_request_id); });
}

/// Explains a text that ends before `max_emitted_tokens` although nothing failed.
std::string Deliveries::truncation_detail(const ClientRequest& request,
                                          const Completed& completed) const {
  const bool is_shortened = request.may_shorten &&
                            completed.reason == CompletionReason::MaxTokensReached &&
                            completed.emitted_tokens < request.max_emitted_tokens;
  if (is_shortened) {
    return fmt::format(
        "{} tokens emitted, which is what the context, the tenant's max_blocks and "
        "its tokens per minute hold; ask for a number of tokens to get another",
        completed.emitted_tokens);
  }
  if (completed.reason != CompletionReason::ContextFull) return {};
  return fmt::format("{} holds {} tokens and is full: {} of at most {} tokens emitted",
                     name(deps_.prompt.context_bound), deps_.prompt.max_context,
                     completed.emitted_tokens, request.max_emitted_tokens);
}

/// The end that the client gets. A request that was stopped gets the error even if its lease was
/// revoked at the same time, so that its client does not submit it again.
Completed Deliveries::end_of(const ClientRequest& request, const Completed& observed) {
  if (request.unread_end) return *request.unread_end;
  if (!request.stopped_by || is_complete(name(observed.reason))) return observed;
  return {.engine_request_id = observed.engine_request_id,
          .reason = CompletionReason::RequestCancelled,
          .emitted_tokens = observed.emitted_tokens,
          .error = request.stopped_by,
          .cached_tokens = observed.cached_tokens};
}

/// A vector may be as large as a hundred tokens, so a client that reads none gets an error instead.
void Deliveries::withhold_unread(const ClientRequest& request, Completed& completed) {
  auto excess =
      unread_->excess(tenant_of(completed.engine_request_id), request.text->unread_output_bytes());
  if (!excess) return;
  completed.reason = CompletionReason::EngineError;
  completed.error = *std::move(excess);
  completed.embedding.clear();
}

void Deliveries::deliver_one(const Admitted& admitted) {
  ClientRequest* request = requests_->find_parsed(admitted.engine_request_id);
  if (request != nullptr && request->labels.trace) request->labels.trace->admitted(admitted.at);
}

void Deliveries::deliver_one(const Completed& observed) {
  ClientRequest* request = requests_->find_parsed(observed.engine_request_id);
  if (request == nullptr) return;
  Completed completed = end_of(*request, observed);
  if (!completed.embedding.empty()) withhold_unread(*request, completed);
  report_usage(*request, request->unread_end ? observed : completed);
  // After a rebind the count would include tokens that the request itself has generated.
  completed.cached_tokens = request->emitted_before == 0 ? observed.cached_tokens : std::nullopt;
  std::string detail = truncation_detail(*request, completed);
  count_end(*request, completed);
  note_end(*request, completed);
  end_stream(completed.engine_request_id, name(completed.reason), completed.emitted_tokens,
             [&](TextStream& text) { return text.send_completed(completed, std::move(detail)); });
}

/// Logs the end where an operator looks for it, and sends the spans.
void Deliveries::note_end(ClientRequest& request, const Completed& completed) {
  const std::string& id = completed.engine_request_id.value;
  if (const auto& revocation = completed.revocation; revocation && !revocation->is_local) {
    spdlog::info("request ended by its lease request={} lease={} reason={} emitted_tokens={}{}", id,
                 to_string(revocation->lease), name(revocation->reason), completed.emitted_tokens,
                 labels_of(request));
  }
  if (completed.error && completed.error->code == Errc::NumericFault) {
    spdlog::error("request ended with a numeric fault request={} emitted_tokens={} reason=\"{}\"{}",
                  id, completed.emitted_tokens, completed.error->detail, labels_of(request));
  }
  if (!request.labels.trace) return;
  const std::uint32_t before = std::min(request.emitted_before, completed.emitted_tokens);
  deps_.tracing->end(request.labels.trace->completed(completed, completed.emitted_tokens - before,
                                                     deps_.clock->now()));
}

/// Reports the usage of a completed request. One that was never admitted computed no prompt token;
/// rejected requests have no usage record.
void Deliveries::report_usage(const ClientRequest& request, const Completed& completed) {
  const RequestId& engine_request_id = completed.engine_request_id;
  const std::uint32_t before = std::min(request.emitted_before, completed.emitted_tokens);
  deps_.broker->report_usage_record(
      {.tenant = tenant_of(engine_request_id),
       .request = to_client_request_id(engine_request_id),
       .lease = request.lease,
       .prompt_tokens = completed.cached_tokens ? request.timing.prompt_tokens : 0,
       .cached_tokens = completed.cached_tokens.value_or(0),
       .generated_tokens = completed.emitted_tokens - before,
       .reason = std::string(name(completed.reason)),
       .submitted_boottime_ns = request.timing.submitted_at.boottime_ns,
       .first_token_boottime_ns = request.first_token_at.boottime_ns,
       .ended_boottime_ns = deps_.clock->now().boottime_ns});
}

void Deliveries::count_end(const ClientRequest& request, const Completed& completed) {
  if (deps_.metrics == nullptr) return;
  const TimePoint now = deps_.clock->now();
  deps_.metrics->completed(request.timing, completed.reason, now);
  if (!completed.embedding.empty()) deps_.metrics->embedded(request.timing);
  if (!completed.revocation || completed.revocation->is_local) return;
  if (const auto since_word_stored =
          deps_.table->since_word_stored(completed.revocation->lease, now))
    deps_.metrics->error_written(*since_word_stored);
}

void Deliveries::deliver_one(const Preempted& preempted) {
  if (deps_.metrics != nullptr) deps_.metrics->preempted();
  ClientRequest* request = requests_->find_parsed(preempted.engine_request_id);
  if (request == nullptr) return;
  spdlog::debug(
      "request preempted request={} cause={} freed_blocks={} swapped_blocks={} emitted_tokens={}{}",
      preempted.engine_request_id.value, name(preempted.cause), preempted.freed_blocks,
      preempted.swapped_blocks, preempted.emitted_tokens, labels_of(*request));
  request->progress.preempted = preempted;
  request->progress.is_generating = false;
  if (request->labels.trace) request->labels.trace->preempted(preempted, deps_.clock->now());
  if (!request->unread_end) request->text->send_preempted(preempted);
}

void Deliveries::deliver_one(const AdmissionRejected& observed) {
  AdmissionRejected rejected = observed;
  ClientRequest* request = requests_->find_parsed(observed.engine_request_id);
  if (request != nullptr && request->stopped_by) rejected.reason = *request->stopped_by;
  if (deps_.metrics != nullptr) deps_.metrics->refused(rejected.reason.code);
  if (request != nullptr && request->labels.trace)
    deps_.tracing->end(request->labels.trace->refused(rejected.reason.code, deps_.clock->now()));
  end_stream(rejected.engine_request_id, name(rejected.reason.code), rejected.emitted_tokens,
             [&](TextStream& text) { return text.send_rejected(rejected); });
}

void Deliveries::end_stream(const RequestId& engine_request_id, std::string_view reason,
                            std::uint32_t emitted_tokens,
                            const std::function<wire::RequestCompleted(TextStream&)>& send) {
  ClientRequest* request = requests_->find_parsed(engine_request_id);
  if (request == nullptr) return;
  const TimePoint now = deps_.clock->now();
  wire::RequestCompleted end = send(*request->text);
  std::string scope = end.scope;
  if (request->is_resumable) resumable_->end(engine_request_id, std::move(end), is_final(reason));
  deps_.broker->report(
      events::RequestCompletedEvent{.request = to_client_request_id(engine_request_id),
                                    .tenant = tenant_of(engine_request_id).value,
                                    .lease = request->lease,
                                    .reason = std::string(reason),
                                    .emitted_tokens = emitted_tokens,
                                    .scope = std::move(scope),
                                    .trace_id = request->labels.trace_id},
      now);
  requests_->recent_ends().add({engine_request_id, std::string(reason), now});
  requests_->forget(engine_request_id);
}

void Deliveries::deliver_one(const Rebound& rebound) {
  if (deps_.metrics != nullptr) deps_.metrics->rebound();
  std::string trace_id;
  if (ClientRequest* request = requests_->find_parsed(rebound.engine_request_id)) {
    request->lease = rebound.new_lease;
    trace_id = request->labels.trace_id;
    if (request->labels.trace) request->labels.trace->rebound(rebound, deps_.clock->now());
  }
  resumable_->moved(rebound.engine_request_id, rebound.new_lease);
  // Preemptive is used for every mode that copies; the broker knows the actual mode.
  const wire::RebindMode mode =
      rebound.move_duration ? wire::RebindMode::Preemptive : wire::RebindMode::Reprefill;
  deps_.broker->report(
      events::Rebind{.tenant = tenant_of(rebound.engine_request_id).value,
                     .request = to_client_request_id(rebound.engine_request_id),
                     .old_lease = rebound.old_lease,
                     .new_lease = rebound.new_lease,
                     .prompt_tokens = rebound.prompt_tokens,
                     .emitted_tokens = rebound.emitted_tokens,
                     .latency_ns = rebound.move_duration ? rebound.move_duration->count() : -1,
                     .mode = mode,
                     .trace_id = std::move(trace_id)},
      deps_.clock->now());
}

}  // namespace leasehold
