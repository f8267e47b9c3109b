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
#include "tests/checks/soak/history.hpp"

namespace leasehold::soak {

/// Four requests run under one lease at a time; then it is released, and the next one is acquired.
/// What fails is given up and tried again with the next lease.
///
/// Lifetime: its connections close with it, which ends its lease. Threads: one.
class TightTenant {
 public:
  static constexpr const char* kName = "tight";
  static constexpr std::uint32_t kRequests = 4;
  /// Two requests fit.
  static constexpr std::uint32_t kBlocks = 24;

  /// `max_tokens`: of each text.
  TightTenant(std::string broker_socket, std::uint32_t max_tokens);
  ~TightTenant();

  /// Does what is due, without waiting. Starts requests only if `starts`.
  void poll(bool starts);
  bool is_idle() const { return streams_.empty() && !acquiring_; }

  /// The texts that ended since the last call.
  std::vector<TightText> take_texts() { return std::exchange(texts_, {}); }
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
  boost::asio::io_context io_;
  client::AsioTimers timers_{io_};
  std::shared_ptr<client::LeaseHolder> holder_;
  std::vector<std::shared_ptr<client::WorkerStream>> streams_;  ///< Of the lease, also ended ones.
  std::vector<TightText> running_;                              ///< By number.
  std::uint32_t open_ = 0;
  bool acquiring_ = false;
  TimePoint retry_at_;
  std::vector<TightText> texts_;
  std::uint64_t swaps_ = 0;
};

}  // namespace leasehold::soak
