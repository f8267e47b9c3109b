#include "worker/model/recurrent_layer.hpp"

#include <array>
#include <utility>

namespace leasehold {

LaunchStatus RecurrentLayer::advance(Backend& backend, const LaunchContext& context,
                                     const RmsNormArgs& norm) const {
  LaunchStatus status = project(backend, context, norm);
  if (!status.none_live()) status &= convolve(backend, context);
  if (has_heads() && !status.none_live()) status &= update_state(backend, context);
  return status;
}

/// Which buffers a mixer fills depends on the weights that it has.
LaunchStatus RecurrentLayer::project(Backend& backend, const LaunchContext& context,
                                     const RmsNormArgs& norm) const {
  std::array<MatmulArgs, ProjectionArgs::kMaxMatmuls> matmuls;
  std::size_t n = 0;
  for (const auto& [weight, out] :
       {std::pair(&weights_.input, buffers_.input), std::pair(&weights_.gate, buffers_.gate),
        std::pair(&weights_.output_gate, buffers_.values),
        std::pair(&weights_.steps, buffers_.steps),
        std::pair(&weights_.update_weights, buffers_.weights)})
    if (weight->data)
      matmuls[n++] = {
          .site = LaunchSite::MixerProjection, .weight = *weight, .x = norm.out, .out = out};
  return backend.project(context, {.norm = &norm, .matmuls = std::span(matmuls).first(n)});
}

/// A short convolution has gates before and behind it, and no activation.
LaunchStatus RecurrentLayer::convolve(Backend& backend, const LaunchContext& context) const {
  return backend.convolution(context, {.x = buffers_.input,
                                       .input_gate = has_heads() ? nullptr : buffers_.gate,
                                       .output_gate = has_heads() ? nullptr : buffers_.values,
                                       .out = buffers_.convolved,
                                       .n_channels = config_.recurrent.channels,
                                       .n_taps = config_.recurrent.n_taps,
                                       .weight = weights_.convolution,
                                       .bias = weights_.convolution_bias,
                                       .applies_silu = has_heads(),
                                       .piece = pieces_.back(),
                                       .state_tables = state_tables_});
}

/// The convolved row of a delta net has queries, keys and values, that of Mamba-2 values, then the
/// keys and queries that it calls B and C.
LaunchStatus RecurrentLayer::update_state(Backend& backend, const LaunchContext& context) const {
  const RecurrentConfig& shape = config_.recurrent;
  const bool is_delta = mixer_ == Mixer::DeltaNet;
  const std::uint32_t keys = shape.n_groups * shape.key_dim;
  const std::uint32_t values = shape.n_values();
  return backend.recurrence(context,
                            {.rule = is_delta ? RecurrenceRule::Delta : RecurrenceRule::Mamba2,
                             .x = buffers_.convolved,
                             .row_width = shape.channels,
                             .query_offset = is_delta ? 0 : values + keys,
                             .key_offset = is_delta ? keys : values,
                             .value_offset = is_delta ? 2 * keys : 0,
                             .n_groups = shape.n_groups,
                             .n_heads = shape.n_heads,
                             .key_dim = shape.key_dim,
                             .value_dim = shape.head_dim,
                             .alternates_groups = shape.alternates_groups,
                             .steps = buffers_.steps,
                             .weights = buffers_.weights,
                             .step_bias = weights_.step_bias,
                             .decay_rates = weights_.decay_rates,
                             .skip = weights_.skip,
                             .epsilon = config_.head_epsilon,
                             .out = buffers_.values,
                             .pieces = pieces_,
                             .state_tables = state_tables_});
}

/// A delta net norms each head, then gates it; Mamba-2 gates, then norms the heads of a group
/// together. The result is in buffers.gate.
LaunchStatus RecurrentLayer::gate(Backend& backend, const LaunchContext& context,
                                  std::size_t first_row) const {
  const RecurrentConfig& shape = config_.recurrent;
  const bool is_delta = mixer_ == Mixer::DeltaNet;
  const std::uint32_t n_vectors = is_delta ? shape.n_heads : shape.n_groups;
  float* values = buffers_.values + first_row * shape.n_values();
  float* gates = buffers_.gate + first_row * shape.n_values();
  const RmsNormArgs norm{.site = LaunchSite::MixerNorm,
                         .x = is_delta ? values : gates,
                         .weight = weights_.norm,
                         .out = is_delta ? values : gates,
                         .width = shape.n_values() / n_vectors,
                         .epsilon = config_.head_epsilon,
                         .vectors_per_row = n_vectors,
                         .has_own_weights = !is_delta};
  const SwiGluArgs swiglu{.gate = gates, .up = values, .width = shape.n_values()};
  LaunchStatus status =
      is_delta ? backend.rms_norm(context, norm) : backend.swiglu(context, swiglu);
  if (status.none_live()) return status;
  return status &= is_delta ? backend.swiglu(context, swiglu) : backend.rms_norm(context, norm);
}

LaunchStatus RecurrentLayer::add_output(Backend& backend, const LaunchContext& context,
                                        std::size_t first_row, float* residual) const {
  LaunchStatus status{context.gates->all()};
  if (has_heads()) status &= gate(backend, context, first_row);
  if (status.none_live()) return status;
  const float* values = has_heads() ? buffers_.gate : buffers_.convolved;
  return status &= backend.matmul(context, {.site = LaunchSite::MixerOutput,
                                            .weight = weights_.output,
                                            .x = values + first_row * config_.recurrent.n_values(),
                                            .out = residual,
                                            .accumulate = true});
}

}  // namespace leasehold
