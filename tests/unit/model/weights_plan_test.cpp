#include "kernels/model/weights_plan.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "tests/support/gguf_builder.hpp"

using namespace leasehold;
using namespace leasehold::testing;
using Catch::Matchers::Contains;

namespace {

struct Planned {
  explicit Planned(const GgufBuilder& builder)
      : temporary(builder.bytes()),
        file(*GgufFile::open(temporary.path())),
        whole(*make_weights_layout(file, *read_config(file))) {}

  TemporaryFile temporary;
  GgufFile file;
  WeightsLayout whole;
};

std::vector<std::string> names(const WeightsPlan& plan) {
  std::vector<std::string> all;
  for (const WeightsPart& part : plan.parts) all.push_back(part.name);
  return all;
}

const WeightsPart& part_named(const WeightsPlan& plan, std::string_view name) {
  for (const WeightsPart& part : plan.parts) {
    if (part.name == name) return part;
  }
  throw std::runtime_error("no part " + std::string(name));
}

}  // namespace

TEST_CASE("plan: a model in one part has the whole layout and its digest") {
  const Planned model(tiny_llama());
  const WeightsPlan plan = make_weights_plan(model.whole, WeightsScope::Model);
  REQUIRE(names(plan) == std::vector<std::string>{"model"});
  CHECK(plan.parts[0].layout.weights == model.whole.weights);
  CHECK(plan.parts[0].layout.digest == model.whole.digest);
  CHECK(plan.size_bytes() == model.whole.size_bytes);
}

TEST_CASE("plan: the layers and the tensors before and after them are parts") {
  const Planned model(tiny_llama());
  CHECK(names(make_weights_plan(model.whole, WeightsScope::Layer)) ==
        std::vector<std::string>{"token_embd", "blk.0", "blk.1", "output"});

  const Planned tied(tiny_llama().remove_tensor("output.weight"));
  const WeightsPlan plan = make_weights_plan(tied.whole, WeightsScope::Layer);
  REQUIRE(part_named(plan, "output").layout.weights.size() == 1);
  CHECK(part_named(plan, "output").layout.weights[0].name == "output_norm.weight");
}

TEST_CASE("plan: every weight is in exactly one part, and offsets start at 0") {
  const Planned model(tiny_llama());
  for (const WeightsScope scope :
       {WeightsScope::Model, WeightsScope::Layer, WeightsScope::Tensor}) {
    INFO(name(scope));
    CHECK(weights_scope_from_name(name(scope)) == scope);
    const WeightsPlan plan = make_weights_plan(model.whole, scope);
    std::vector<std::string> weights;
    std::set<LayoutDigest> digests;
    for (const WeightsPart& part : plan.parts) {
      CHECK(part.layout.weights.front().region_offset_bytes == 0);
      std::uint64_t end = 0;
      for (const WeightTensor& weight : part.layout.weights) {
        weights.push_back(weight.name);
        CHECK(weight.region_offset_bytes >= end);
        end = weight.region_offset_bytes + weight.size_bytes;
      }
      CHECK(part.layout.size_bytes >= end);
      CHECK(digests.insert(part.layout.digest).second);
    }
    std::vector<std::string> wanted;
    for (const WeightTensor& weight : model.whole.weights) wanted.push_back(weight.name);
    CHECK(weights == wanted);
    if (scope == WeightsScope::Tensor) CHECK(names(plan) == wanted);
  }
  CHECK_FALSE(weights_scope_from_name("block"));
}

TEST_CASE("plan: the same tensors share a region in every scope") {
  const Planned model(tiny_llama());
  const WeightsPlan layers = make_weights_plan(model.whole, WeightsScope::Layer);
  const WeightsPlan tensors = make_weights_plan(model.whole, WeightsScope::Tensor);
  CHECK(part_named(layers, "token_embd").layout.digest ==
        part_named(tensors, "token_embd.weight").layout.digest);
}

TEST_CASE("plan: a replaced or rewritten file has another identity") {
  const TemporaryFile file(tiny_llama().bytes());
  const auto opened = GgufFile::open(file.path());
  REQUIRE(opened);
  CHECK(FileIdentity::of_path(file.path()).value() == opened->identity());

  using namespace std::chrono_literals;
  std::filesystem::last_write_time(file.path(), std::filesystem::last_write_time(file.path()) + 1s);
  CHECK_FALSE(FileIdentity::of_path(file.path()).value() == opened->identity());
  // A program that rewrites a file may set its time back.
  const FileIdentity before = FileIdentity::of_path(file.path()).value();
  std::filesystem::last_write_time(file.path(), std::filesystem::last_write_time(file.path()));
  CHECK_FALSE(FileIdentity::of_path(file.path()).value() == before);
  CHECK(FileIdentity::of_path(file.path() + ".gone").error().code == Errc::FileNotFound);
}
