/// What the connections of a gateway share. Internal to tools/gateway.
///
/// The owner of what a request uses is its key once a host has accepted that, until then its source
/// address, so that invented keys add no share. Threads: one.
#pragma once

#include <boost/asio/io_context.hpp>
#include <string>

#include "common/fair_bounded_queue.hpp"
#include "common/fair_shares.hpp"
#include "ipc/http/body_rate_limiter.hpp"
#include "ipc/http/http_places.hpp"
#include "ipc/http/known_keys.hpp"
#include "tools/gateway/gateway_metrics.hpp"
#include "tools/gateway/hosts.hpp"
#include "tools/gateway/options.hpp"

namespace leasehold::gateway {

inline constexpr std::size_t kMaxBodyBytes = 512 << 10;  ///< The limit of a worker.

struct Shared {
  /// Bodies that are kept so that they can be sent again. An owner beyond its share has texts that
  /// cannot continue elsewhere.
  static constexpr std::size_t kReplayBytes = 32 << 20;
  /// Bodies that are being read or sent. An owner beyond its share gets QueueFull.
  static constexpr std::size_t kBodyBytes = 64 << 20;
  /// Bytes of answers that clients have not read. An owner beyond its share loses the connection.
  static constexpr std::size_t kUnreadBytes = 64 << 20;
  static constexpr std::size_t kMaxLoggedKeys = 1024;

  boost::asio::io_context& io;
  const Clock& clock;
  const Options& options;
  Hosts& hosts;
  GatewayMetrics metrics = {};
  http::Places places{};
  http::KnownKeys known_keys{};
  /// Hosts and keys that were logged: the host lacks a key that another one has accepted.
  FairBoundedQueue<TenantId, std::string> logged_missing_keys{kMaxLoggedKeys};
  http::BodyRateLimiter body_rate_limiter{};
  FairShares<TenantId> bodies{kBodyBytes};
  FairShares<TenantId> replays{kReplayBytes};
  FairShares<TenantId> unread{kUnreadBytes};
  std::uint32_t answering = 0;  ///< Requests that were read, and are not answered yet.
  bool is_draining = false;
  bool is_cut = false;  ///< The drain timeout has passed: each request ends with an error.

  TenantId owner_of(std::string_view key, const http::PeerAddress& client) const {
    if (!key.empty() && known_keys.contains(key))
      return {"key:" + api_key_id(hash_of_api_key(key)).value};
    return {http::source_of(client)};
  }
};

/// Counts a request as one that is answered while this object exists.
class Answering {
 public:
  explicit Answering(Shared& shared) : shared_(shared) { ++shared_.answering; }
  ~Answering() { --shared_.answering; }
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

 private:
  Shared& shared_;
};

/// Bytes of an owner's share while this object exists.
class ShareOf {
 public:
  ShareOf(FairShares<TenantId>& shares, TenantId owner)
      : shares_(shares), owner_(std::move(owner)) {}
  ~ShareOf() { set(0); }
  ShareOf(const ShareOf&) = delete;
  ShareOf& operator=(const ShareOf&) = delete;

  /// Returns false, and takes nothing, if the owner would then hold more than what is free.
  bool take(std::size_t bytes) {
    set(0);
    const std::size_t held = shares_.held_by(owner_);
    if (held + 2 * bytes > shares_.capacity() - shares_.taken()) return false;
    set(bytes);
    return true;
  }

 private:
  void set(std::size_t bytes) {
    if (bytes_ > 0) shares_.give_back(owner_, bytes_);
    if (bytes > 0) shares_.take(owner_, bytes);
    bytes_ = bytes;
  }

  FairShares<TenantId>& shares_;
  TenantId owner_;
  std::size_t bytes_ = 0;
};

}  // namespace leasehold::gateway
