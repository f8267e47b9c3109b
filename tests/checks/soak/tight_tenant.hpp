/// A tenant whose requests together need more blocks than it may hold, so that the worker preempts
/// and swaps them.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ipc/client/lease_holder.hpp"
#include "ipc/client/timers.hpp"
#include "ipc/client/worker_stream.hpp"
#include "tests/checks/runner/record.hpp"

namespace leasehold::soak {

/// Runs four requests under one lease, releases it, and acquires the next one. A failed request is
/// given up and submitted again under the next lease.
///
/// Lifetime: the destructor closes the connections, which ends the lease. Threads: one.
class TightTenant {
 public:
  static constexpr const char* kName = "tight";
  static constexpr std::uint32_t kRequests = 4;
  /// KV blocks of the tenant, enough for two requests.
  static constexpr std::uint32_t kBlocks = 24;

  /// `max_tokens`: tokens of each text. `undisturbed`: the texts by number, or empty.
  TightTenant(std::string broker_socket, std::uint32_t max_tokens,
              std::vector<std::vector<std::int32_t>> undisturbed);
  ~TightTenant();

  /// Performs the next steps without waiting. Starts requests only if `starts`.
  void poll(bool starts);
  bool is_idle() const { return streams_.empty() && !acquiring_; }

  /// The texts that ended since the last call.
  std::vector<runner::Text> take_texts() { return std::exchange(texts_, {}); }
  /// Preemptions that moved blocks to swap.
  std::uint64_t swaps() const { return swaps_; }

 private:
  void acquire();
  void submit(const wire::LeaseAcquired& lease);
  client::WorkerStream::Handlers handlers_of(std::uint32_t number);
  void end(std::uint32_t number, bool is_complete);
  void drop_lease();

  std::string broker_socket_;
  std::uint32_t max_tokens_;
  std::vector<std::vector<std::int32_t>> undisturbed_;
  boost::asio::io_context io_;
  client::AsioTimers timers_{io_};
  std::shared_ptr<client::LeaseHolder> holder_;
  /// Streams of the current lease, including ended ones.
  std::vector<std::shared_ptr<client::WorkerStream>> streams_;
  std::vector<runner::Text> running_;  ///< The texts in progress, by number.
  std::uint32_t open_ = 0;
  bool acquiring_ = false;
  TimePoint retry_at_;
  std::vector<runner::Text> texts_;
  std::uint64_t swaps_ = 0;
};

}  // namespace leasehold::soak
