/// Faults of one request beside three bystanders, and the same load without the fault.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/property/four_tenants.hpp"

namespace leasehold::testing {

inline constexpr std::uint32_t kBystanders = 3;
inline constexpr std::uint32_t kBystanderTokens = 40;
inline constexpr TokenId kPoisonedToken = 300;  ///< Of the model that the scenes need.

class ThrowingBackend;

/// An engine with three bystanders and a victim. Single-threaded, so a step's CPU time is that of
/// this thread.
class ConfinementScene {
 public:
  struct Options {
    bool is_faulty = true;
    bool reference = true;  ///< Each row is a unit of its own. False: the CPU backend.
    std::uint32_t bystander_tokens = kBystanderTokens;
  };
  ConfinementScene(const std::string& model, const Options& options);
  std::uint32_t bystander_tokens() const { return bystander_tokens_; }

  PromptRequest victim(const std::string& id = "victim", std::uint32_t tokens = kBystanderTokens);
  /// Submits a request during the run; its CPU time counts for the step that follows.
  Result<void> submit(const PromptRequest& request);
  /// Throws while the token of one of the victim's running requests is drawn.
  void throw_at_victim();

  const Completed& end_of(const std::string& id);
  void check_error(const std::string& id, Errc code);

  ThrowingBackend* backend = nullptr;
  EngineRig rig;
  LeaseId lease;                ///< Of the victim.
  std::vector<LeaseId> leases;  ///< More of it.
  std::size_t count = 0;        ///< A case's own.
  const bool is_faulty;
  bool lends_victim = false;  ///< Otherwise the victim's leases do not grow.

  /// Since the last call: the CPU time of submits and steps, outside the bookkeeping of the rig.
  double take_cpu_ns() { return std::exchange(cpu_ns_, 0.0) + rig.take_step_cpu_ns(); }

 private:
  std::uint32_t bystander_tokens_;
  double cpu_ns_ = 0;
};

/// A fault of the victim. The functions also make the load without it, when `is_faulty` is false.
struct Misfortune {
  std::string name;  ///< A key in reports.
  std::string what;
  std::function<void(ConfinementScene&)> begin = [](ConfinementScene&) {};
  std::function<void(ConfinementScene&, std::uint32_t)> before_step = [](ConfinementScene&,
                                                                         std::uint32_t) {};
  std::function<void(ConfinementScene&)> check = [](ConfinementScene&) {};  ///< Of the fault.
};

std::vector<Misfortune> misfortunes();

/// What the bystanders saw.
struct BystanderRun {
  /// The step and the token of each event, by bystander.
  std::vector<std::vector<std::pair<std::uint32_t, TokenId>>> timeline;
  std::vector<double> gaps_us;  ///< CPU time between two tokens of a bystander.
  std::uint64_t units = 0;      ///< Until the last token of a bystander.
};

/// Runs the bystanders, with the fault or with its load alone, until all requests have ended.
BystanderRun run_bystanders(ConfinementScene& scene, const Misfortune& misfortune);

}  // namespace leasehold::testing
