#include "tools/make_model/gguf_writer.hpp"

namespace leasehold::make_model {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint32_t kVersion = 3;

/// Dimensions, fastest first: columns, then rows, then matrices. A single vector has only the
/// first.
void describe(ByteSink& sink, const PlannedTensor& tensor) {
  std::vector<std::uint64_t> dimensions{tensor.columns};
  if (tensor.fill == Fill::Matrix || tensor.rows > 1)
    dimensions.push_back(tensor.rows / tensor.matrices);
  if (tensor.matrices > 1) dimensions.push_back(tensor.matrices);
  sink.string(tensor.name);
  sink.number(static_cast<std::uint32_t>(dimensions.size()));
  for (const std::uint64_t dimension : dimensions) sink.number(dimension);
  sink.number(tensor.type);
  sink.number(tensor.offset);
}

}  // namespace

std::vector<std::byte> assemble_header(const Metadata& metadata,
                                       const std::vector<PlannedTensor>& plan) {
  ByteSink sink;
  sink.raw(std::as_bytes(std::span(kMagic)));
  sink.number(kVersion);
  sink.number(std::uint64_t{plan.size()});
  sink.number(metadata.count());
  sink.raw(metadata.bytes());
  for (const PlannedTensor& tensor : plan) describe(sink, tensor);
  return sink.take_aligned();
}

}  // namespace leasehold::make_model
