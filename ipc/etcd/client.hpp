/// A client of etcd: six functions over the JSON gateway of its members.
///
/// Members are tried in turn: a member that refuses, fails or does not answer within `call_timeout`
/// is followed by the next one, for this call or the next. Reads are linearizable: a member that is
/// cut off from its cluster answers none.
///
/// Errors: TimedOut, ConnectionRefused, ConnectionLost (no member could be used); PermissionDenied
/// (certificate, user, password or role); BadRequest, UnknownMethod, DiskFull, SystemError (etcd
/// refuses the call); MalformedMessage, MessageTooLarge (a reply that is not etcd's); QueueFull
/// (kMaxCalls run). Lifetime: the client outlives the run of its coroutines; `close` ends them.
/// Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "ipc/etcd/connection.hpp"
#include "ipc/etcd/etcd_types.hpp"
#include "ipc/etcd/json_gateway.hpp"
#include "ipc/etcd/member_address.hpp"
#include "ipc/http/name_lookup.hpp"
#include "ipc/http/tls/tls.hpp"

namespace leasehold::etcd {

struct Login {
  std::string user;
  std::string password;
};

struct ClientOptions {
  std::vector<MemberAddress> members;  ///< Must not be empty.
  std::optional<Login> login;
  /// The authorities whose certificates encrypted members must have. Empty: no member is encrypted.
  std::optional<http::TlsClient> tls = {};
  /// Timeout of a call to one member, including the connection to it.
  std::chrono::milliseconds call_timeout{1'000};
  std::chrono::milliseconds watch_pause{200};  ///< Pause before a watch that ended begins again.
};

/// Receives what a watch finds, in order, each before the next one is read. So nothing is queued
/// here: etcd holds the changes until a slow receiver is ready.
class WatchReceiver {
 public:
  virtual ~WatchReceiver() = default;

  /// All entries of the range at `revision`. They replace everything received before.
  virtual void on_listing(std::vector<KeyValue> entries, Revision revision) = 0;
  /// Changes, in the order of their revisions; each exactly once.
  virtual void on_events(std::vector<WatchEvent> events) = 0;
  /// The watch begins again at another member. Until the next call changes are not known.
  virtual void on_interrupted(const Error& error) = 0;
};

class Client {
 public:
  static constexpr std::size_t kMaxCalls = 64;  ///< Calls that may run at the same time.
  static constexpr std::size_t kMaxReplyBytes = 4 << 20;
  /// Limit for all pages of a range together.
  static constexpr std::size_t kMaxRangeBytes = 64 << 20;

  /// Precondition: `options.members` is not empty. `io` outlives the client.
  Client(boost::asio::io_context& io, ClientOptions options);
  ~Client();

  /// All entries of the range, at one revision. Repeated at each member. Errors: also
  /// MessageTooLarge for more than kMaxRangeBytes.
  boost::asio::awaitable<Result<RangeReply>> range(KeyRange range);
  /// Executes a transaction. It is never sent twice: after any error other than ConnectionRefused,
  /// PermissionDenied, BadRequest and QueueFull it may have been executed, or be executed later.
  boost::asio::awaitable<Result<TransactionReply>> commit(Transaction transaction);
  /// Lists the range and receives its changes, until `close` or an error that a retry cannot
  /// change: PermissionDenied, UnknownMethod. When etcd has compacted the changes that follow, the
  /// range is listed again. Errors: those; ConnectionLost after `close`.
  boost::asio::awaitable<Result<void>> watch(KeyRange range, WatchReceiver& receiver);
  /// Gets a token with user and password. Calls do so by themselves when they have none or it has
  /// expired. Without a login nothing is done.
  boost::asio::awaitable<Result<void>> authenticate();
  /// Asks one member. Precondition: `member` < number of members. Errors: also BadRequest.
  boost::asio::awaitable<Result<MemberStatus>> status(std::size_t member);
  /// Ends all calls with ConnectionLost, also later ones.
  void close();

 private:
  struct Member {
    MemberAddress address;
    http::NameLookup names;
    http::Endpoints endpoints;
    std::vector<Connection::Ptr> idle;
    bool is_resolving = false;
  };
  struct Reply {
    int status = 0;
    std::string body;
  };
  enum class Repeat : std::uint8_t { Yes, No };
  /// Counts a call while it runs. Shared, because a call that never ends is destroyed with its
  /// io_context, which may be after the client.
  class CountedCall {
   public:
    explicit CountedCall(std::shared_ptr<std::size_t> calls) : calls_(std::move(calls)) {
      ++*calls_;
    }
    ~CountedCall() { --*calls_; }
    CountedCall(const CountedCall&) = delete;
    CountedCall& operator=(const CountedCall&) = delete;

   private:
    std::shared_ptr<std::size_t> calls_;
  };

  template <class T>
  using Awaitable = boost::asio::awaitable<Result<T>>;
  Awaitable<std::string> call(std::string_view target, std::string body, Repeat repeat);
  Awaitable<std::string> call_as_user(Member& member, std::string_view target,
                                      const std::string& body);
  Awaitable<Reply> exchange(Member& member, GatewayRequest request);
  Awaitable<void> authenticate_at(Member& member);
  Awaitable<Connection::Ptr> connect(Member& member);
  Awaitable<void> resolve(Member& member);
  Awaitable<void> follow(const KeyRange& range, WatchReceiver& receiver, Revision& next);
  Awaitable<void> receive_lines(Connection& connection, WatchReceiver& receiver, Revision& next);
  void track(const Connection::Ptr& connection);
  void leave(const Member& member);
  /// True for an error that another member may not have.
  static bool is_of_member(Errc code);
  Member& current() { return *members_[current_]; }

  boost::asio::io_context& io_;
  ClientOptions options_;
  std::vector<std::unique_ptr<Member>> members_;
  std::size_t current_ = 0;
  std::string token_;
  std::shared_ptr<std::size_t> calls_ = std::make_shared<std::size_t>(0);
  std::vector<std::weak_ptr<Connection>> open_;
  std::vector<boost::asio::steady_timer*> pauses_;
  bool is_closed_ = false;
};

}  // namespace leasehold::etcd
