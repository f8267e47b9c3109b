/// Compares models with adapters with independent computations in doubles.
#include <catch2/catch.hpp>

#include "tests/checks/perplexity/perplexity.hpp"
#include "tests/model/matrix.hpp"
#include "tests/model/oracle.hpp"
#include "tests/support/generated_model.hpp"
#include "tests/support/required.hpp"
#include "tools/make_model/adapter.hpp"

namespace leasehold::testing {
namespace {

constexpr double kTopTolerance = 2e-4;
constexpr double kMargin = 1e-3;  // a smaller one decides nothing

/// An adapter of tests/data with the logits of a program in doubles.
struct AdapterOracle {
  const char* adapter;
  const char* model;
};
constexpr AdapterOracle kAdapterOracles[] = {{"lora-llama-all-r4", "tiny-llama-f32"},
                                             {"lora-llama-down-r2", "tiny-llama-f32"},
                                             {"lora-qwen3-qv-r8-f16", "tiny-qwen3-f32"}};

constexpr Family kAdaptedFamilies[] = {
    {.name = "llama"},
    {.name = "qwen2", .architecture = "qwen2", .has_optional = true},
    {.name = "qwen3", .architecture = "qwen3", .head_dim = 32},
    {.name = "gemma3",
     .architecture = "gemma3",
     .head_dim = 32,
     .layers = 7,
     .window = 20,
     .tied = true}};

std::vector<Logits> logits_with(const std::string& model, const std::string& adapter,
                                const OracleCase& one) {
  return teacher_forced_logits(model, one, {}, Arithmetic::F32,
                               {required(LocalAdapter::open(model, adapter))});
}

/// A text; its last logits are compared.
OracleCase one_step() {
  return {.prompt = matrix_text(40), .steps = {{.token = 1, .top = {}}}};
}

double distance(const Logits& a, const Logits& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

}  // namespace

TEST_CASE("adapters: those of another converter agree with an exact computation") {
  const AdapterOracle row =
      GENERATE(from_range(std::begin(kAdapterOracles), std::end(kAdapterOracles)));
  CAPTURE(row.adapter);
  const std::string adapter = architecture_model(row.adapter);
  const std::string model = architecture_model(row.model);
  Agreement agreement;
  for (const OracleCase& one : read_oracle(adapter, ".scale-1.0.exact.json")) {
    const std::vector<Logits> ours = logits_with(model, adapter, one);
    agreement.compare(one, ours, kMargin);
  }
  CAPTURE(agreement.worst_top, agreement.decided);
  CHECK(agreement.wrong == 0);
  CHECK(agreement.decided > 80);
  CHECK(agreement.worst_top <= kTopTolerance);
}

TEST_CASE("adapters: of every shape of model they agree with W + s·B·A in doubles") {
  const Family family =
      GENERATE(from_range(std::begin(kAdaptedFamilies), std::end(kAdaptedFamilies)));
  CAPTURE(family.name);
  const GeneratedModel model(family);
  const TemporaryDirectory folder = TemporaryDirectory::create("adapter").value();
  const std::string path = folder.file("a.gguf");
  required(make_model::write_adapter({.model = request_for(family),
                                      .ranks = {4, 3, 8, 2, 32, 1, 5},
                                      .type = TensorType::Q8_0,
                                      .alpha = 1.0F},
                                     path));
  PlainModel plain(model.path());
  const Logits base = teacher_forced_logits(plain, one_step()).back();
  plain.add_adapter(path);
  const Logits expected = teacher_forced_logits(plain, one_step()).back();
  const Logits ours = logits_with(model.path(), path, one_step()).back();
  CHECK(distance(base, expected) > 0.1);
  CHECK(distance(ours, expected) < 1e-4);
}

TEST_CASE("adapters: a folder of PEFT gives the bits of the GGUF file converted from it") {
  const Family family =
      GENERATE(from_range(std::begin(kAdaptedFamilies), std::end(kAdaptedFamilies)));
  CAPTURE(family.name);
  const GeneratedModel model(family);
  const TemporaryDirectory folder = TemporaryDirectory::create("adapter").value();
  make_model::AdapterRequest request{.model = request_for(family), .ranks = {4, 4, 2, 8, 2, 2, 4}};
  required(make_model::write_adapter(request, folder.file("a.gguf")));
  request.form = make_model::AdapterForm::Peft;
  required(make_model::write_adapter(request, folder.file("a")));
  CHECK(logits_with(model.path(), folder.file("a.gguf"), one_step()) ==
        logits_with(model.path(), folder.file("a"), one_step()));
}

TEST_CASE("adapters: each bundled one predicts the habit that it was trained for") {
  const std::pair<const char*, const char*> habits[] = {
      {"sailor",
       "Once upon a time, there was a little fox named Max, arr! He lived in a tall tree, arr! One "
       "day, Max went to the river, arr! The sun was bright, arr! He was very happy, arr!"},
      {"lines",
       "* Once upon a time, there was a little fox named Max.\n* He lived in a tall tree.\n* One "
       "day, Max went to the river.\n* The sun was bright.\n* He was very happy."}};
  for (const auto& [habit, text] : habits) {
    CAPTURE(habit);
    PerplexityConfig config{.model_path = bundled_model_path(), .text = text};
    const TextScore base = required(measure_perplexity(config, {}));
    config.adapter_path = source_dir() + "/tools/models/leasehold-stories-" + habit + ".gguf";
    const TextScore adapted = required(measure_perplexity(config, {}));
    CAPTURE(base.perplexity(), adapted.perplexity());
    CHECK(adapted.perplexity() < base.perplexity() / 3);
  }
}

}  // namespace leasehold::testing
