/// Keeps the streams of requests that outlive their connection: the generated messages and the
/// reader of each.
///
///   generating ──end──► ended ──kResultGrace──► forgotten
///        └── kResultGrace without a reader, or no memory for its tokens ──► abandoned
///
/// A stream keeps every token from position 0 on. Its reader, a connection, gets the tokens in
/// order from the position that it requests. Unread tokens wait here and not in the connection's
/// output, so a reader that stalls only pauses the stream. When another reader attaches, the
/// earlier one gets RequestIdConflict. A reader reads under its own lease, which need not be the
/// text's lease: when the reader's lease is revoked, the reader gets Revoked, and the text
/// continues.
///
/// Tenants share the memory (common/fair_shares.hpp). When a tenant's share is full, its oldest
/// ended stream is dropped first. The reader of a stream that is dropped before its end gets
/// QueueFull.
///
/// Threads: that of the tenants' sockets. Lifetime: the io_context and the clock outlive the
/// object.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/clock.hpp"
#include "common/fair_shares.hpp"
#include "ipc/control/messages.hpp"
#include "ipc/control/transport/peer.hpp"
#include "ipc/segment/lease_word.hpp"

namespace leasehold {

/// Equal for two submissions of one request (RequestParser).
using BodyDigest = std::array<std::byte, 32>;

class ResumableStreams {
 public:
  static constexpr Duration kResultGrace = std::chrono::seconds(60);
  /// Approximate limit for all tenants together.
  static constexpr std::size_t kMaxBytes = 64 << 20;
  /// A stream pauses while its reader has more unread output than this.
  static constexpr std::size_t kMaxQueuedBytes = 64 << 10;
  /// Tokens that a stream sends before other streams get a turn.
  static constexpr std::uint32_t kTurnTokens = 64;

  struct Stream {
    BodyDigest body{};
    LeaseId lease{};  ///< The lease under which the text runs, or ran last.
    std::optional<std::int64_t> asked_at_unix_s;  ///< Time of the first submission.
    wire::RequestSubmitted submitted;
    std::vector<wire::TokenEmitted> tokens;  ///< By position.
    std::optional<wire::RequestCompleted> end;
    /// The text ended without an interruption, or was stopped by an operator or its owner. A new
    /// submission of an interrupted text generates the rest.
    bool is_complete = false;
  };
  /// Called when the engine must end a request that has no reader.
  using OnAbandoned = std::function<void(const RequestId& engine_request_id)>;
  /// Called when a connection stops reading a text that continues, because the reader's lease has
  /// ended.
  using OnReaderEnded = std::function<void(const RequestId& engine_request_id)>;
  /// Returns the present state of a lease; a lease past its deadline is not Live.
  using WordOf = std::function<LeaseWord(LeaseId)>;
  struct Reader {
    std::weak_ptr<control::Peer> peer;
    LeaseId lease{};  ///< The lease whose token the peer showed for this stream.
  };

  ResumableStreams(boost::asio::io_context& io, const Clock& clock, WordOf word_of,
                   OnAbandoned on_abandoned, OnReaderEnded on_reader_ended);

  /// Begins a stream without a reader and without an expiry; the caller then calls `attach` or
  /// `detach`. Replaces an ended stream of the same id. Errors: QueueFull when the tenant's share
  /// has no room for the stream. After an error the earlier stream is unchanged.
  Result<void> begin(const RequestId& engine_request_id, Stream stream);
  /// Returns null for an unknown id. Valid until the next call.
  const Stream* find(const RequestId& engine_request_id) const;
  /// Checks whether the connection that began the stream may read it. Errors: RequestIdConflict
  /// when another connection has read the stream, QueueFull when the stream was dropped for lack of
  /// room.
  Result<void> check_first_reader(const RequestId& engine_request_id) const;

  /// Sets the reply to the submission, which later readers get, too. Does nothing for an unknown
  /// id.
  void accepted(const RequestId& engine_request_id, const wire::RequestSubmitted& submitted);
  /// Adds the next token. Precondition: the position follows the last one. When there is no room,
  /// the stream is abandoned.
  void add(const RequestId& engine_request_id, wire::TokenEmitted token);
  /// Adds the end. `is_complete`: see Stream.
  void end(const RequestId& engine_request_id, wire::RequestCompleted end, bool is_complete);
  void forget(const RequestId& engine_request_id);

  /// Makes `reader` the reader of the stream: its peer gets every position from `from` on, and the
  /// end.
  void attach(const RequestId& engine_request_id, Reader reader, std::uint32_t from);
  /// Removes the stream's reader. The stream is kept for kResultGrace.
  void detach(const RequestId& engine_request_id);
  /// Sets the reader's lease after the reader moved the text to that lease. Does nothing when the
  /// stream has another reader.
  void read_under(const RequestId& engine_request_id, const Reader& reader);
  /// Records that the text was moved to `lease`.
  void moved(const RequestId& engine_request_id, LeaseId lease);
  /// Records the last word of a fenced lease, because its slot may get another lease. Also ends the
  /// readers under this lease whose streams have no unsent token.
  void lease_ended(LeaseId lease, LeaseWord word);

  /// Removes the expired streams. Called by a timer.
  void forget_expired();

 private:
  struct Kept {
    Stream stream;
    std::size_t bytes = 0;
    Reader reader;
    std::optional<LeaseWord> lease_word{};  // last word of the reader's lease, once it is fenced
    bool was_attached = false;
    std::uint32_t next = 0;              // next position to send to the reader
    bool end_is_sent = true;             // the reader has got the end, or no reader is there
    std::optional<TimePoint> expires{};  // set while the stream has ended or has no reader
  };
  using Streams = std::map<RequestId, Kept>;
  using Expiries = std::set<std::pair<TimePoint, RequestId>>;

  void send(Streams::iterator stream);
  LeaseWord word_of_reader(const Kept& kept) const;
  bool may_read(const Kept& kept) const;
  void end_reader(Streams::iterator stream);
  bool make_room(const TenantId& tenant, const RequestId* kept = nullptr);
  bool has_room_for(const RequestId& engine_request_id, std::size_t bytes);
  void abandon(Streams::iterator stream);
  void erase(Streams::iterator stream, const Error& why);
  void set_expiry(Streams::iterator stream, std::optional<TimePoint> expires);
  void dismiss_reader(Kept& kept, const wire::RequestCompleted& end);
  void dismiss_reader(Kept& kept, const Error& why);
  void send_paused_later(Duration delay);
  void await_expiry();

  const Clock* clock_;
  WordOf word_of_;
  OnAbandoned on_abandoned_;
  OnReaderEnded on_reader_ended_;
  boost::asio::steady_timer pause_timer_;
  boost::asio::steady_timer expiry_timer_;
  bool waits_for_readers_ = false;
  bool waits_for_expiry_ = false;
  Streams streams_;             // by engine_request_id
  std::set<RequestId> paused_;  // streams whose reader has too much unread output
  Expiries expiries_;
  std::map<TenantId, Expiries> ended_;  // no set is empty
  FairShares<TenantId> shares_;         // bytes
};

}  // namespace leasehold
