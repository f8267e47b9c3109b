/// The same adapter as a GGUF file and as a folder of PEFT.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "tests/unit/worker/adapter/adapter_cases.hpp"
#include "worker/adapter/adapter_matrix.hpp"

namespace leasehold::testing {
namespace {

using make_model::AdapterForm;

bool are_equal(const AdaptedWeight& a, const AdaptedWeight& b) {
  return a.layer == b.layer && a.target == b.target && a.type == b.type && a.rank == b.rank &&
         a.scale == b.scale && a.n_in == b.n_in && a.n_out == b.n_out;
}

}  // namespace

TEST_CASE("adapter: a folder of PEFT and the GGUF file converted from it have the same bits") {
  const auto* architecture = GENERATE("llama", "qwen2", "qwen3", "gemma3", "granite", "phi3");
  const TensorType type =
      GENERATE(TensorType::F32, TensorType::F16, TensorType::BF16, TensorType::Q8_0);
  CAPTURE(architecture, name(type));
  const AdapterFolder folder(architecture);
  folder.make("a.gguf", type, AdapterForm::Gguf);
  folder.make("a", type, AdapterForm::Peft);
  auto gguf = folder.open("a.gguf");
  auto peft = folder.open("a");
  REQUIRE(gguf);
  REQUIRE(peft);
  REQUIRE(gguf->weights().size() == 2 * kAdapterTargets);
  CHECK(std::ranges::equal(gguf->weights(), peft->weights(), are_equal));
  CHECK(*read_all(*gguf) == *read_all(*peft));
  CHECK(gguf->digest() != peft->digest());
}

TEST_CASE("adapter: ranks, scales and widths are those of the file and the model") {
  const AdapterFolder folder;
  folder.make("a.gguf", TensorType::F16, AdapterForm::Gguf);
  const auto file = folder.open("a.gguf");
  REQUIRE(file);
  for (const AdaptedWeight& weight : file->weights()) {
    const std::uint32_t rank = kMixedRanks[static_cast<std::size_t>(weight.target)];
    CHECK(weight.rank == rank);
    CHECK(weight.scale == 2.0F / static_cast<float>(rank));
    CHECK(weight.type == TensorType::F16);
  }
  const AdaptedWeight& down = file->weights().back();
  CHECK((down.layer == 1 && down.target == AdapterTarget::Down));
  CHECK((down.n_in == 64 && down.n_out == 32));
  CHECK((file->weights()[1].n_in == 32 && file->weights()[1].n_out == 16));
}

TEST_CASE("adapter: slices of any size give the bytes of the whole matrix") {
  const AdapterFolder folder;
  folder.make("a", TensorType::Q8_0, AdapterForm::Peft);
  auto file = folder.open("a");
  REQUIRE(file);
  const auto whole = *read_all(*file);
  for (const std::size_t slice : {1, 7, 64, 333}) CHECK(*read_all(*file, slice) == whole);
}

TEST_CASE("adapter: B is transposed, and rows of a checkpoint get the model's order") {
  // Two heads of four rows, rank 2. A checkpoint has the first halves of the rotated pairs, then
  // the second ones.
  const std::uint16_t file[] = {0, 10, 1, 11, 2, 12, 3, 13, 4, 14, 5, 15, 6, 16, 7, 17};
  const auto bytes = std::as_bytes(std::span(file));
  const auto values_of = [](const std::vector<std::byte>& all) {
    std::vector<std::uint16_t> values(all.size() / 2);
    std::memcpy(values.data(), all.data(), all.size());
    return values;
  };
  CHECK(values_of(transposed(bytes, 8, 2, 2, 0)) ==
        std::vector<std::uint16_t>{0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17});
  CHECK(values_of(transposed(bytes, 8, 2, 2, 4)) ==
        std::vector<std::uint16_t>{0, 2, 1, 3, 4, 6, 5, 7, 10, 12, 11, 13, 14, 16, 15, 17});
}

TEST_CASE("adapter: a matrix beside one of another type becomes F32, exactly") {
  const AdapterFolder folder;
  folder.make("mixed.gguf", TensorType::Q8_0, AdapterForm::Gguf);
  folder.make("floats", TensorType::Q8_0, AdapterForm::Peft);
  auto mixed = folder.open("mixed.gguf");
  REQUIRE(mixed);
  for (const AdaptedWeight& weight : mixed->weights()) CHECK(weight.type == TensorType::F32);
}

}  // namespace leasehold::testing
