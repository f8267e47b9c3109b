#include "tools/make_model/write_model.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "common/random.hpp"
#include "tools/make_model/gguf_header.hpp"
#include "tools/make_model/partial_file.hpp"
#include "tools/make_model/tensor_plan.hpp"
#include "tools/make_model/weights.hpp"

namespace leasehold::make_model {
namespace {

/// Weights made at once: whole rows, at least one, about a megabyte. Rows have an even length, so
/// every batch begins at an even element.
constexpr std::uint64_t kBatchWeights = std::uint64_t{1} << 18;

/// What one batch needs, kept from batch to batch.
struct Workspace {
  std::vector<float> weights;
  std::vector<std::byte> packed;
};

std::uint64_t rows_per_batch(const PlannedTensor& tensor) {
  return std::clamp<std::uint64_t>(kBatchWeights / tensor.columns, 1, tensor.rows);
}

Result<void> append_padding(PartialFile& file) {
  static constexpr std::array<std::byte, kAlignment> kZeros{};
  const std::uint64_t missing = align_up(file.size_bytes()) - file.size_bytes();
  return file.append(std::span(kZeros).first(missing));
}

class ModelWriter {
 public:
  ModelWriter(PartialFile& file, std::uint64_t total_bytes, const OnProgress& on_progress)
      : file_(file), total_bytes_(total_bytes), on_progress_(on_progress) {}

  Result<void> append_tensor(const PlannedTensor& tensor, std::uint64_t stream) {
    const std::uint64_t batch = rows_per_batch(tensor);
    for (std::uint64_t row = 0; row < tensor.rows; row += batch) {
      TRY(append_rows(tensor, stream, row, std::min(batch, tensor.rows - row)));
    }
    return append_padding(file_);
  }

 private:
  Result<void> append_rows(const PlannedTensor& tensor, std::uint64_t stream, std::uint64_t row,
                           std::uint64_t count) {
    work_.weights.resize(count * tensor.columns);
    work_.packed.resize(count * row_size_bytes(tensor.type, tensor.columns));
    fill_weights(tensor, stream, row * tensor.columns, work_.weights);
    pack_weights(tensor.type, work_.weights, work_.packed);
    TRY(file_.append(work_.packed));
    on_progress_(file_.size_bytes(), total_bytes_);
    return {};
  }

  PartialFile& file_;
  std::uint64_t total_bytes_;
  const OnProgress& on_progress_;
  Workspace work_;
};

}  // namespace

Result<std::uint64_t> write_model(const ModelRequest& request, const std::string& path,
                                  const OnProgress& on_progress) {
  TRY(check(request));
  const std::vector<PlannedTensor> plan = plan_tensors(request);
  const std::vector<std::byte> header = gguf_header(request, plan);
  const std::uint64_t total_bytes = header.size() + data_size_bytes(plan);
  PartialFile file = TRY(PartialFile::create(path, total_bytes));
  TRY(file.append(header));
  ModelWriter writer(file, total_bytes, on_progress);
  for (std::size_t i = 0; i < plan.size(); ++i) {
    TRY(writer.append_tensor(plan[i], random_at(request.seed, i)));
  }
  TRY(file.finish());
  return total_bytes;
}

}  // namespace leasehold::make_model
