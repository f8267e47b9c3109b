#include "worker/serve/stream_resumer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "worker/kv/request_ids.hpp"
#include "worker/serve/live_lease.hpp"

namespace leasehold {
namespace {

bool same_tokens(std::span<const wire::TokenEmitted> generated,
                 std::span<const std::int32_t> emitted) {
  const std::size_t n = std::min(generated.size(), emitted.size());
  return std::ranges::equal(generated.first(n), emitted.first(n), {}, &wire::TokenEmitted::token);
}

}  // namespace

Result<void> StreamResumer::check_id(IncomingRequest& incoming) const {
  const RequestId engine_request_id = incoming.engine_request_id();
  wire::RequestSubmit& submit = incoming.submit;
  incoming.delivered = static_cast<std::uint32_t>(submit.emitted.size());
  const bool is_in_use = requests_->find(engine_request_id) != nullptr;
  if (!submit.resumable) {
    if (!is_in_use) return {};
    return fail(Errc::BadRequest, fmt::format("request {} is already running; choose another id",
                                              submit.request_id.value));
  }
  if (!submit.asked_at_unix_s) submit.asked_at_unix_s = std::time(nullptr);
  const auto* stream = streams_->find(engine_request_id);
  const bool is_interrupted = stream != nullptr && stream->end && !stream->is_complete;
  incoming.joins = stream != nullptr && !is_interrupted;
  if (is_in_use && !incoming.joins) {
    return fail(Errc::QueueFull, fmt::format("request {} was submitted before and is being parsed "
                                             "or ended; retry in a moment",
                                             submit.request_id.value));
  }
  if (stream == nullptr) return {};
  const bool has_more = submit.emitted.size() > stream->tokens.size();
  if (!same_tokens(stream->tokens, submit.emitted) || (has_more && incoming.joins))
    return std::unexpected(id_conflict(submit.request_id, "other tokens emitted"));
  incoming.repeats = stream->body;
  submit.asked_at_unix_s = stream->asked_at_unix_s;
  if (incoming.joins) return {};
  for (std::size_t i = submit.emitted.size(); i < stream->tokens.size(); ++i)
    submit.emitted.push_back(stream->tokens[i].token);
  // A client of another process does not know which version of the adapter began the text.
  const std::string& began_under = stream->submitted.adapter_digest;
  if (!stream->tokens.empty() && !began_under.empty()) submit.adapter_digest = began_under;
  return {};
}

/// The stream may have been removed while the parser compared the bodies.
void StreamResumer::join(IncomingRequest repeated, const Result<void>& parsed) {
  if (!parsed) return repeated.respond(std::unexpected(parsed.error()));
  const RequestId engine_request_id = repeated.engine_request_id();
  const auto* stream = streams_->find(engine_request_id);
  if (stream == nullptr || stream->body != repeated.body) {
    return repeated.respond(
        fail(Errc::QueueFull, fmt::format("request {} was just forgotten; submit it again",
                                          repeated.submit.request_id.value)));
  }
  repeated.respond(control::Payload{.body = stream->submitted.to_json()});
  attach(engine_request_id, {repeated.connection, repeated.claim.lease, repeated.delivered});
}

void StreamResumer::resume(const TenantConnection& connection, const control::Json& body,
                           control::Responder respond) {
  const auto message = wire::RequestResume::from_json(body);
  if (!message) return respond(std::unexpected(message.error()));
  const RequestId engine_request_id = to_engine_request_id(*connection.tenant, message->request_id);
  const auto* stream = streams_->find(engine_request_id);
  if (stream == nullptr) {
    return respond(fail(Errc::UnknownRequest,
                        fmt::format("no resumable request {} of tenant {} is kept; submit it again",
                                    message->request_id.value, connection.tenant->value)));
  }
  // A text that was interrupted by the end of the connection's lease may be read to its end.
  const bool ended_with_lease =
      stream->end && !stream->is_complete && stream->lease == connection.lease;
  const auto live = check_live(*table_, connection.lease, clock_->now());
  if (!ended_with_lease && !live) return respond(std::unexpected(live.error()));
  const std::uint64_t from =
      message->after_position ? std::uint64_t{*message->after_position} + 1 : 0;
  if (from > stream->tokens.size()) {
    return respond(
        fail(Errc::BadRequest, fmt::format("after_position is {}, but {} tokens were generated",
                                           *message->after_position, stream->tokens.size())));
  }
  requests_->opened(connection);
  respond(control::Payload{.body = stream->submitted.to_json()});
  attach(engine_request_id, {connection.id, connection.lease, static_cast<std::uint32_t>(from)});
}

void StreamResumer::attach_first(IncomingRequest submitted) {
  const RequestId engine_request_id = submitted.engine_request_id();
  streams_->accepted(engine_request_id, submitted.answer);
  const auto may_read = streams_->check_first_reader(engine_request_id);
  if (!may_read) return submitted.respond(std::unexpected(may_read.error()));
  submitted.respond(control::Payload{.body = submitted.answer.to_json()});
  attach(engine_request_id, {submitted.connection, submitted.claim.lease, submitted.delivered});
}

/// Makes the connection the reader of the stream. The connection may have closed meanwhile. If the
/// stream has ended, a request with its id may be a new submission of another connection, which is
/// still being parsed.
void StreamResumer::attach(const RequestId& engine_request_id, const Reader& reader) {
  const auto* peer = requests_->peer_of(reader.connection);
  if (peer == nullptr) return streams_->detach(engine_request_id);
  const auto* stream = streams_->find(engine_request_id);
  if (stream == nullptr) return;
  if (!stream->end) requests_->attach(engine_request_id, reader.connection);
  streams_->attach(engine_request_id, {*peer, reader.lease}, reader.next_position);
}

void StreamResumer::end_refused(const RequestId& engine_request_id, const Error& error) {
  const auto* stream = streams_->find(engine_request_id);
  if (stream == nullptr) return;
  const bool is_empty = stream->tokens.empty();
  const bool is_stopped = error.code == Errc::RequestCancelled;
  streams_->end(
      engine_request_id,
      wire::RequestCompleted{.request = to_client_request_id(engine_request_id),
                             .reason = std::string(name(error.code)),
                             .emitted_tokens = static_cast<std::uint32_t>(stream->tokens.size()),
                             .scope = std::string(name(error.scope)),
                             .detail = error.detail},
      is_stopped);
  if (is_empty) streams_->forget(engine_request_id);
}

}  // namespace leasehold
