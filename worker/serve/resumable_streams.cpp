#include "worker/serve/resumable_streams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/expects.hpp"
#include "worker/kv/request_ids.hpp"
#include "worker/schedule/request.hpp"
#include "worker/serve/text_stream.hpp"

namespace leasehold {
namespace {

/// Interval at which the output of stalled readers is checked again.
constexpr Duration kPause = std::chrono::milliseconds(10);

std::size_t size_bytes(const wire::TokenEmitted& token) {
  return sizeof token + token.request.value.size() + token.text.size() +
         token.top_logprobs.size() * sizeof(wire::TokenLogprob);
}

/// Includes the memory that the stream will need for its end.
std::size_t size_bytes(const ResumableStreams::Stream& stream) {
  constexpr std::size_t kEmpty = 1024;
  std::size_t bytes = kEmpty;
  for (const wire::TokenEmitted& token : stream.tokens) bytes += size_bytes(token);
  return bytes;
}

Error no_room() {
  return {.code = Errc::QueueFull,
          .detail =
              "the tenant's kept tokens fill its share of memory; read faster, then submit the "
              "request again"};
}

Error id_is_reused() {
  return {.code = Errc::RequestIdConflict, .detail = "a new submission uses this request id"};
}

Error waited_too_long() {
  return {.code = Errc::QueueFull,
          .detail =
              "the tokens of this ended text waited a minute for their reader; read faster, "
              "then submit the request again"};
}

Error continued_elsewhere() {
  return {.code = Errc::RequestIdConflict, .detail = "another connection continues this stream"};
}

void notify_end(control::Peer& reader, const wire::RequestCompleted& end) {
  reader.notify(std::string(wire::RequestCompleted::kMethod), {.body = end.to_json()});
}

}  // namespace

ResumableStreams::ResumableStreams(boost::asio::io_context& io, const Clock& clock, WordOf word_of,
                                   OnAbandoned on_abandoned, OnReaderEnded on_reader_ended)
    : clock_(&clock),
      word_of_(std::move(word_of)),
      on_abandoned_(std::move(on_abandoned)),
      on_reader_ended_(std::move(on_reader_ended)),
      pause_timer_(io),
      expiry_timer_(io),
      shares_(kMaxBytes) {}

// ---------------------------------------------------------------------------------------- streams

Result<void> ResumableStreams::begin(const RequestId& engine_request_id, Stream stream) {
  const TenantId tenant = tenant_of(engine_request_id);
  const std::size_t bytes = size_bytes(stream);
  if (!has_room_for(engine_request_id, bytes)) {
    return fail(Errc::QueueFull,
                fmt::format("the tenant's resumable streams take {} bytes, its share of {}; retry "
                            "when one has ended, or submit without 'resumable'",
                            shares_.held_by(tenant), kMaxBytes));
  }
  forget(engine_request_id);
  shares_.take(tenant, bytes);
  streams_.emplace(engine_request_id, Kept{std::move(stream), bytes});
  return {};
}

const ResumableStreams::Stream* ResumableStreams::find(const RequestId& engine_request_id) const {
  const auto found = streams_.find(engine_request_id);
  return found == streams_.end() ? nullptr : &found->second.stream;
}

Result<void> ResumableStreams::check_first_reader(const RequestId& engine_request_id) const {
  const auto found = streams_.find(engine_request_id);
  if (found == streams_.end()) {
    return fail(Errc::QueueFull,
                "the text was lost, because the tenant's resumable streams fill its share of "
                "memory; submit the request again when one has ended");
  }
  if (!found->second.was_attached) return {};
  return std::unexpected(continued_elsewhere());
}

void ResumableStreams::accepted(const RequestId& engine_request_id,
                                const wire::RequestSubmitted& submitted) {
  const auto found = streams_.find(engine_request_id);
  if (found != streams_.end()) found->second.stream.submitted = submitted;
}

void ResumableStreams::add(const RequestId& engine_request_id, wire::TokenEmitted token) {
  const auto found = streams_.find(engine_request_id);
  if (found == streams_.end()) return;
  const TenantId tenant = tenant_of(engine_request_id);
  Kept& kept = found->second;
  expects(token.position == kept.stream.tokens.size(), "tokens are added in order");
  if (!make_room(tenant)) return abandon(found);
  const std::size_t bytes = size_bytes(token);
  shares_.take(tenant, bytes);
  kept.bytes += bytes;
  kept.stream.tokens.push_back(std::move(token));
  send(found);
}

void ResumableStreams::end(const RequestId& engine_request_id, wire::RequestCompleted end,
                           bool is_complete) {
  const auto found = streams_.find(engine_request_id);
  if (found == streams_.end()) return;
  found->second.stream.end = std::move(end);
  found->second.stream.is_complete = is_complete;
  set_expiry(found, clock_->now() + kResultGrace);
  send(found);
}

void ResumableStreams::forget(const RequestId& engine_request_id) {
  const auto found = streams_.find(engine_request_id);
  if (found != streams_.end()) erase(found, id_is_reused());
}

/// Counts the bytes of the stream to be replaced as free.
bool ResumableStreams::has_room_for(const RequestId& engine_request_id, std::size_t bytes) {
  const TenantId tenant = tenant_of(engine_request_id);
  const auto earlier = streams_.find(engine_request_id);
  const std::size_t replaced = earlier == streams_.end() ? 0 : earlier->second.bytes;
  if (replaced > 0) shares_.give_back(tenant, replaced);
  const bool has_room =
      make_room(tenant, &engine_request_id) && shares_.held_by(tenant) + bytes <= kMaxBytes / 2;
  if (replaced > 0) shares_.take(tenant, replaced);
  return has_room;
}

/// Drops ended streams of the tenant, the oldest first, except `kept`. Returns false when the share
/// is full of streams that have not ended.
bool ResumableStreams::make_room(const TenantId& tenant, const RequestId* kept) {
  while (!shares_.may_take_more(tenant)) {
    const auto ended = ended_.find(tenant);
    if (ended == ended_.end()) return false;
    const auto oldest = std::ranges::find_if(ended->second, [kept](const auto& each) {
      return kept == nullptr || each.second != *kept;
    });
    if (oldest == ended->second.end()) return false;
    erase(streams_.find(oldest->second), no_room());
  }
  return true;
}

void ResumableStreams::abandon(Streams::iterator stream) {
  const RequestId engine_request_id = stream->first;
  erase(stream, no_room());
  on_abandoned_(engine_request_id);
}

/// Removes a stream. A reader that has not got the end gets `why`.
void ResumableStreams::erase(Streams::iterator stream, const Error& why) {
  dismiss_reader(stream->second, why);
  set_expiry(stream, std::nullopt);
  shares_.give_back(tenant_of(stream->first), stream->second.bytes);
  paused_.erase(stream->first);
  streams_.erase(stream);
}

// ---------------------------------------------------------------------------------------- readers

void ResumableStreams::attach(const RequestId& engine_request_id, Reader reader,
                              std::uint32_t from) {
  const auto found = streams_.find(engine_request_id);
  expects(found != streams_.end(), "a stream that is known is attached");
  Kept& kept = found->second;
  const auto before = kept.reader.peer.lock();
  if (before && before != reader.peer.lock()) dismiss_reader(kept, continued_elsewhere());
  kept.reader = std::move(reader);
  kept.lease_word.reset();
  kept.was_attached = true;
  kept.next = from;
  kept.end_is_sent = false;
  if (!kept.stream.end) set_expiry(found, std::nullopt);
  send(found);
}

void ResumableStreams::detach(const RequestId& engine_request_id) {
  const auto found = streams_.find(engine_request_id);
  if (found == streams_.end()) return;
  found->second.reader.peer.reset();
  if (!found->second.stream.end) set_expiry(found, clock_->now() + kResultGrace);
}

void ResumableStreams::read_under(const RequestId& engine_request_id, const Reader& reader) {
  const auto found = streams_.find(engine_request_id);
  if (found == streams_.end() || found->second.reader.peer.lock() != reader.peer.lock()) return;
  found->second.reader.lease = reader.lease;
  found->second.lease_word.reset();
}

void ResumableStreams::moved(const RequestId& engine_request_id, LeaseId lease) {
  const auto found = streams_.find(engine_request_id);
  if (found != streams_.end()) found->second.stream.lease = lease;
}

void ResumableStreams::lease_ended(LeaseId lease, LeaseWord word) {
  for (auto stream = streams_.begin(); stream != streams_.end(); ++stream) {
    Kept& kept = stream->second;
    if (kept.reader.lease != lease) continue;
    kept.lease_word = word;
    if (!kept.end_is_sent && !may_read(kept)) end_reader(stream);
  }
}

/// Prefers the kept word, because a slot that has another lease no longer holds the reason for the
/// earlier lease's end.
LeaseWord ResumableStreams::word_of_reader(const Kept& kept) const {
  return kept.lease_word ? *kept.lease_word : word_of_(kept.reader.lease);
}

/// True while the reader's lease allows it to read. A text that was ended by the reader's own lease
/// is read to its end, which reports the revocation. A lease that was released, for example after
/// draining, still allows reading.
bool ResumableStreams::may_read(const Kept& kept) const {
  const bool ends_with_text = kept.reader.lease == kept.stream.lease && !kept.stream.is_complete;
  const LeaseWord word = word_of_reader(kept);
  return ends_with_text || word.state() == LeaseState::Live ||
         word.reason() == RevokeReason::Released;
}

/// Ends the reader whose lease has ended; the text may continue.
void ResumableStreams::end_reader(Streams::iterator stream) {
  Kept& kept = stream->second;
  dismiss_reader(kept, {.request = kept.stream.submitted.request,
                        .reason = std::string(name(CompletionReason::Revoked)),
                        .emitted_tokens = kept.next,
                        .lease = kept.reader.lease,
                        .scope = std::string(name(FailureScope::Tenant)),
                        .revoke_reason = std::string(name(word_of_reader(kept).reason()))});
  detach(stream->first);
  // After the end of the text, its id may belong to a new submission.
  if (!kept.stream.end) on_reader_ended_(stream->first);
}

void ResumableStreams::send(Streams::iterator stream) {
  Kept& kept = stream->second;
  const auto reader = kept.reader.peer.lock();
  if (!reader) return;
  if (!kept.end_is_sent && !may_read(kept)) return end_reader(stream);
  for (std::uint32_t sent = 0; kept.next < kept.stream.tokens.size(); ++kept.next, ++sent) {
    const bool is_stalled = reader->queued_bytes() > kMaxQueuedBytes;
    if (is_stalled || sent == kTurnTokens) {
      paused_.insert(stream->first);
      return send_paused_later(is_stalled ? kPause : Duration::zero());
    }
    notify_token(*reader, kept.stream.tokens[kept.next]);
  }
  if (kept.stream.end && !std::exchange(kept.end_is_sent, true))
    notify_end(*reader, *kept.stream.end);
}

/// Sends `end` to a reader that does not read the stream to its own end.
void ResumableStreams::dismiss_reader(Kept& kept, const wire::RequestCompleted& end) {
  const auto reader = kept.reader.peer.lock();
  if (reader && !std::exchange(kept.end_is_sent, true)) notify_end(*reader, end);
}

void ResumableStreams::dismiss_reader(Kept& kept, const Error& why) {
  dismiss_reader(kept, {.request = kept.stream.submitted.request,
                        .reason = std::string(name(why.code)),
                        .emitted_tokens = kept.next,
                        .scope = std::string(name(FailureScope::Tenant)),
                        .detail = why.detail});
}

void ResumableStreams::send_paused_later(Duration delay) {
  if (std::exchange(waits_for_readers_, true)) return;
  pause_timer_.expires_after(delay);
  pause_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;  // this object may be destroyed
    waits_for_readers_ = false;
    for (const RequestId& each : std::exchange(paused_, {})) {
      if (const auto found = streams_.find(each); found != streams_.end()) send(found);
    }
  });
}

