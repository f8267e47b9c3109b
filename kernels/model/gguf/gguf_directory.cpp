#include "kernels/model/gguf/gguf_directory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "kernels/model/gguf/gguf_cursor.hpp"
#include "kernels/model/gguf/gguf_head.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::uint32_t kDefaultAlignment = 32;
constexpr std::uint32_t kMinAlignment = 8;
constexpr std::uint32_t kMaxDimensions = 4;
constexpr std::size_t kMaxKeyBytes = 65535;
constexpr std::size_t kMaxTensorNameBytes = 64;
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 48;

// The minimum size of a metadata entry (length, one letter, type, value) and of a tensor entry
// (length, one letter, dimension count, one dimension, type, offset). They bound the counts.
constexpr std::uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

// Indexed by GgufType: the bytes of a value, or 0 for a type without a fixed size.
constexpr std::uint8_t kFixedSizeBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr std::string_view kTypeNames[] = {"uint8",  "int8",    "uint16", "int16",  "uint32",
                                           "int32",  "float32", "bool",   "string", "array",
                                           "uint64", "int64",   "float64"};
static_assert(std::size(kFixedSizeBytes) == std::to_underlying(GgufType::Float64) + 1);
static_assert(std::size(kTypeNames) == std::size(kFixedSizeBytes));

/// Names appear in messages and logs, so only visible ASCII is accepted.
Result<std::string> take_name(GgufCursor& in, std::size_t max_bytes, std::string_view what) {
  const std::uint64_t at = in.position();
  const std::string_view text = TRY(in.take_string(what));
  if (text.empty() || text.size() > max_bytes)
    return in.corrupt(
        at, fmt::format("{} has {} bytes; 1 to {} are allowed", what, text.size(), max_bytes));
  if (!std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; }))
    return in.corrupt(at, fmt::format("{} has bytes that are not visible ASCII", what));
  return std::string(text);
}

Result<GgufType> take_type(GgufCursor& in) {
  const std::uint64_t at = in.position();
  const auto number = TRY(in.take<std::uint32_t>("value type"));
  if (number > std::to_underlying(GgufType::Float64))
    return in.corrupt(at, fmt::format("{} is not a metadata type", number));
  return static_cast<GgufType>(number);
}

/// Skips `count` values of one type.
Result<void> skip_values(GgufCursor& in, GgufType type, std::uint64_t count, std::string_view key) {
  if (type != GgufType::String)
    return in.skip(count, kFixedSizeBytes[std::to_underlying(type)], key);
  TRY(in.check_remaining(count, sizeof(std::uint64_t), key));
  for (std::uint64_t i = 0; i < count; ++i) TRY(in.take_string(key));
  return {};
}

Result<GgufValue> take_value(GgufCursor& in, std::string_view key, std::string_view path) {
  const GgufType type = TRY(take_type(in));
  GgufValue value{.type = type, .element_type = type, .count = 1, .offset = 0};
  if (type == GgufType::Array) {
    value.element_type = TRY(take_type(in));
    value.count = TRY(in.take<std::uint64_t>(key));
    if (value.element_type == GgufType::Array)
      return fail(Errc::UnsupportedModel,
                  fmt::format("{}: metadata {} is an array of arrays", path, key));
  }
  value.offset = in.position();
  TRY(skip_values(in, value.element_type, value.count, key));
  return value;
}

Result<void> take_metadata(GgufCursor& in, std::uint64_t count, std::string_view path,
                           GgufDirectory& directory) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = in.position();
    std::string key = TRY(take_name(in, kMaxKeyBytes, "metadata key"));
    const GgufValue value = TRY(take_value(in, key, path));
    const auto [entry, is_new] = directory.metadata.emplace(std::move(key), value);
    if (!is_new) return in.corrupt(at, fmt::format("metadata key {} occurs twice", entry->first));
  }
  return {};
}

Result<std::vector<std::uint64_t>> take_shape(GgufCursor& in, std::string_view tensor) {
  const std::uint64_t at = in.position();
  const auto n_dimensions = TRY(in.take<std::uint32_t>("dimension count"));
  if (n_dimensions == 0 || n_dimensions > kMaxDimensions)
    return in.corrupt(at, fmt::format("tensor {} has {} dimensions; 1 to {} are allowed", tensor,
                                      n_dimensions, kMaxDimensions));
  std::vector<std::uint64_t> shape;
  std::uint64_t n_elements = 1;
  for (std::uint32_t i = 0; i < n_dimensions; ++i) {
    const auto length = TRY(in.take<std::uint64_t>("dimension"));
    if (length == 0 || length > kMaxElements / n_elements)
      return in.corrupt(at, fmt::format("tensor {} has dimension {} of {}", tensor, i, length));
    n_elements *= length;
    shape.push_back(length);
  }
  return shape;
}

