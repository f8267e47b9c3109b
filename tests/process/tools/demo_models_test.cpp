/// The demo on one model of each architecture and each kind of tokenizer. demo_models_long_test
/// uses every file.
#include <catch2/catch.hpp>

#include "tests/process/tools/demo_models.hpp"
#include "tests/support/generated_model.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold::testing {

TEST_CASE("demo: every promise is kept on one oracle file of each architecture") {
  for (const char* name :
       {"stories260K-q4_0", "kq-llama-q3_k_m", "kq-qwen2-q4_k_m", "kq-qwen3-q4_k_m"})
    check_demo(test_data_path("models/" + std::string(name) + ".gguf"));
}

TEST_CASE(
    "demo: every promise is kept with experts, with byte-level tokens, and in several files") {
  for (const char* name : {"mixtral, q8_0", "qwen2moe", "qwen3moe, in parts"}) {
    const GeneratedModel model(family_named(name));
    check_demo(model.path());
  }
}

}  // namespace leasehold::testing
