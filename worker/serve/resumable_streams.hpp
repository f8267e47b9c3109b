/// The streams of requests that outlive their connection: what was generated, and who reads it.
///
///   generating ──end──► ended ──kResultGrace──► forgotten
///        └── kResultGrace without a reader, or no memory for its tokens ──► abandoned
///
/// A stream keeps every token from position 0 on. Its reader, a connection, gets them in order from
/// the position it asks for. What it does not read yet waits here and not in its output, so a
/// reader that stalls only pauses. Another reader takes the stream over, and the one before gets
/// RequestIdConflict. A reader reads under a lease of its own, which need not be that of the text:
/// once it was revoked, the reader gets Revoked, and the text goes on.
///
/// Tenants share the memory (common/fair_shares.hpp). A tenant without room loses its oldest ended
/// stream first. A reader of a stream that is lost before its end gets QueueFull.
///
/// Threads: that of the tenants' sockets. Lifetime: the io_context and the clock outlive it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
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
#include "ipc/control/peer.hpp"
#include "ipc/segment/lease_word.hpp"
#include "worker/serve/body_digest.hpp"

namespace leasehold {

class ResumableStreams {
 public:
  static constexpr Duration kResultGrace = std::chrono::seconds(60);
  static constexpr std::size_t kMaxBytes = 64 << 20;  ///< Of all tenants, approximate.
  /// A reader with more unread output gets no more of a stream.
  static constexpr std::size_t kMaxQueuedBytes = 64 << 10;
  /// Tokens that a stream sends before others have a turn.
  static constexpr std::uint32_t kTurnTokens = 64;

  struct Stream {
    BodyDigest body{};
    LeaseId lease{};                              ///< Under which the text runs, or ran last.
    std::optional<std::int64_t> asked_at_unix_s;  ///< Of the first submission.
    wire::RequestSubmitted submitted;
    std::vector<wire::TokenEmitted> tokens;  ///< By position.
    std::optional<wire::RequestCompleted> end;
    /// Nothing interrupted the text. A new submission of an interrupted one generates the rest.
    bool is_complete = false;
  };
  /// The engine must end this request: it has no reader.
  using OnAbandoned = std::function<void(const RequestId& engine_request_id)>;
  /// The connection that read a text that goes on no longer does, because its lease has ended.
  using OnReaderEnded = std::function<void(const RequestId& engine_request_id)>;
  /// The present state of a lease; one past its deadline is not Live.
  using WordOf = std::function<LeaseWord(LeaseId)>;
  struct Reader {
    std::weak_ptr<control::Peer> peer;
    LeaseId lease{};  ///< Whose token the peer showed for this stream.
  };

  ResumableStreams(boost::asio::io_context& io, const Clock& clock, WordOf word_of,
                   OnAbandoned on_abandoned, OnReaderEnded on_reader_ended);

  /// Begins a stream without a reader, and without an expiry: `attach` or `detach` follows.
  /// Replaces an ended one of the same id. Errors: QueueFull when the tenant's share has no room
  /// for it. After an error the earlier stream is unchanged.
  Result<void> begin(const RequestId& engine_request_id, Stream stream);
  /// Null for an unknown id. Valid until the next call.
  const Stream* find(const RequestId& engine_request_id) const;
  /// Whether the connection that began the stream may read it. Errors: RequestIdConflict when
  /// another one has read it, QueueFull when it was lost for lack of room.
  Result<void> check_first_reader(const RequestId& engine_request_id) const;

  /// Adds the next token. Precondition: its position follows. Without room the stream is
  /// abandoned.
  void add(const RequestId& engine_request_id, wire::TokenEmitted token);
  /// Adds the end. `is_complete`: as in Stream.
  void end(const RequestId& engine_request_id, wire::RequestCompleted end, bool is_complete);
  void forget(const RequestId& engine_request_id);

  /// The peer gets every position from `from` on, and the end.
  void attach(const RequestId& engine_request_id, Reader reader, std::uint32_t from);
  /// The stream loses its reader, and is kept for a while.
  void detach(const RequestId& engine_request_id);
  /// The reader showed a token of this lease, to which it has moved the text. Does nothing when the
  /// stream has another reader by now.
  void read_under(const RequestId& engine_request_id, const Reader& reader);
  /// The text has moved.
  void moved(const RequestId& engine_request_id, LeaseId lease);
  /// The lease is fenced, with this word, which its slot may have lost by now. Also ends what is
  /// read under it and has no token to send.
  void lease_ended(LeaseId lease, LeaseWord word);

  /// Forgets the streams whose time is over. A timer calls it.
  void forget_expired();

 private:
  struct Kept {
    Stream stream;
    std::size_t bytes = 0;
    Reader reader;
    std::optional<LeaseWord> lease_word{};  // of the reader's lease, once it is fenced
    bool was_attached = false;
    std::uint32_t next = 0;              // position for the reader
    bool end_is_sent = true;             // to the reader
    std::optional<TimePoint> expires{};  // while ended, or without a reader
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
  std::set<RequestId> paused_;  // their reader has too much unread
  Expiries expiries_;
  std::map<TenantId, Expiries> ended_;  // no set is empty
  FairShares<TenantId> shares_;         // bytes
};

}  // namespace leasehold
