/// Copying weights from a file into a region: as they are, or interleaved in groups.
#include <catch2/catch.hpp>
#include <cstring>

#include "kernels/quant/dequantize.hpp"
#include "kernels/quant/row_group.hpp"
#include "kernels/reference/reference_backend.hpp"
#include "tests/support/gguf_builder.hpp"
#include "tests/support/leased_memory.hpp"
#include "worker/model/weights.hpp"

using namespace leasehold;
using namespace leasehold::testing;

namespace {

struct Copied {
  explicit Copied(Arithmetic arithmetic)
      : file(required(GgufFile::open(written.path()))),
        layout(required(make_weights_layout(file, required(read_config(file)), arithmetic))),
        object(
            required(MemoryObject::create({.name = "weights", .size_bytes = layout.size_bytes}))),
        region(required(LeasedMapping::map(object.fd(), layout.size_bytes, MapAccess::ReadWrite))) {
    FakeTable table;
    ReferenceBackend backend({.max_rows = 1}, table.gate());
    const auto gates = table.step(1);
    required(
        copy_weights(file, layout, {.region = &region, .gates = &*gates, .backend = &backend}, {}));
  }

  const std::byte* at(const WeightTensor& slot) const {
    return address_of(region.base() + static_cast<std::ptrdiff_t>(slot.region_offset_bytes));
  }
  std::vector<std::byte> in_file(const WeightTensor& slot) const {
    std::vector<std::byte> bytes(slot.rows * row_size_bytes(slot.type, slot.columns));
    required(file.read(*file.find(slot.name), 0, bytes));
    return bytes;
  }

  TemporaryFile written{tiny_llama().bytes()};
  GgufFile file;
  WeightsLayout layout;
  MemoryObject object;
  LeasedMapping region;
};

}  // namespace

TEST_CASE("weights: without int8 every tensor has the bytes of the file") {
  const Copied copied(Arithmetic::F32);
  for (const WeightTensor& slot : copied.layout.weights) {
    CAPTURE(slot.name);
    const std::vector<std::byte> expected = copied.in_file(slot);
    CHECK(slot.layout == MatrixLayout::Rows);
    CHECK(std::ranges::equal(expected, std::span(copied.at(slot), expected.size())));
  }
}

TEST_CASE(
    "weights: with int8 the rows of quantised matrices are interleaved, also in a last group") {
  const Copied copied(Arithmetic::Int8);
  const WeightTensor& table = *copied.layout.find("token_embd.weight");
  REQUIRE(table.layout == MatrixLayout::RowGroups);
  REQUIRE(table.rows % kGroupRows != 0);
  CHECK(table.size_bytes == row_groups(table.rows) * row_group_bytes(table.type, table.columns));
  const std::vector<std::byte> rows = copied.in_file(table);
  std::vector<float> expected(table.columns);
  std::vector<float> found(table.columns);
  for (std::uint32_t row = 0; row < table.rows; ++row) {
    dequantize_row(table.type, rows.data() + row * row_size_bytes(table.type, table.columns),
                   expected.data(), table.columns);
    dequantize_group_row(
        table.type,
        copied.at(table) + row / kGroupRows * row_group_bytes(table.type, table.columns),
        row % kGroupRows, found.data(), table.columns);
    CAPTURE(row);
    // The bytes of the file count up, so that some scales are NaN.
    REQUIRE(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)) == 0);
  }
  for (const WeightTensor& slot : copied.layout.weights) {
    CAPTURE(slot.name);
    if (!has_row_groups(slot.type)) CHECK(slot.layout == MatrixLayout::Rows);
  }
}

TEST_CASE("weights: layouts of different arithmetic have different digests") {
  CHECK_FALSE(Copied(Arithmetic::Int8).layout.digest == Copied(Arithmetic::F32).layout.digest);
}
