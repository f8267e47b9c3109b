/// The launches of a layer with recurrent state: a delta net, Mamba-2 or a short convolution.
///
/// Such a layer projects its input, convolves the projections over the positions of each sequence,
/// updates a matrix per head (unless it is a convolution only), and projects gated values to its
/// output. `advance` computes all rows up to the values, because each row changes the state; the
/// output is needed of fewer rows in the last layer.
/// Source: Yang et al. 2025 (gated delta networks); Dao and Gu 2024 (Mamba-2); llama.cpp,
/// src/models.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/backend.hpp"
#include "kernels/model/config.hpp"
#include "kernels/model/step_buffers.hpp"
#include "worker/model/weights.hpp"

namespace leasehold {

/// Lifetime: refers to its arguments. Threads: the engine's.
class RecurrentLayer {
 public:
  /// `pieces`: the layer's part of the state. `state_tables`: [n_sequences].
  RecurrentLayer(const ModelConfig& config, Mixer mixer, const RecurrentWeights& weights,
                 const MixerBuffers& buffers, std::span<const StatePiece> pieces,
                 std::span<const StateTableView> state_tables)
      : config_(config),
        mixer_(mixer),
        weights_(weights),
        buffers_(buffers),
        pieces_(pieces),
        state_tables_(state_tables) {}

  /// `norm` computes the input of the layer. `context` has all rows of the step.
  LaunchStatus advance(Backend& backend, const LaunchContext& context,
                       const RmsNormArgs& norm) const;

  /// Adds the output of the rows of `context` to `residual`. The first of them is row `first_row`
  /// of the step.
  LaunchStatus add_output(Backend& backend, const LaunchContext& context, std::size_t first_row,
                          float* residual) const;

 private:
  LaunchStatus project(Backend& backend, const LaunchContext& context,
                       const RmsNormArgs& norm) const;
  LaunchStatus convolve(Backend& backend, const LaunchContext& context) const;
  LaunchStatus update_state(Backend& backend, const LaunchContext& context) const;
  LaunchStatus gate(Backend& backend, const LaunchContext& context, std::size_t first_row) const;
  bool has_heads() const { return config_.recurrent.n_heads > 0; }

  const ModelConfig& config_;
  Mixer mixer_;
  const RecurrentWeights& weights_;
  const MixerBuffers& buffers_;
  std::span<const StatePiece> pieces_;
  std::span<const StateTableView> state_tables_;
};

}  // namespace leasehold
