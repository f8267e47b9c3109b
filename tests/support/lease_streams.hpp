/// Requests under one lease of a tenant, over one connection, and what the worker sends about them.
///
/// Errors: exceptions. Threads: one.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ipc/control/transport/client.hpp"
#include "ipc/control/transport/peer.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {

class LeaseStreams {
 public:
  /// Acquires the lease.
  LeaseStreams(const System& system, const std::string& tenant);

  /// Requests of equal number and length get equal texts. `emitted`: the text so far, if another
  /// worker began it; `tokens` then has what follows.
  void submit(std::uint32_t number, std::uint32_t max_tokens,
              std::vector<std::int32_t> emitted = {});
  /// Reads until that many requests have ended; throws when nothing comes for a minute.
  void wait_for_ends(std::size_t count);
  /// Reads what has come.
  void read_arrived() { io_.poll(); }
  LeaseId lease() const { return lease_; }

  std::map<std::string, std::vector<std::int32_t>> tokens;
  std::map<std::string, std::string> ends;  ///< The reason by request.
  int preemptions = 0;
  int swaps = 0;  ///< Preemptions that moved blocks to swap.

 private:
  void note(const std::string& method, const control::Json& body);

  std::map<std::string, std::size_t> begun_;  ///< Tokens of earlier workers, by request.
  control::Client broker_;
  boost::asio::io_context io_;
  LeaseId lease_;
  std::string token_;
  std::shared_ptr<control::Peer> worker_;
};

}  // namespace leasehold::testing
