/// leasehold-gateway as a process, in front of hosts of a test.
#pragma once

#include <string>
#include <vector>

#include "tests/process/http/http_client.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::testing {

class GatewayProcess {
 public:
  /// Listens on a Unix socket unless `arguments` say otherwise, and waits until it is ready.
  /// `fault`: LEASEHOLD_FAULT; empty: none.
  explicit GatewayProcess(const std::vector<std::string>& hosts,
                          std::vector<std::string> arguments = {}, const std::string& fault = {});

  Child& child() { return child_; }
  /// Where it listens: the path of a socket, or "127.0.0.1:PORT".
  const std::string& address() const { return address_; }
  std::string log() const;
  /// The address in a line of its log.
  std::string logged_address(const std::string& before) const;
  HttpReply send(const std::string& request) const;
  /// Waits until `/health` has this status.
  bool has_health(int status) const;
  bool logs(const std::string& text) const;
  /// Waits until it has ended by itself.
  bool has_died() {
    return eventually([&] { return child_.status().has_value(); });
  }
  /// Ends it by SIGTERM. Returns its exit code.
  int stop();

 private:
  TemporaryDirectory directory_;
  Child child_;
  std::string address_;
};

/// A chat for the model of FakeHost.
Json chat(bool stream, const std::string& model = "m");

}  // namespace leasehold::testing
