/// What an attacker sent, and the replies that it got. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/result.hpp"
#include "ipc/control/messages/common.hpp"

namespace leasehold::attack {

struct Outcome {
  std::uint64_t runs = 0;
  std::uint64_t connections = 0;
  std::uint64_t refused_connections = 0;
  std::uint64_t closed_connections = 0;  ///< Connections that the other end closed.
  std::uint64_t bytes_sent = 0;
  std::uint64_t tokens = 0;
  /// Number of replies by kind: the error code, "ok" for a result, "ended REASON" for the end of a
  /// stream, "HTTP 413" for an answer over HTTP.
  std::map<std::string, std::uint64_t> replies;

  void add(const Outcome& other);
  bool operator==(const Outcome&) const = default;
};

/// The outcome of each attack, by name.
using Outcomes = std::map<std::string, Outcome>;

/// What one attacker prints at its end.
struct AttackerReport {
  std::int64_t cpu_ns = 0;
  Outcomes attacks;
};

wire::Json to_json(const Outcome& outcome);
wire::Json to_json(const AttackerReport& report);

/// Errors: MalformedMessage.
Result<AttackerReport> attacker_report_from_text(const std::string& text);

/// Counts one line from a broker or a worker. For an answer over HTTP, that is the status line.
void count_line(Outcome& outcome, std::string_view line);

}  // namespace leasehold::attack
