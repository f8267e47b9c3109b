#include "worker/model/weights.hpp"

#include <fmt/format.h>

namespace leasehold {
namespace {

/// Finds slots by name and turns them into handles.
class Binder {
 public:
  Binder(const WeightsLayout& layout, Leased<const std::byte> base)
      : layout_(&layout), base_(base) {}

  Result<WeightMatrix> matrix(const std::string& name) const {
    const WeightSlot* slot = layout_->find(name);
    if (slot == nullptr) return fail(Errc::MissingWeight, fmt::format("no weight {}", name));
    return WeightMatrix{.type = slot->type,
                        .n_out = slot->rows,
                        .n_in = slot->columns,
                        .data = base_ + static_cast<std::ptrdiff_t>(slot->region_offset_bytes)};
  }

  Result<Leased<const float>> vector(const std::string& name) const {
    return TRY(matrix(name)).data.as<const float>();
  }

 private:
  const WeightsLayout* layout_;
  Leased<const std::byte> base_;
};

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

Result<Weights> Weights::bind(LeasedMapping mapping, const WeightsLayout& layout,
                              const ModelConfig& config, LeaseDependency lease) {
  if (mapping.size_bytes() < layout.size_bytes) {
    return fail(Errc::UntrustedSegment,
                fmt::format("a weights region of {} bytes cannot hold the layout's {}",
                            mapping.size_bytes(), layout.size_bytes));
  }
  const Binder binder(layout, mapping.base());
  Weights weights(std::move(mapping), lease);
  weights.token_embedding_ = TRY(binder.matrix("token_embd.weight"));
  for (std::uint32_t layer = 0; layer < config.n_layers; ++layer) {
    weights.layers_.push_back(TRY(bind_layer(binder, layer)));
  }
  weights.output_norm_ = TRY(binder.vector("output_norm.weight"));
  weights.output_ =
      config.tied_embeddings ? weights.token_embedding_ : TRY(binder.matrix("output.weight"));
  return weights;
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
