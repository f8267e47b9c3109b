#include "tools/make_model/write_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "common/random.hpp"
#include "tools/make_model/gguf_header.hpp"
#include "tools/make_model/partial_file.hpp"
#include "tools/make_model/tensor_plan.hpp"
#include "tools/make_model/weights.hpp"

namespace leasehold::make_model {
namespace {

/// Upper bound on the weights per batch: one megabyte as floats. A batch consists of whole rows,
/// and one row may exceed the bound. Rows have an even length, so every batch starts at an even
/// element.
constexpr std::uint64_t kBatchWeights = std::uint64_t{1} << 18;

std::uint64_t rows_per_batch(const PlannedTensor& tensor) {
  return std::clamp<std::uint64_t>(kBatchWeights / tensor.columns, 1, tensor.rows);
}

Result<void> append_padding(PartialFile& file) {
  static constexpr std::array<std::byte, kAlignment> kZeros{};
  const std::uint64_t missing = align_up(file.size_bytes()) - file.size_bytes();
  return file.append(std::span(kZeros).first(missing));
}

/// Calls `on_batch` after each batch of rows.
Result<void> append_tensor(PartialFile& file, const PlannedTensor& tensor, std::uint64_t stream,
                           const std::function<void()>& on_batch) {
  const std::uint64_t batch = rows_per_batch(tensor);
  std::vector<float> weights;
  std::vector<std::byte> packed;
  for (std::uint64_t row = 0; row < tensor.rows; row += batch) {
    const std::uint64_t count = std::min(batch, tensor.rows - row);
    weights.resize(count * tensor.columns);
    packed.resize(count * row_size_bytes(tensor.type, tensor.columns));
    fill_weights(tensor, stream, row * tensor.columns, weights);
    pack_weights(tensor.type, weights, packed);
    TRY(file.append(packed));
    on_batch();
  }
  return append_padding(file);
}

/// One file of the model, without its tensor data.
struct Part {
  std::string path;
  std::vector<std::byte> header;
  std::vector<PlannedTensor> plan;

  std::uint64_t size_bytes() const { return header.size() + data_size_bytes(plan); }
};

std::vector<Part> plan_parts(const ModelRequest& request, const std::string& path) {
  std::vector<PlannedTensor> all = plan_tensors(request);
  PartNumber number{.n_parts = request.parts, .n_tensors = all.size()};
  std::vector<Part> parts;
  for (std::vector<PlannedTensor>& plan : cut_plan(std::move(all), request.parts)) {
    parts.push_back({.path = part_path(path, number.number, number.n_parts),
                     .header = gguf_header(request, plan, number),
                     .plan = std::move(plan)});
    ++number.number;
  }
  return parts;
}

}  // namespace

std::string part_path(const std::string& path, std::uint32_t number, std::uint32_t n_parts) {
  if (n_parts == 1) return path;
  const std::string_view stem = path.ends_with(".gguf")
                                    ? std::string_view(path).substr(0, path.size() - 5)
                                    : std::string_view(path);
  return fmt::format("{}-{:05}-of-{:05}.gguf", stem, number + 1, n_parts);
}

Result<std::uint64_t> write_model(const ModelRequest& request, const std::string& path,
                                  const OnProgress& on_progress) {
  TRY(check(request));
  const std::vector<Part> parts = plan_parts(request, path);
  std::uint64_t total_bytes = 0;
  for (const Part& part : parts) total_bytes += part.size_bytes();
  std::uint64_t done_bytes = 0;
  for (const Part& part : parts) {
    PartialFile file = TRY(PartialFile::create(part.path, part.size_bytes()));
    TRY(file.append(part.header));
    const auto report_batch = [&] { on_progress(done_bytes + file.size_bytes(), total_bytes); };
    for (const PlannedTensor& tensor : part.plan) {
      TRY(append_tensor(file, tensor, random_at(request.seed, tensor.number), report_batch));
    }
    TRY(file.finish());
    done_bytes += part.size_bytes();
  }
  return total_bytes;
}

}  // namespace leasehold::make_model
