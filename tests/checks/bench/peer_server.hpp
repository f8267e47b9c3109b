/// llama.cpp's `llama-server` on a port of 127.0.0.1.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "common/machine/child_process.hpp"
#include "common/result.hpp"
#include "tests/checks/peer/peer_programs.hpp"

namespace leasehold::bench {

inline constexpr const char* kPeerServer = "llama-server";

/// Returns a port of 127.0.0.1 that was free a moment ago. Errors: SystemError.
Result<std::uint16_t> free_port(boost::asio::io_context& io);

struct PeerServerConfig {
  std::string model_path;
  std::uint32_t slots = 1;         ///< Streams that the server serves at the same time.
  std::uint32_t slot_context = 1;  ///< Tokens per slot, prompt and answer.
  std::uint32_t threads = 0;       ///< 0: the server's default.
};

/// Lifetime: the destructor ends the process. Threads: one.
class PeerServer {
 public:
  /// Starts the server and waits at most two minutes until its health endpoint answers with 200.
  /// Errors: ConnectionLost, with the end of its log, if the process ends; TimedOut; those of
  /// Child::start.
  static Result<PeerServer> start(boost::asio::io_context& io, const PeerPrograms& programs,
                                  const PeerServerConfig& config);

  std::uint16_t port() const { return port_; }
  pid_t pid() const { return child_.pid(); }
  /// The server's program and arguments.
  const std::string& command() const { return command_; }

 private:
  PeerServer(Child child, std::uint16_t port, std::string command)
      : child_(std::move(child)), port_(port), command_(std::move(command)) {}
  Result<void> await_health(boost::asio::io_context& io, const PeerPrograms& programs);

  Child child_;
  std::uint16_t port_;
  std::string command_;
};

}  // namespace leasehold::bench
