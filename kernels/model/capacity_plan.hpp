/// Computes the memory that a model, a context and a number of tenants need, with the functions for
/// sizes that worker and broker use. Pure except that it reads the model file.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.hpp"
#include "ipc/segment/extent_size.hpp"

namespace leasehold {

struct PlanRequest {
  std::string model;
  std::uint32_t tenants = 1;  ///< Each runs one request at a time.
  /// Tokens of a request, prompt and answer; 0: the model's context.
  std::uint32_t context = 0;
  std::string kv_type = "f16";                     ///< The worker's --kv-type.
  std::uint32_t max_extents = kDefaultMaxExtents;  ///< The broker's --max-extents.
  std::string draft_model = {};                    ///< The worker's --draft-model; empty: none.
  std::uint32_t draft_context = 2'048;             ///< The worker's --draft-context.
  std::uint32_t max_batch_size = 64;               ///< The worker's --max-batch-size.
};

struct CapacityPlan {
  std::uint32_t context = 0;
  /// Layers of the file that are not loaded; see ModelConfig::n_skipped_layers.
  std::uint32_t skipped_layers = 0;
  std::uint64_t weights_bytes = 0;
  std::uint64_t draft_weights_bytes = 0;
  std::uint64_t draft_texts_bytes = 0;   ///< Keys, values and states of all texts of the draft.
  std::uint64_t kv_bytes_per_token = 0;  ///< Of layers that read all positions.
  std::uint64_t block_bytes = 0;
  /// Both copies of the recurrent state of one request.
  std::uint32_t state_blocks_per_tenant = 0;
  /// The most blocks of one request in layers with a window, with the worker's default limits.
  std::uint32_t window_blocks_per_tenant = 0;
  std::uint32_t blocks_per_tenant = 0;  ///< Positions, record and state of one request.
  std::uint64_t extent_bytes = 0;
  std::uint32_t extents_per_tenant = 0;  ///< A lease has whole extents.
  /// The extents of all tenants, or the least capacity that gets extents of this size.
  std::uint64_t capacity_bytes = 0;
  std::uint64_t step_bytes = 0;  ///< Memory for intermediate values of the largest step.
  std::uint64_t memory_bytes = 0;
  /// What the broker lends to the worker itself.
  std::uint64_t worker_bytes() const {
    return weights_bytes + draft_weights_bytes + draft_texts_bytes;
  }
  std::uint64_t needed_bytes() const { return worker_bytes() + capacity_bytes + step_bytes; }
  bool fits() const { return needed_bytes() <= memory_bytes; }
};

/// Chooses extent_bytes, extents_per_tenant and capacity_bytes for block_bytes and
/// blocks_per_tenant. A broker with this capacity chooses these extents.
/// Precondition: at most max_extents tenants, and at least one block for each.
void choose_capacity(CapacityPlan& plan, std::uint32_t tenants, std::uint32_t max_extents);

/// Errors: those of GgufFile::open, read_config and the weights' plan; BadRequest for more tenants
/// than extents, for a context that the model does not have, and for a KV type that its heads or
/// those of the draft model do not fit.
Result<CapacityPlan> plan_capacity(const PlanRequest& request, std::uint64_t memory_bytes);

}  // namespace leasehold
