#include "worker/model/weights.hpp"

#include <fmt/format.h>

#include <unordered_map>

#include "common/expects.hpp"
#include "kernels/quant/row_group.hpp"

namespace leasehold {
namespace {

// Large enough for full disk speed, and small enough that a buffer of rows and one of interleaved
// rows stay in a core's cache. A load uses this memory in addition to the weights.
constexpr std::size_t kStagingBytes = std::size_t{256} << 10;

/// Finds weights by name and turns them into handles.
class Binder {
 public:
  Binder(const WeightsPlan& plan, std::span<const Leased<const std::byte>> bases) {
    for (std::size_t part = 0; part < plan.parts.size(); ++part) {
      for (const WeightTensor& slot : plan.parts[part].layout.weights) {
        const Leased<const std::byte> at =
            bases[part] + static_cast<std::ptrdiff_t>(slot.region_offset_bytes);
        matrices_.emplace(slot.name, WeightMatrix{.type = slot.type,
                                                  .layout = slot.layout,
                                                  .n_out = slot.rows,
                                                  .n_in = slot.columns,
                                                  .data = at});
      }
    }
  }

  WeightMatrix find_matrix(const std::string& name) const {
    const auto found = matrices_.find(name);
    return found == matrices_.end() ? WeightMatrix{} : found->second;
  }
  Leased<const float> find_vector(const std::string& name) const {
    return find_matrix(name).data.as<const float>();
  }

  Result<WeightMatrix> matrix(const std::string& name) const {
    const WeightMatrix found = find_matrix(name);
    if (!found.data) return fail(Errc::MissingWeight, "no weight " + name);
    return found;
  }

  Result<Leased<const float>> vector(const std::string& name) const {
    return TRY(matrix(name)).data.as<const float>();
  }

 private:
  std::unordered_map<std::string_view, WeightMatrix> matrices_;
};

RecurrentWeights bind_recurrent(const Binder& binder, std::uint32_t layer) {
  const auto part = [layer](const char* what) { return fmt::format("blk.{}.{}", layer, what); };
  const auto matrix = [&](const char* what) { return binder.find_matrix(part(what)); };
  const auto vector = [&](const char* what) { return binder.find_vector(part(what)); };
  return {.input = matrix("attn_qkv.weight"),
          .gate = matrix("attn_gate.weight"),
          .output_gate = matrix("output_gate.weight"),
          .steps = matrix("ssm_alpha.weight"),
          .update_weights = matrix("ssm_beta.weight"),
          .convolution = vector("ssm_conv1d.weight"),
          .convolution_bias = vector("ssm_conv1d.bias"),
          .step_bias = vector("ssm_dt.bias"),
          .decay_rates = vector("ssm_a"),
          .skip = vector("ssm_d"),
          .norm = vector("ssm_norm.weight"),
          .output = matrix("ssm_out.weight")};
}

/// Finds a layer's weights. The layout has already checked that required weights are present.
Result<LayerWeights> bind_layer(const Binder& binder, const ModelConfig& config,
                                std::uint32_t layer) {
  const auto part = [layer](const char* what) { return fmt::format("blk.{}.{}", layer, what); };
  const auto matrix = [&](const char* what) { return binder.find_matrix(part(what)); };
  const auto vector = [&](const char* what) { return binder.find_vector(part(what)); };
  const bool is_dense = !config.experts.replace_ff(layer);
  LayerWeights found{.attention_norm = vector("attn_norm.weight"),
                     .query_bias = vector("attn_q.bias"),
                     .key_bias = vector("attn_k.bias"),
                     .value_bias = vector("attn_v.bias"),
                     .query_norm = vector("attn_q_norm.weight"),
                     .key_norm = vector("attn_k_norm.weight"),
                     .sinks = vector("attn_sinks.weight"),
                     .attention_gate = matrix("attn_gate.weight"),
                     .attention_output_bias = vector("attn_output.bias"),
                     .attention_output_norm = vector("post_attention_norm.weight"),
                     .recurrent = bind_recurrent(binder, layer),
                     .latent_query = matrix("attn_q_a.weight"),
                     .latent_query_norm = vector("attn_q_a_norm.weight"),
                     .rotated_query = matrix("attn_q_rotated.weight"),
                     .head_keys = matrix("attn_k_b.weight"),
                     .head_values = matrix("attn_v_b.weight"),
                     .ffn_norm = vector("ffn_norm.weight"),
                     .ffn_output_norm = vector("post_ffw_norm.weight"),
                     .ffn_gate = matrix(is_dense ? "ffn_gate.weight" : "ffn_gate_shexp.weight"),
                     .ffn_up = matrix(is_dense ? "ffn_up.weight" : "ffn_up_shexp.weight"),
                     .ffn_down = matrix(is_dense ? "ffn_down.weight" : "ffn_down_shexp.weight"),
                     .expert_router = matrix("ffn_gate_inp.weight"),
                     .expert_selection_bias = vector("exp_probs_b.bias"),
                     .expert_gate = matrix("ffn_gate_exps.weight"),
                     .expert_up = matrix("ffn_up_exps.weight"),
                     .expert_down = matrix("ffn_down_exps.weight"),
                     .expert_router_bias = vector("ffn_gate_inp.bias"),
                     .expert_gate_bias = vector("ffn_gate_exps.bias"),
                     .expert_up_bias = vector("ffn_up_exps.bias"),
                     .expert_down_bias = vector("ffn_down_exps.bias"),
                     .shared_gate = matrix("ffn_gate_inp_shexp.weight"),
                     .latent_down = matrix("ffn_latent_down.weight"),
                     .latent_up = matrix("ffn_latent_up.weight"),
                     .dense_output_norm = vector("post_ffw_norm_1.weight"),
                     .expert_input_norm = vector("pre_ffw_norm_2.weight"),
                     .expert_output_norm = vector("post_ffw_norm_2.weight"),
                     .router_norm = vector("ffn_gate_inp.scale"),
                     .expert_scales = vector("ffn_down_exps.scale"),
                     .embedding_gate = matrix("inp_gate.weight"),
                     .embedding_projection = matrix("proj.weight"),
                     .embedding_norm = vector("post_norm.weight"),
                     .output_scale = vector("layer_output_scale.weight")};
  if (config.is_parallel) found.ffn_norm = found.attention_norm;
  if (config.layers[layer].mixer != Mixer::Attention) return found;
  found.norms_all_heads = matrix("attn_q_norm.weight").n_in > config.layers[layer].head_dim;
  found.attention_output = TRY(binder.matrix(part("attn_output.weight")));
  if (config.latent.rank > 0) {
    found.query = TRY(binder.matrix(part("attn_q_unrotated.weight")));
    found.key = TRY(binder.matrix(part("attn_kv_a_mqa.weight")));
    found.key_norm = TRY(binder.vector(part("attn_kv_a_norm.weight")));
    return found;
  }
  found.query = TRY(binder.matrix(part("attn_q.weight")));
  if (config.layers[layer].stores_kv()) {
    found.key = TRY(binder.matrix(part("attn_k.weight")));
    found.value = matrix("attn_v.weight");
    if (!found.value.data) found.value = found.key;
  }
  return found;
}

/// Copies tensors through the launch gate, in pieces.
class WeightsCopy {
 public:
  WeightsCopy(const GgufFile& file, const LeasedMapping& region, const GateSet& gates,
              Backend& backend)
      : file_(file), region_(region), gates_(gates), backend_(backend) {}

