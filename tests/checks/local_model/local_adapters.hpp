/// Adapters for a local model, with random matrices or from files.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ipc/region/mapping.hpp"
#include "worker/adapter/adapter_file.hpp"
#include "worker/model/adapter_matrices.hpp"
#include "worker/model/weights.hpp"

namespace leasehold {

struct LocalAdapter {
  std::uint32_t rank = 16;
  TensorType type = TensorType::F16;     ///< F16 or F32.
  std::set<AdapterTarget> targets = {};  ///< Empty: all.
  std::uint64_t seed = 1;
  std::shared_ptr<AdapterFile> file = {};  ///< Its matrices instead of random ones.

  /// An adapter of the model at `model_path`. Errors: those of reading either file.
  static Result<LocalAdapter> open(const std::string& model_path, const std::string& path);
};

/// The highest rank of any matrix; 0 without adapters.
std::uint32_t max_rank(std::span<const LocalAdapter> adapters);

/// Adapters that sequences of a model may use. Lifetime: neither copied nor moved once a step has
/// used it.
class LocalAdapters {
 public:
  LocalAdapters() = default;
  /// Binds each adapter's matrices to the weights that these layers have.
  LocalAdapters(std::span<const LocalAdapter> adapters, std::span<const LayerWeights> layers);

  std::size_t size_bytes() const { return size_bytes_; }
  /// Places the matrices in `memory`, of size_bytes(), and lets the backend write them. Errors:
  /// those of AdapterFile::read.
  Result<void> fill(LeasedMapping memory, Backend& backend, const GateSet& gates);

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
    AdaptedWeight weight;
    AdapterPiece matrix;  ///< Its offset counts from the start of the memory.
  };
  void add(std::size_t adapter, std::span<const AdaptedWeight> weights);

  std::vector<LocalAdapter> adapters_;
  std::vector<AdapterMatrices> matrices_;
  std::vector<Piece> pieces_;
  std::size_t size_bytes_ = 0;
  std::optional<LeasedMapping> memory_;
  std::map<std::uint32_t, std::uint32_t> chosen_;  // by sequence
};

}  // namespace leasehold
