#include "worker/model/weights.hpp"

#include <fmt/format.h>

#include <unordered_map>

#include "common/expects.hpp"

namespace leasehold {
namespace {

/// Finds slots by name and turns them into handles.
class Binder {
 public:
  Binder(const WeightsPlan& plan, std::span<const Leased<const std::byte>> bases) {
    for (std::size_t part = 0; part < plan.parts.size(); ++part) {
      for (const WeightSlot& slot : plan.parts[part].layout.slots) {
        const Leased<const std::byte> at =
            bases[part] + static_cast<std::ptrdiff_t>(slot.region_offset_bytes);
        matrices_.emplace(
            slot.name,
            WeightMatrix{.type = slot.type, .n_out = slot.rows, .n_in = slot.columns, .data = at});
      }
    }
  }

  Result<WeightMatrix> matrix(const std::string& name) const {
    const auto found = matrices_.find(name);
    if (found == matrices_.end()) return fail(Errc::MissingWeight, "no weight " + name);
    return found->second;
  }

  Result<Leased<const float>> vector(const std::string& name) const {
    return TRY(matrix(name)).data.as<const float>();
  }

 private:
  std::unordered_map<std::string_view, WeightMatrix> matrices_;
};

LeaseId id_of(const LeaseDependency& lease) {
  return {.slot = lease.slot, .generation = lease.granted.generation()};
}

Result<LayerWeights> bind_layer(const Binder& binder, std::uint32_t layer) {
  const auto part = [layer](const char* what) {
    return fmt::format("blk.{}.{}.weight", layer, what);
  };
  return LayerWeights{.attention_norm = TRY(binder.vector(part("attn_norm"))),
                      .query = TRY(binder.matrix(part("attn_q"))),
                      .key = TRY(binder.matrix(part("attn_k"))),
                      .value = TRY(binder.matrix(part("attn_v"))),
                      .attention_output = TRY(binder.matrix(part("attn_output"))),
                      .ffn_norm = TRY(binder.vector(part("ffn_norm"))),
                      .ffn_gate = TRY(binder.matrix(part("ffn_gate"))),
                      .ffn_up = TRY(binder.matrix(part("ffn_up"))),
                      .ffn_down = TRY(binder.matrix(part("ffn_down")))};
}

}  // namespace

Result<Weights> Weights::bind(const WeightsPlan& plan, const ModelConfig& config,
                              std::vector<Holding> holdings) {
  expects(holdings.size() == plan.parts.size(), "every part of the plan is held");
  Weights weights(plan, config);
  weights.bases_.resize(holdings.size());
  weights.leases_.resize(holdings.size());
  for (std::size_t part = 0; part < holdings.size(); ++part) {
    TRY(weights.hold(part, std::move(holdings[part])));
  }
  TRY(weights.make_handles());
  return weights;
}

Result<void> Weights::hold(std::size_t part, Holding holding) {
  const WeightsPart& planned = plan_->parts[part];
  if (holding.mapping.size_bytes() < planned.layout.size_bytes) {
    return fail(Errc::UntrustedSegment,
                fmt::format("a weights region of {} bytes cannot hold the {} of {}",
                            holding.mapping.size_bytes(), planned.layout.size_bytes, planned.name));
  }
  bases_[part] = holding.mapping.base();
  leases_[part] = holding.lease;
  const std::scoped_lock lock(mapped_->mutex);
  mapped_->by_lease.insert_or_assign(id_of(holding.lease), std::move(holding.mapping));
  return {};
}

Result<void> Weights::restore(std::size_t part, Holding fresh) {
  const LeaseId before = id_of(leases_[part]);
  TRY(hold(part, std::move(fresh)));
  unmap(before);
  return make_handles();
}

bool Weights::unmap(LeaseId lease) {
  const std::scoped_lock lock(mapped_->mutex);
  return mapped_->by_lease.erase(lease) > 0;
}

std::optional<std::size_t> Weights::first_part_down() const {
  for (std::size_t part = 0; part < leases_.size(); ++part) {
    const LeaseDependency& lease = leases_[part];
    if (LeaseWord{lease.word->load(std::memory_order_seq_cst)} != lease.granted) return part;
  }
  return std::nullopt;
}

Result<void> Weights::make_handles() {
  const Binder binder(*plan_, bases_);
  token_embedding_ = TRY(binder.matrix("token_embd.weight"));
  layers_.clear();
  for (std::uint32_t layer = 0; layer < config_.n_layers; ++layer) {
    layers_.push_back(TRY(bind_layer(binder, layer)));
  }
  output_norm_ = TRY(binder.vector("output_norm.weight"));
  output_ = config_.tied_embeddings ? token_embedding_ : TRY(binder.matrix("output.weight"));
  return {};
}

Result<void> fill_weights(const GgufFile& file, const WeightsLayout& layout,
                          const LeasedMapping& region, const GateSet& gates, Backend& backend,
                          const LoadProgress& progress) {
  std::vector<std::byte> staging;
  std::uint64_t done_bytes = 0;
  for (const WeightSlot& slot : layout.slots) {
    staging.resize(slot.size_bytes);
    TRY(file.read(*file.find(slot.name), staging));
    const LaunchStatus status = backend.copy_in(
        {.gates = &gates},
        {.site = LaunchSite::WeightLoad,
         .to = region.writable_base() + static_cast<std::ptrdiff_t>(slot.region_offset_bytes),
         .from = staging.data(),
         .size_bytes = staging.size()});
    if (status.nothing_left()) {
      return fail(Errc::EngineLeaseFenced, fmt::format("the engine lease was taken away while "
                                                       "loading {}; load again under a new one",
                                                       slot.name));
    }
    done_bytes += slot.size_bytes;
    if (progress) progress(done_bytes, layout.size_bytes);
  }
  return file.check_unchanged();
}

}  // namespace leasehold
