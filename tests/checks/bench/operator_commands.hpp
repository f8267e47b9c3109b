/// Runs commands as brokerctl does, in this process and on one connection. Threads: one.
#pragma once

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "common/clock.hpp"
#include "ipc/control/transport/client.hpp"
#include "tools/brokerctl/run.hpp"

namespace leasehold::bench {

class OperatorCommands {
 public:
  /// `call_clock_ns`: measures each call; empty: none is measured. Errors: those of
  /// Client::connect.
  static Result<OperatorCommands> connect(const std::string& socket,
                                          std::function<double()> call_clock_ns = {}) {
    return OperatorCommands(TRY(control::Client::connect(socket)), std::move(call_clock_ns));
  }

  /// Returns what the command prints. Errors: those of brokerctl::run.
  Result<std::string> run(const brokerctl::Verb& verb) {
    calls_ = 0;
    longest_call_ns_ = 0;
    std::ostringstream out;
    const brokerctl::Dependencies dependencies{
        .call = [this](std::string_view method,
                       const wire::Json& params) { return call(method, params); },
        .wait =
            [](Duration duration) {
              std::this_thread::sleep_for(duration);
              return true;
            },
        .clock = &clock_,
        .out = &out};
    TRY(brokerctl::run({.verb = verb}, dependencies));
    return std::move(out).str();
  }

  // Of the last command.
  double calls() const { return calls_; }
  double longest_call_ns() const { return longest_call_ns_; }

 private:
  OperatorCommands(control::Client client, std::function<double()> call_clock_ns)
      : client_(std::move(client)), call_clock_ns_(std::move(call_clock_ns)) {}

  Result<wire::Json> call(std::string_view method, const wire::Json& params) {
    ++calls_;
    const double begin = call_clock_ns_ ? call_clock_ns_() : 0;
    auto reply = client_.call(std::string(method), {.body = params, .fds = {}});
    if (call_clock_ns_) longest_call_ns_ = std::max(longest_call_ns_, call_clock_ns_() - begin);
    if (!reply) return std::unexpected(reply.error());
    return std::move(reply->body);
  }

  control::Client client_;
  std::function<double()> call_clock_ns_;
  SystemClock clock_;
  double calls_ = 0;
  double longest_call_ns_ = 0;
};

}  // namespace leasehold::bench
