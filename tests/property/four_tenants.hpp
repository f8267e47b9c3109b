/// Four tenants in one engine, stopped before a step that mixes decode and prefill rows.
#pragma once

#include <array>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/engine_rig.hpp"
#include "tests/support/unit_watch.hpp"

namespace leasehold::testing {

/// The backends that every property is tested on. `threads` 0 is the reference backend; those from
/// kCuda on run on a GPU, launch by launch or with graphs.
struct BackendUnderTest {
  static constexpr std::uint32_t kCuda = 200;
  static constexpr std::uint32_t kCudaGraphs = 201;

  std::uint32_t threads = 1;
  std::uint32_t speculate = 0;  ///< Of SchedulerLimits.
  bool drafts = false;          ///< The bundled model proposes.
  bool is_cuda() const { return threads >= kCuda; }
  RigOptions options(KvType kv_type = KvType::F16) const;
};
std::ostream& operator<<(std::ostream& to, const BackendUnderTest& backend);

/// The CUDA backends; none if there is neither a GPU nor the fake driver.
const std::vector<std::uint32_t>& cuda_backends();
std::vector<std::uint32_t> with_cuda(std::vector<std::uint32_t> others);

/// Texts of different lengths from the model's training vocabulary.
const std::vector<std::string>& prompts();

using Logits = std::vector<float>;
using Run = std::vector<Logits>;  // one entry per emitted token

bool same_bits(const Run& a, const Run& b);
/// Appends the request's logits of the last step, if it had any.
void append_last_logits(const EngineRig& rig, const std::string& id, Run& run);

/// Runs a request of tenant t for some steps, revokes its lease, and submits it with its tokens
/// under a new lease. Returns what was submitted.
PromptRequest rebind_after(EngineRig& rig, PromptRequest request, std::uint32_t steps);

class FourTenants {
 public:
  static constexpr std::uint32_t kTenants = 4;
  using Tokens = std::array<std::vector<TokenId>, kTenants>;

  /// A whole run in which nothing is revoked.
  struct Undisturbed {
    std::vector<WatchedUnit> units;  ///< Of the mixed step.
    Tokens after_step;               ///< After the mixed step.
    Tokens at_end;
  };
  static constexpr std::uint32_t kLate = 3;  ///< Its prompt is prefilled in the mixed step.

  explicit FourTenants(RigOptions options);

  /// Grants new leases; tenants 0 to 2 emit two tokens, tenant 3 is about to be admitted.
  void begin();
  /// Runs one step; `act` runs at its unit `at`.
  Result<StepReport> watched_step(std::size_t at = UnitWatch::kNever,
                                  std::function<void()> act = {});
  /// Drops everything, so that `begin` can be called again.
  void end();
  Undisturbed run_undisturbed();
  /// Checks that the thread of the act runs nothing more for `mask`, and any other thread at most
  /// its current unit.
  void check_units_after_act(SequenceMask mask) const;
  /// The tenant's sequence in the next step: sequences are in the order of their admission, and
  /// tenants are admitted by what they were served before.
  SequenceMask mask_of(std::uint32_t tenant) const;

  static std::string request_id(std::uint32_t tenant) { return "r" + std::to_string(tenant); }
  LeaseId lease(std::uint32_t tenant) const { return leases_[tenant]; }
  PromptRequest request(std::uint32_t tenant) const;
  RequestOutcome& outcome(std::uint32_t tenant) { return rig.outcome(request_id(tenant)); }
  Tokens tokens();

  UnitWatch watch;
  EngineRig rig;

 private:
  std::array<LeaseId, kTenants> leases_;
};

}  // namespace leasehold::testing
