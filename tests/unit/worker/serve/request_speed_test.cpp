// CPU time of parsing a request; asserts nothing.
// Run: worker_serve_test "[.speed]"
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <ctime>

#include "tests/support/test_paths.hpp"
#include "worker/serve/prompt.hpp"
#include "worker/text/grammar/compile.hpp"

namespace leasehold::testing {
namespace {

template <class Work>
void report(const std::string& what, Work work) {
  const std::clock_t begin = std::clock();
  const Result<std::size_t> size = work();
  const auto us = (std::clock() - begin) * 1'000'000 / CLOCKS_PER_SEC;
  WARN(fmt::format("{:60} {:8} us, {}", what, us,
                   size ? std::to_string(*size) : std::string(name(size.error().code))));
}

std::string repeated(std::string_view text, std::size_t n) {
  std::string all;
  for (std::size_t i = 0; i < n; ++i) all += text;
  return all;
}

std::string schema_of(int properties, bool required) {
  std::string members, names;
  for (int i = 0; i < properties; ++i) {
    members += fmt::format(R"({}"property_{}":{{"type":"string"}})", i > 0 ? "," : "", i);
    names += fmt::format(R"({}"property_{}")", i > 0 ? "," : "", i);
  }
  return fmt::format(R"({{"type":"object","properties":{{{}}},"required":[{}]}})", members,
                     required ? names : "");
}

void report_grammar(const std::string& what, const GrammarSource& source) {
  report(what, [&]() -> Result<std::size_t> { return TRY(compile_grammar(source))->rules.size(); });
}

wire::Generate chat_of(std::size_t messages) {
  wire::Generate request;
  request.messages.emplace();
  for (std::size_t i = 0; i < messages; ++i)
    request.messages->push_back(
        {i % 2 == 0 ? "user" : "assistant", repeated("Once upon a time there was a fox. ", 6)});
  return request;
}

}  // namespace

TEST_CASE("request speed", "[.speed]") {
  const auto file = GgufFile::open(bundled_model_path());
  const Tokenizer tokenizer = *Tokenizer::from_metadata(*file);
  report_grammar("schema, 200 properties, all required",
                 {GrammarKind::JsonSchema, schema_of(200, true)});
  report_grammar("schema, 200 properties, none required",
                 {GrammarKind::JsonSchema, schema_of(200, false)});
  report_grammar("schema, 32 KiB of empty schemas",
                 {GrammarKind::JsonSchema, R"({"anyOf":[)" + repeated("{},", 10'900) + "{}]}"});
  report_grammar("grammar, 32 KiB of rules",
                 {GrammarKind::Gbnf, "root ::= " + repeated("[^\\x00-\\x1f\"]{0,60} ", 500)});
  const auto report_prompt = [&](const std::string& what, const std::string& source,
                                 const wire::Generate& request) {
    const auto chat = ChatTemplate::parse(source, {});
    const PromptEncoder encoder{.tokenizer = &tokenizer, .chat = &chat, .max_context = 131'072};
    report(what, [&]() -> Result<std::size_t> { return TRY(encoder.encode(request, 0)).size(); });
  };
  const std::string chatml =
      "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] | trim + "
      "'<|im_end|>\n' }}{% endfor %}";
  report_prompt("ChatML, 200 messages of 200 bytes", chatml, chat_of(200));
  report_prompt("ChatML, 4000 messages of 200 bytes", chatml, chat_of(4000));
  report_prompt("template that goes on to the limit of steps",
                "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
                chat_of(1));
  wire::Generate plain;
  plain.prompt = repeated("Once upon a time there was a fox. ", 25'000);
  report_prompt("plain prompt of 850 kB", chatml, plain);
}

}  // namespace leasehold::testing
