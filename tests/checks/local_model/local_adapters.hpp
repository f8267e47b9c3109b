/// Adapters with random matrices for a local model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "ipc/region/mapping.hpp"
#include "worker/model/adapter_matrices.hpp"
#include "worker/model/weights.hpp"

namespace leasehold {

struct LocalAdapter {
  std::uint32_t rank = 16;
  TensorType type = TensorType::F16;     ///< F16 or F32.
  std::set<AdapterTarget> targets = {};  ///< Empty: all.
  std::uint64_t seed = 1;
};

/// Adapters that sequences of a model may use. Lifetime: neither copied nor moved once a step has
/// used it.
class LocalAdapters {
 public:
  LocalAdapters() = default;
  /// Binds each adapter's matrices to the weights that these layers have.
  LocalAdapters(std::span<const LocalAdapter> adapters, std::span<const LayerWeights> layers);

  std::size_t size_bytes() const { return size_bytes_; }
  /// Places the matrices in `memory`, of size_bytes(), and lets the backend write them.
  void fill(LeasedMapping memory, Backend& backend, const GateSet& gates);

  /// The sequence uses the adapter, an index, from now on; nullopt: none.
  void choose(std::uint32_t sequence, std::optional<std::uint32_t> adapter);
  /// The adapter of the sequence, if any.
  std::optional<std::uint32_t> chosen(std::uint32_t sequence) const;
  /// For ForwardInput::adapters.
  std::vector<const AdapterMatrices*> of(std::span<const RowRef> sequences) const;

 private:
  /// A matrix of an adapter before it has memory.
  struct Piece {
    std::size_t adapter;
    std::uint32_t layer;
    AdapterTarget target;
    bool is_b;
    std::uint32_t width;  ///< Elements of its rows.
    std::size_t offset_bytes;
  };
  void add(std::size_t adapter, std::uint32_t layer, AdapterTarget target,
           const WeightMatrix& weight);

  std::vector<LocalAdapter> adapters_;
  std::vector<AdapterMatrices> matrices_;
  std::vector<Piece> pieces_;
  std::size_t size_bytes_ = 0;
  std::optional<LeasedMapping> memory_;
  std::map<std::uint32_t, std::uint32_t> chosen_;  // by sequence
};

}  // namespace leasehold
