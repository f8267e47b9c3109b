#include "tools/checks/gpu_check/shape_file.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <vector>

#include "tools/make_model/gguf_header.hpp"

namespace leasehold::gpu_check {
namespace {

using make_model::Fill;
using make_model::ModelShape;
using make_model::PlannedTensor;

/// Returns 17 for "blk.17.…"; nothing for a tensor outside of layers.
std::optional<std::uint32_t> layer_of(std::string_view tensor) {
  if (!tensor.starts_with("blk.")) return std::nullopt;
  std::uint32_t layer = 0;
  const auto [end, error] =
      std::from_chars(tensor.data() + 4, tensor.data() + tensor.size(), layer);
  return error == std::errc() && end != tensor.data() + 4 ? std::optional(layer) : std::nullopt;
}

/// True for the first and last eighth of the layers, and for every third layer between them.
bool has_more_bits(std::uint32_t layer, std::uint32_t n_layers) {
  const std::uint32_t eighth = n_layers / 8;
  return layer < eighth || layer >= 7 * eighth || (layer - eighth) % 3 == 2;
}

TensorType type_in(Mix mix, const PlannedTensor& tensor, const ModelShape& shape) {
  if (tensor.fill != Fill::Matrix) return TensorType::F32;
  switch (mix) {
    case Mix::F16:
      return TensorType::F16;
    case Mix::Q8:
      return TensorType::Q8_0;
    case Mix::Q4KM:
      break;
  }
  if (tensor.name == "output.weight") return TensorType::Q6_K;
  const bool is_one =
      tensor.name.ends_with("attn_v.weight") || tensor.name.ends_with("ffn_down.weight");
  const std::optional<std::uint32_t> layer = layer_of(tensor.name);
  return is_one && layer && has_more_bits(*layer, shape.layers) ? TensorType::Q6_K
                                                                : TensorType::Q4_K;
}

std::vector<PlannedTensor> plan(const ModelShape& shape, Mix mix) {
  std::vector<PlannedTensor> tensors =
      make_model::plan_tensors({.shape = shape, .type = TensorType::F16});
  std::uint64_t end = 0;
  for (PlannedTensor& tensor : tensors) {
    tensor.type = type_in(mix, tensor, shape);
    tensor.offset = end;
    end = make_model::align_up(end + tensor.size_bytes());
  }
  return tensors;
}

Result<void> write(const std::string& path, std::span<const std::byte> header,
                   std::uint64_t size_bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(header.data()),
             static_cast<std::streamsize>(header.size()));
  file.close();
  std::error_code failed;
  if (file) std::filesystem::resize_file(path, size_bytes, failed);
  if (file && !failed) return {};
  return fail(Errc::SystemError,
              fmt::format("cannot write {}; choose another --out with {} MiB of room", path,
                          header.size() >> 20));
}

}  // namespace

std::string_view name(Mix mix) {
  switch (mix) {
    case Mix::Q4KM:
      return "Q4_K_M";
    case Mix::F16:
      return "F16";
    case Mix::Q8:
      return "Q8_0";
  }
  return "unknown";
}

Result<ShapeFile> write_shape(const ModelShape& shape, Mix mix, const std::string& path) {
  const std::vector<PlannedTensor> tensors = plan(shape, mix);
  const std::vector<std::byte> header =
      make_model::gguf_header({.shape = shape, .type = TensorType::F16}, tensors);
  TRY(write(path, header, header.size() + make_model::data_size_bytes(tensors)));
  ShapeFile file{.path = path};
  for (const PlannedTensor& tensor : tensors) {
    const bool is_embedding = tensor.name == "token_embd.weight";
    const bool is_output = tensor.name == "output.weight" || (is_embedding && shape.tied);
    if (!is_embedding || shape.tied) file.read_each_step_bytes += tensor.size_bytes();
    if (!is_embedding && !is_output && tensor.fill == Fill::Matrix)
      file.matrix_elements += tensor.rows * tensor.columns;
  }
  return file;
}

}  // namespace leasehold::gpu_check
