/// What an attacker did, and what came back. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/result.hpp"
#include "ipc/control/messages_common.hpp"

namespace leasehold::attack {

struct Outcome {
  std::uint64_t runs = 0;
  std::uint64_t connections = 0;
  std::uint64_t refused_connections = 0;
  std::uint64_t closed_connections = 0;  ///< By the other end.
  std::uint64_t bytes_sent = 0;
  std::uint64_t tokens = 0;
  /// Replies by error code, "ok" for a result; the ends of streams as "ended REASON"; answers over
  /// HTTP as "HTTP 413".
  std::map<std::string, std::uint64_t> replies;

  void add(const Outcome& other);
  bool operator==(const Outcome&) const = default;
};

/// By the name of the attack.
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

/// Counts one line from a broker or a worker. Of an answer over HTTP the status line counts.
void count_line(Outcome& outcome, std::string_view line);

}  // namespace leasehold::attack
