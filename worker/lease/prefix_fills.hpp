/// Fills shared leases with published text, and answers the broker's `prefix.fill` calls.
///
/// Threads: `fill` on the I/O thread, `report_filled` from any. Lifetime: everything in
/// Dependencies outlives it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <map>

#include "ipc/control/transport/peer.hpp"
#include "worker/engine/engine_loop.hpp"

namespace leasehold {

class PrefixFills {
 public:
  struct Dependencies {
    boost::asio::io_context* io = nullptr;
    EngineLoop* loop = nullptr;
    boost::asio::any_io_executor parser;  ///< Runs `encode`.
    /// Tokenizes a text like a prompt.
    std::function<Result<std::vector<TokenId>>(const std::string& text)> encode;
  };
  explicit PrefixFills(Dependencies dependencies) : deps_(std::move(dependencies)) {}

  /// Answers once the engine has computed the text. Errors: BadRequest for a malformed message.
  Result<void> fill(const control::Json& body, control::Responder& respond);

  /// Answers the calls that requested these fills.
  void report_filled(std::vector<PrefixFilled> filled);

 private:
  void queue(LeaseId lease, std::vector<TokenId> text, RequestAdapter adapter,
             control::Responder respond);
  void answer(const PrefixFilled& filled);

  Dependencies deps_;
  struct Fill {
    control::Responder respond;
    std::uint32_t tokens = 0;
  };
  std::map<LeaseId, Fill> fills_;  // unanswered calls; I/O thread
};

}  // namespace leasehold