// --------------------------------------------------------------------------------------- expiries

void ResumableStreams::set_expiry(Streams::iterator stream, std::optional<TimePoint> expires) {
  const auto& [id, kept] = *stream;
  if (kept.expires) {
    expiries_.erase({*kept.expires, id});
    const auto ended = ended_.find(tenant_of(id));
    if (ended != ended_.end() && ended->second.erase({*kept.expires, id}) > 0 &&
        ended->second.empty())
      ended_.erase(ended);
  }
  stream->second.expires = expires;
  if (!expires) return;
  expiries_.insert({*expires, id});
  if (kept.stream.end) ended_[tenant_of(id)].insert({*expires, id});
  await_expiry();
}

void ResumableStreams::await_expiry() {
  if (expiries_.empty() || std::exchange(waits_for_expiry_, true)) return;
  const Duration wait = expiries_.begin()->first - clock_->now();
  expiry_timer_.expires_after(std::max(wait, Duration::zero()));
  expiry_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;  // this object may be destroyed
    waits_for_expiry_ = false;
    forget_expired();
    await_expiry();
  });
}

void ResumableStreams::forget_expired() {
  const TimePoint now = clock_->now();
  while (!expiries_.empty() && expiries_.begin()->first <= now) {
    const auto found = streams_.find(expiries_.begin()->second);
    const bool is_generating = !found->second.stream.end;
    const RequestId engine_request_id = found->first;
    erase(found, waited_too_long());
    if (is_generating) on_abandoned_(engine_request_id);
  }
}

}  // namespace leasehold