/// "F32, F16, …", in table order.
std::string supported_types() {
  std::vector<std::string_view> names;
  for (const TensorTypeRow& row : kTensorTypeRows)
    if (row.block.size_bytes > 0) names.push_back(row.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// " (the nearest is Q2_K)": the supported type with about as many bits; empty for a number whose
/// bits are not known.
std::string nearest_type(std::uint32_t number) {
  struct Nearest {
    std::string_view unsupported;
    TensorType type;
  };
  constexpr Nearest kNearest[] = {
      {"Q8_1", TensorType::Q8_0},    {"Q8_K", TensorType::Q8_0},  {"IQ2_XXS", TensorType::Q2_K},
      {"IQ2_XS", TensorType::Q2_K},  {"IQ2_S", TensorType::Q2_K}, {"IQ1_S", TensorType::Q2_K},
      {"IQ1_M", TensorType::Q2_K},   {"TQ1_0", TensorType::Q2_K}, {"TQ2_0", TensorType::Q2_K},
      {"IQ3_XXS", TensorType::Q3_K}, {"IQ3_S", TensorType::Q3_K}, {"F64", TensorType::F32}};
  constexpr std::uint32_t kNvfp4 = 40;  // blocks of 16 values of 4 bits
  const auto* found = std::ranges::find(kNearest, gguf_type_name(number), &Nearest::unsupported);
  if (found == std::end(kNearest) && number != kNvfp4) return "";
  return fmt::format(" (the nearest is {})",
                     name(number == kNvfp4 ? TensorType::MXFP4 : found->type));
}

Result<TensorType> take_tensor_type(GgufCursor& in, std::string_view tensor,
                                    std::string_view path) {
  const auto number = TRY(in.take<std::uint32_t>("tensor type"));
  if (const auto type = tensor_type_from_gguf(number)) return *type;
  const std::string_view known = gguf_type_name(number);
  return fail(
      Errc::UnsupportedModel,
      fmt::format("{}: tensor {} has type {}{}; this build computes with {}: convert the model "
                  "to one of them",
                  path, tensor,
                  known.empty() ? fmt::format("number {}, which this build does not know", number)
                                : std::string(known),
                  nearest_type(number), supported_types()));
}

/// The offset is relative to the tensor data, whose start is not known yet.
Result<GgufTensor> take_tensor(GgufCursor& in, std::string_view path) {
  GgufTensor tensor{};
  tensor.name = TRY(take_name(in, kMaxTensorNameBytes, "tensor name"));
  const std::uint64_t at = in.position();
  tensor.shape = TRY(take_shape(in, tensor.name));
  tensor.type = TRY(take_tensor_type(in, tensor.name, path));
  tensor.offset = TRY(in.take<std::uint64_t>("tensor offset"));
  const BlockShape block = block_shape(tensor.type);
  if (tensor.columns() % block.elements != 0)
    return in.corrupt(
        at, fmt::format("tensor {} has rows of {} elements, not whole {} blocks of {}", tensor.name,
                        tensor.columns(), name(tensor.type), block.elements));
  tensor.size_bytes = tensor.rows() * row_size_bytes(tensor.type, tensor.columns());
  return tensor;
}

Result<void> take_tensors(GgufCursor& in, std::uint64_t count, std::string_view path,
                          GgufDirectory& directory) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = in.position();
    GgufTensor tensor = TRY(take_tensor(in, path));
    const auto [entry, is_new] =
        directory.tensor_index.emplace(tensor.name, directory.tensors.size());
    if (!is_new) return in.corrupt(at, fmt::format("tensor {} occurs twice", entry->first));
    directory.tensors.push_back(std::move(tensor));
  }
  return {};
}

Result<std::uint32_t> alignment_of(std::span<const std::byte> file, std::string_view path,
                                   const GgufDirectory& directory) {
  const auto entry = directory.metadata.find("general.alignment");
  if (entry == directory.metadata.end()) return kDefaultAlignment;
  GgufCursor in(file, path, entry->second.offset);
  const std::uint64_t at = in.position();
  if (entry->second.type != GgufType::Uint32)
    return in.corrupt(at, "general.alignment is not a uint32");
  const auto alignment = TRY(in.take<std::uint32_t>("general.alignment"));
  if (!std::has_single_bit(alignment) || alignment < kMinAlignment)
    return in.corrupt(at, fmt::format("general.alignment is {}; a power of two from {} is needed",
                                      alignment, kMinAlignment));
  return alignment;
}

