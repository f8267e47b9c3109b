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
  bool is_cuda() const { return threads >= kCuda; }
  RigOptions options(KvType kv_type = KvType::F16) const;
};
std::ostream& operator<<(std::ostream& to, const BackendUnderTest& backend);

/// The CUDA backends; none if there is neither a GPU nor the fake driver.
const std::vector<std::uint32_t>& cuda_backends();
std::vector<std::uint32_t> with_cuda(std::vector<std::uint32_t> others);

/// Texts of different lengths from the model's training vocabulary.
const std::vector<std::string>& prompts();

class FourTenants {
 public:
  static constexpr std::uint32_t kTenants = 4;
  static constexpr std::uint32_t kLate = 3;  ///< Its prompt is prefilled in the mixed step.

  explicit FourTenants(RigOptions options);

  /// Grants new leases; tenants 0 to 2 emit two tokens, tenant 3 is about to be admitted.
  void begin();
  /// Drops everything, so that `begin` can be called again.
  void end();

  static std::string request_id(std::uint32_t tenant) { return "r" + std::to_string(tenant); }
  LeaseId lease(std::uint32_t tenant) const { return leases_[tenant]; }
  PromptRequest request(std::uint32_t tenant) const;
  RequestOutcome& outcome(std::uint32_t tenant) { return rig.outcome(request_id(tenant)); }
  std::array<std::vector<TokenId>, kTenants> tokens();

  UnitWatch watch;
  EngineRig rig;

 private:
  std::array<LeaseId, kTenants> leases_;
};

}  // namespace leasehold::testing
