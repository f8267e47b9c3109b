/// A model of some shape on the card, and how long its steps take.
///
/// Lifetime: the card outlives it. Threads: one. Errors: OutOfMemory when the card has no capacity;
/// what a local model's are.
#pragma once

#include <chrono>
#include <vector>

#include "tools/checks/gpu_check/card_placement.hpp"
#include "tools/checks/gpu_check/shape_file.hpp"

namespace leasehold::gpu_check {

struct BenchShape {
  std::string name;  ///< "7b"
  make_model::ModelShape shape;
  Mix mix = Mix::F16;

  std::string title() const { return name + " " + std::string(leasehold::gpu_check::name(mix)); }
};

struct BenchCapacity {
  std::uint32_t max_rows = 32;
  std::uint32_t sequences = 32;
  std::uint32_t positions = 528;
};

struct BenchListeners {
  RefusalListener* listener = nullptr;
  GateProbe* probe = nullptr;
};

class BenchModel {
 public:
  /// `file` is of that shape.
  static Result<std::unique_ptr<BenchModel>> load(Card& card, const ShapeFile& file,
                                                  cuda::CudaOptions options,
                                                  const BenchCapacity& capacity,
                                                  const BenchListeners& listeners = {});

  LocalModel& model() { return *model_; }

  /// One token of each of the first `batch` sequences, which have `context` positions afterwards.
  Result<void> decode(std::uint32_t batch, std::uint32_t context);
  /// `count` rows of the first sequence, from `from` on.
  Result<void> prefill(std::uint32_t from, std::uint32_t count);

 private:
  BenchModel(std::unique_ptr<CardPlacement> placement, std::unique_ptr<LocalModel> model)
      : placement_(std::move(placement)), model_(std::move(model)) {}

  std::unique_ptr<CardPlacement> placement_;
  std::unique_ptr<LocalModel> model_;
};

/// How often something is done to be timed: first some for nothing, then so many, or for so long.
struct Repeats {
  int warm = 4;
  int count = 40;
  std::chrono::milliseconds max_duration{1500};
};

/// The median of what `once` takes, in seconds.
Result<double> median_seconds(const Repeats& repeats, const std::function<Result<void>()>& once);

}  // namespace leasehold::gpu_check
