/// The demo on every oracle file and every family of models. Label: long.
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/process/tools/demo_models.hpp"
#include "tests/support/generated_model.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold::testing {

TEST_CASE("demo, all of it: every promise is kept on every oracle file") {
  const std::filesystem::path folder =
      std::filesystem::path(test_data_path("models/kq-llama-q2_k.gguf")).parent_path();
  int checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    check_demo(entry.path());
    ++checked;
  }
  CHECK(checked >= 15);
}

TEST_CASE("demo, all of it: every promise is kept on every family") {
  for (const Family& family : kFamilies) {
    const GeneratedModel model(family);
    INFO(family.name);
    check_demo(model.path());
  }
}

}  // namespace leasehold::testing