  /// The size of a piece of this tensor. If its rows are interleaved, a piece is at least one
  /// group, and whole groups.
  static std::uint64_t chunk_bytes(const WeightTensor& slot) {
    if (slot.layout == MatrixLayout::Rows) return kStagingBytes;
    const std::uint64_t group_bytes = row_group_bytes(slot.type, slot.columns);
    return std::max<std::uint64_t>(kStagingBytes / group_bytes, 1) * group_bytes;
  }

  /// Copies bytes [at, at + size_bytes) of the tensor, by its layout in the region.
  Result<void> copy_chunk(const WeightTensor& slot, std::uint64_t at, std::uint64_t size_bytes) {
    const std::span<const std::byte> bytes =
        TRY(slot.layout == MatrixLayout::Rows ? read(slot, at, size_bytes)
                                              : read_groups(slot, at, size_bytes));
    const LaunchStatus status = backend_.copy_in(
        {.gates = &gates_},
        {.site = LaunchSite::WeightLoad,
         .to = region_.writable_base() + static_cast<std::ptrdiff_t>(slot.region_offset_bytes + at),
         .from = bytes.data(),
         .size_bytes = bytes.size()});
    if (const auto fault = backend_.fault()) return std::unexpected(*fault);
    if (!status.none_live()) return {};
    return fail(Errc::EngineLeaseFenced, fmt::format("the engine lease was revoked while "
                                                     "loading {}; load again under a new lease",
                                                     slot.name));
  }

 private:
  Result<std::span<const std::byte>> read(const WeightTensor& slot, std::uint64_t at,
                                          std::uint64_t size_bytes) {
    staging_.resize(size_bytes);
    TRY(read_weight(file_, slot, at, staging_));
    return staging_;
  }

