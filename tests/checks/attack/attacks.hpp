/// The attacks of tenants and of users without a lease. Each attack is bounded in connections,
/// bytes and time.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/random.hpp"
#include "tests/checks/attack/raw_peer.hpp"

namespace leasehold::attack {

struct Target {
  std::string broker_socket;
  std::string worker_socket;
  /// The tenant whose leases the attacker uses; empty for a user without a lease.
  std::string tenant;
  std::string http_socket;  ///< Socket of the worker's HTTP server; empty: do not attack it.
  std::string api_key;      ///< The tenant's API key at the HTTP server.
};

/// One run of an attack.
struct Run {
  const Target& target;
  SeededRandom& random;
  Outcome& outcome;
  TimePoint until;
};

struct Attack {
  std::string_view name;
  bool needs_tenant = false;
  /// True if the attacker must be another user than the broker's: a broker bounds what users do,
  /// but takes its own user for an operator.
  bool needs_other_user = false;
  bool needs_http = false;
  void (*run)(Run& run) = nullptr;
};

/// Returns all attacks.
std::span<const Attack> attacks();

/// What an attacker can do.
struct Attacker {
  bool is_tenant = false;
  bool has_own_user = false;
  bool has_http = false;
};
std::vector<Attack> attacks_of(const Attacker& attacker, std::span<const std::string> without);

/// A lease, and the connection that holds it.
struct HeldLease {
  RawPeer broker;
  std::string token;
};
/// Acquires a lease. Returns nothing when the broker refuses or does not answer in time.
std::optional<HeldLease> acquire(Run& run);

// Attacks on a worker.
void send_long_lines(Run& run);
void send_many_requests(Run& run);
void fill_many_leases(Run& run);
void send_long_ids(Run& run);
void read_no_stream(Run& run);
void send_grammar_bombs(Run& run);
void send_schema_bombs(Run& run);
void forge_tokens(Run& run);
void storm_worker(Run& run);
void send_long_lines_as_stranger(Run& run);
void stay_silent_at_worker(Run& run);
void guess_tokens(Run& run);

// Attacks on a worker's HTTP server.
void send_endless_framing(Run& run);
void send_expensive_bodies(Run& run);

// Attacks on a broker.
void acquire_and_release(Run& run);
void forge_tokens_at_broker(Run& run);
void read_no_answer_of_broker(Run& run);
void storm_broker(Run& run);
void send_long_lines_to_broker(Run& run);
void stay_silent_at_broker(Run& run);

/// Connects and disconnects until the time ends; half of the connections send half a call.
void storm(const std::string& path, Run& run);

}  // namespace leasehold::attack
