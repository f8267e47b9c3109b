// leasehold-tokenize on real model files.
#include <catch2/catch.hpp>

#include "common/errc.hpp"
#include "tests/process/tools/program_run.hpp"
#include "tests/support/generated_model.hpp"
#include "tests/support/test_paths.hpp"

using namespace leasehold;

namespace {

ProgramEnd tokenize(std::vector<std::string> arguments) {
  return run_to_end("leasehold-tokenize", std::move(arguments));
}

}  // namespace

TEST_CASE("leasehold-tokenize: the ids of a text decode to the same text") {
  const std::string text = "Once upon a time, Zoë had\nan 🦙.";
  const ProgramEnd ids = tokenize({"--model", bundled_model_path(), text});
  CHECK(ids.exit_code == 0);
  CHECK(ids.output.starts_with("1 "));  // BOS
  const ProgramEnd back = tokenize({"--model", bundled_model_path(), "--decode", ids.output});
  CHECK(back.output == text);
}

TEST_CASE("leasehold-tokenize: a byte-level vocabulary merges words and spells the rest in bytes") {
  const testing::GeneratedModel model(testing::family_named("qwen2"));
  const std::string text = "ba baba Zoë 🦙\n";
  const ProgramEnd ids = tokenize({"--model", model.path(), text});
  CHECK(ids.output.starts_with("357 457 "));  // "ba", " baba"
  CHECK(tokenize({"--model", model.path(), "--decode", ids.output}).output == text);
}

TEST_CASE("leasehold-tokenize: --special reads and prints control tokens by name") {
  CHECK(tokenize({"--model", bundled_model_path(), "--special", "</s>"}).output == "1 2\n");
  CHECK(tokenize({"--model", bundled_model_path(), "</s>"}).output != "1 2\n");
  CHECK(tokenize({"--model", bundled_model_path(), "--special", "--decode", "1 2"}).output ==
        "<s></s>");
}

TEST_CASE("leasehold-tokenize: an error goes to stderr and sets the exit code") {
  CHECK(tokenize({"text"}).exit_code == 2);
  CHECK(tokenize({"--model", "/nowhere.gguf", "x"}).exit_code == exit_code(Errc::FileNotFound));
  const ProgramEnd ended = tokenize({"--model", bundled_model_path(), "--decode", "1 99999999"});
  CHECK(ended.exit_code == exit_code(Errc::BadRequest));
  CHECK(ended.output.empty());
  CHECK(ended.errors.find("99999999") != std::string::npos);
}