  /// Reads rows and interleaves them into groups. A group is as large as its rows in the file; only
  /// the last group may have fewer rows there.
  Result<std::span<const std::byte>> read_groups(const WeightTensor& slot, std::uint64_t at,
                                                 std::uint64_t size_bytes) {
    const std::uint64_t row_bytes = row_size_bytes(slot.type, slot.columns);
    const std::uint64_t in_file = std::min(size_bytes, slot.rows * row_bytes - at);
    const std::span<const std::byte> rows = TRY(read(slot, at, in_file));
    groups_.resize(size_bytes);
    const std::uint64_t group_bytes = row_group_bytes(slot.type, slot.columns);
    for (std::uint64_t done = 0; done < size_bytes; done += group_bytes) {
      const std::uint64_t left = (in_file - done) / row_bytes;
      interleave_rows(slot.type, rows.data() + done,
                      static_cast<std::uint32_t>(std::min<std::uint64_t>(left, kGroupRows)),
                      slot.columns, groups_.data() + done);
    }
    return groups_;
  }

  const GgufFile& file_;
  const LeasedMapping& region_;
  const GateSet& gates_;
  Backend& backend_;
  std::vector<std::byte> staging_;
  std::vector<std::byte> groups_;
};

}  // namespace

LeaseId id_of(const LeaseDependency& lease) {
  return {.slot = lease.slot, .generation = lease.granted.generation()};
}

bool is_live(const LeaseDependency& lease) {
  return LeaseWord{lease.word->load(std::memory_order_seq_cst)} == lease.granted;
}

Result<Weights> Weights::bind(const WeightsPlan& plan, const ModelConfig& config,
                              std::vector<MappedPart> mapped_parts) {
  expects(mapped_parts.size() == plan.parts.size(), "there is one mapping per part of the plan");
  Weights weights(plan, config);
  weights.bases_.resize(mapped_parts.size());
  weights.leases_.resize(mapped_parts.size());
  for (std::size_t part = 0; part < mapped_parts.size(); ++part) {
    TRY(weights.keep_mapping(part, std::move(mapped_parts[part])));
  }
  TRY(weights.bind_matrices());
  return weights;
}

Result<void> Weights::keep_mapping(std::size_t part, MappedPart mapped_part) {
  const WeightsPart& planned = plan_->parts[part];
  if (mapped_part.mapping.size_bytes() < planned.layout.size_bytes) {
    return fail(
        Errc::UntrustedSegment,
        fmt::format("a weights region of {} bytes cannot hold the {} of {}",
                    mapped_part.mapping.size_bytes(), planned.layout.size_bytes, planned.name));
  }
  bases_[part] = mapped_part.mapping.base();
  leases_[part] = mapped_part.lease;
  const std::scoped_lock lock(mapped_->mutex);
  mapped_->by_lease.insert_or_assign(id_of(mapped_part.lease), std::move(mapped_part.mapping));
  return {};
}

Result<void> Weights::restore(std::size_t part, MappedPart fresh) {
  const LeaseId before = id_of(leases_[part]);
  TRY(keep_mapping(part, std::move(fresh)));
  unmap(before);
  return bind_matrices();
}

bool Weights::unmap(LeaseId lease) {
  const std::scoped_lock lock(mapped_->mutex);
  return mapped_->by_lease.erase(lease) == 1;
}

std::optional<std::size_t> Weights::first_revoked_part() const {
  for (std::size_t part = 0; part < leases_.size(); ++part) {
    if (!is_live(leases_[part])) return part;
  }
  return std::nullopt;
}

Result<void> Weights::bind_matrices() {
  const Binder binder(*plan_, bases_);
  token_embedding_ = TRY(binder.matrix("token_embd.weight"));
  layer_embeddings_ = {.table = binder.find_matrix("per_layer_token_embd.weight"),
                       .projection = binder.find_matrix("per_layer_model_proj.weight"),
                       .norm = binder.find_vector("per_layer_proj_norm.weight")};
  layers_.clear();
  for (std::uint32_t layer = 0; layer < config_.n_layers; ++layer) {
    layers_.push_back(TRY(bind_layer(binder, config_, layer)));
  }
  output_norm_ = TRY(binder.vector("output_norm.weight"));
  output_ = config_.tied_embeddings ? token_embedding_ : TRY(binder.matrix("output.weight"));
  return {};
}

Result<void> copy_weights(const GgufFile& file, const WeightsLayout& layout,
                          const WeightsTarget& target, const LoadProgress& progress) {
  WeightsCopy copy(file, *target.region, *target.gates, *target.backend);
  std::uint64_t done_bytes = 0;
  for (const WeightTensor& slot : layout.weights) {
    const std::uint64_t chunk_bytes = copy.chunk_bytes(slot);
    for (std::uint64_t at = 0; at < slot.size_bytes; at += chunk_bytes) {
      const std::uint64_t size_bytes = std::min(chunk_bytes, slot.size_bytes - at);
      TRY(copy.copy_chunk(slot, at, size_bytes));
      done_bytes += size_bytes;
      if (progress) progress(done_bytes, layout.size_bytes);
    }
  }
  return file.check_unchanged();
}

}  // namespace leasehold