/// Makes offsets absolute and checks that each tensor's data is aligned and inside the file.
Result<void> set_tensor_offsets(const GgufCursor& in, std::uint64_t file_size_bytes,
                                std::uint32_t alignment, GgufDirectory& directory) {
  const std::uint64_t mask = alignment - 1u;
  const std::uint64_t data_start = (in.position() + mask) & ~mask;
  const std::uint64_t data_size = file_size_bytes - std::min(data_start, file_size_bytes);
  for (GgufTensor& tensor : directory.tensors) {
    if ((tensor.offset & mask) != 0)
      return in.corrupt(in.position(), fmt::format("tensor {} has offset {}, not a multiple of {}",
                                                   tensor.name, tensor.offset, alignment));
    if (tensor.offset > data_size || tensor.size_bytes > data_size - tensor.offset)
      return in.corrupt(file_size_bytes,
                        fmt::format("tensor {} takes {} bytes from {} of the {} bytes of data: the "
                                    "file is truncated; fetch it again",
                                    tensor.name, tensor.size_bytes, tensor.offset, data_size));
    tensor.offset += data_start;
  }
  return {};
}

Result<void> check_no_overlap(const GgufCursor& in, const GgufDirectory& directory) {
  std::vector<const GgufTensor*> by_offset;
  for (const GgufTensor& tensor : directory.tensors) by_offset.push_back(&tensor);
  std::ranges::sort(by_offset, {}, &GgufTensor::offset);
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    const GgufTensor& before = *by_offset[i - 1];
    if (by_offset[i]->offset < before.offset + before.size_bytes)
      return in.corrupt(by_offset[i]->offset,
                        fmt::format("tensors {} and {} overlap", before.name, by_offset[i]->name));
  }
  return {};
}

Result<void> check_version(GgufCursor& in, std::string_view path) {
  if (TRY(in.take<std::uint32_t>("magic")) != kMagic)
    return in.corrupt(0, "the file does not begin with GGUF");
  const auto version = TRY(in.take<std::uint32_t>("version"));
  if (version == 2 || version == 3) return {};
  const bool is_big_endian = version != 0 && (version & 0xffff) == 0;
  return fail(Errc::UnsupportedModel,
              is_big_endian
                  ? fmt::format("{}: is big-endian; a little-endian file is needed", path)
                  : fmt::format("{}: has GGUF version {}; 2 and 3 are read", path, version));
}

Result<GgufDirectory> read_directory(std::span<const std::byte> head, std::uint64_t file_bytes,
                                     std::string_view path) {
  GgufCursor in(head, path);
  GgufDirectory directory{};
  TRY(check_version(in, path));
  const auto n_tensors = TRY(in.take<std::uint64_t>("tensor count"));
  const auto n_entries = TRY(in.take<std::uint64_t>("metadata count"));
  TRY(in.check_remaining(n_tensors, kMinTensorBytes, "tensors"));
  TRY(in.check_remaining(n_entries, kMinEntryBytes, "metadata entries"));
  TRY(take_metadata(in, n_entries, path, directory));
  TRY(take_tensors(in, n_tensors, path, directory));
  const std::uint32_t alignment = TRY(alignment_of(head, path, directory));
  TRY(set_tensor_offsets(in, file_bytes, alignment, directory));
  TRY(check_no_overlap(in, directory));
  return directory;
}

}  // namespace

std::string_view name(GgufType type) {
  return kTypeNames[std::to_underlying(type)];
}

std::uint64_t GgufTensor::rows() const {
  std::uint64_t n_rows = 1;
  for (const std::uint64_t length : std::span(shape).subspan(1)) n_rows *= length;
  return n_rows;
}

Result<GgufDirectory> read_gguf_directory(std::span<const std::byte> file, std::string_view path) {
  return read_directory(file, file.size(), path);
}

Result<GgufHead> GgufHead::read(std::span<const std::byte> head, std::uint64_t file_bytes,
                                const std::string& path) {
  auto directory = read_directory(head, file_bytes, path);
  if (directory) return GgufHead(head, path, *std::move(directory));
  Error error = directory.error();
  if (error.code == Errc::FileCorrupt && head.size() < file_bytes)
    error.detail += fmt::format("; the tensors' data must begin within {} bytes", head.size());
  return std::unexpected(std::move(error));
}

}  // namespace leasehold
